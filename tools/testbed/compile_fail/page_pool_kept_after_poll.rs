//@ error: none lifetime may not live long enough
// SPDX-License-Identifier: GPL-2.0

//! A received buffer becomes a packet in the poll function that received it, or is recycled.

#![forbid(unsafe_code)]

use kernel::net::{
    napi::Poll,
    page_pool::{
        CpuBuffer,
        DeviceBuffer,
        PagePool, //
    }, //
};

pub struct Poller<'a> {
    received: Option<CpuBuffer<'a>>,
}

pub fn poll(poller: &mut Poller<'_>, cx: &Poll<'_>, pool: &mut PagePool, buffer: DeviceBuffer) {
    //~ let _ = (&poller.received, pool.complete(buffer, 60, cx).ok());
    poller.received = pool.complete(buffer, 60, cx).ok();
}
