//@ error: none lifetime may not live long enough
// SPDX-License-Identifier: GPL-2.0

//! A program may be freed after the poll function that has found it.

#![forbid(unsafe_code)]

use kernel::net::{
    napi::Poll,
    xdp::{
        Attachment,
        Program, //
    }, //
};

pub struct Poller<'a> {
    program: Option<Program<'a>>,
}

pub fn poll(poller: &mut Poller<'_>, program: &Attachment, cx: &Poll<'_>) {
    //~ let _ = (&poller.program, program.program(cx));
    poller.program = program.program(cx);
}
