//@ error: E0308 `?` operator has incompatible types
// SPDX-License-Identifier: GPL-2.0

//! A buffer of another ring has no headroom for programs.

#![forbid(unsafe_code)]

use kernel::{
    net::{
        napi::Poll,
        page_pool::RxRing,
        xdp::{
            Attachment,
            XdpFormat,
            XdpRing, //
        }, //
    },
    prelude::*, //
};

pub fn poll<F: XdpFormat>(
    ring: &mut XdpRing<F>,
    plain: &mut RxRing<F>,
    program: &Attachment,
    cx: &Poll<'_>,
) -> Result {
    let program = program.program(cx).ok_or(ENOENT)?;
    let mut ring = ring.poll(cx)?;
    //~ let buff = ring.next().and_then(|done| done.buff);
    let buff = plain.poll(cx)?.next().and_then(|done| done.buffer);
    let _ = (plain, ring.run(program, buff.ok_or(ENODATA)?, [0; 2]));
    Ok(())
}
