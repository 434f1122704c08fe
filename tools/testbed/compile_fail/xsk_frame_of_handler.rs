//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! A handler does not see frames in memory of a user: they are for programs.

#![forbid(unsafe_code)]

use kernel::net::xdp::{
    xsk::{
        XskFrame,
        XskPolling, //
    },
    HandlerHook,
    ProgramKind,
    XdpFormat, //
};

pub fn run<'p, F: XdpFormat>(
    ring: &mut XskPolling<'_, 'p, F>,
    kind: ProgramKind<'p>,
    frame: XskFrame<'p>,
) {
    match kind {
        ProgramKind::Bpf(program) => drop(ring.run(program, frame)),
        ProgramKind::Handler(handler) => {
            let handler: HandlerHook<'p> = handler;
            //~ let _ = (handler, frame);
            let _ = ring.run(handler, frame);
        }
    }
}
