//@ error: none lifetime may not live long enough
// SPDX-License-Identifier: GPL-2.0

//! A frame in memory of a user goes back to its pool in the poll function that received it.

#![forbid(unsafe_code)]

use kernel::net::{
    napi::Poll,
    xdp::{
        xsk::{
            XskFrame,
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
    let frame = ring.next().and_then(|done| done.frame);
    //~ let _ = (&poller.kept, frame);
    poller.kept = frame;
}
