//@ error: none lifetime may not live long enough
// SPDX-License-Identifier: GPL-2.0

//! A frame in memory of a user goes back to its pool in the poll function that received it.

#![forbid(unsafe_code)]

use kernel::net::{
    napi::Poll,
    xdp::{
        xsk::{
            XskFrame,
            XskNext,
            XskRing, //
        },
        XdpFormat, //
    }, //
};

pub struct Poller<'a, F: XdpFormat> {
    ring: XskRing<F>,
    kept: Option<XskFrame<'a>>,
}

pub fn poll<F: XdpFormat>(poller: &mut Poller<'_, F>, cx: &Poll<'_>) {
    let Ok(mut ring) = poller.ring.poll(cx) else {
        return;
    };
    if let Some(XskNext::One(done)) = ring.next() {
        //~ let _ = (&poller.kept, done.frame);
        poller.kept = done.frame;
    }
}
