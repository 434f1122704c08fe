//@ error: none lifetime may not live long enough
// SPDX-License-Identifier: GPL-2.0

//! A received buffer becomes a packet in the poll function that received it, or goes back.

#![forbid(unsafe_code)]

use kernel::net::{
    napi::Poll,
    page_pool::{
        CpuBuffer,
        RxFormat,
        RxRing, //
    }, //
};

pub struct Poller<'a, F: RxFormat> {
    ring: RxRing<F>,
    received: Option<CpuBuffer<'a>>,
}

pub fn poll<F: RxFormat>(poller: &mut Poller<'_, F>, cx: &Poll<'_>) {
    let done = poller.ring.poll(cx).ok().and_then(|mut ring| ring.next());
    //~ let _ = (&poller.received, done.and_then(|done| done.buffer));
    poller.received = done.and_then(|done| done.buffer);
}
