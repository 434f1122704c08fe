//@ error: E0382 use of moved value
// SPDX-License-Identifier: GPL-2.0

//! A program takes a frame in memory of a user: what is left of it is in the verdict.

#![forbid(unsafe_code)]

use kernel::net::xdp::{
    xsk::{
        XskFrame,
        XskPolling, //
    },
    BpfProgram,
    XdpFormat, //
};

pub fn run<'p, F: XdpFormat>(
    ring: &mut XskPolling<'_, 'p, F>,
    program: BpfProgram<'p>,
    frame: XskFrame<'p>,
) {
    let _ = ring.run(program, frame);
    //~ let _ = program;
    let _ = ring.run(program, frame);
}
