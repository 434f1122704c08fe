//@ error: E0382 use of moved value
// SPDX-License-Identifier: GPL-2.0

//! A program takes a frame: what is left of it is in the verdict.

#![forbid(unsafe_code)]

use kernel::net::{
    xdp::{
        Program,
        XdpBuff,
        XdpFormat,
        XdpPolling, //
    }, //
};

pub fn run<'p, F: XdpFormat>(
    ring: &mut XdpPolling<'_, 'p, F>,
    program: Program<'p>,
    buff: XdpBuff<'p, F>,
) {
    let _ = ring.run(program, buff, [0; 2]);
    //~ let _ = program;
    let _ = ring.run(program, buff, [0; 2]);
}
