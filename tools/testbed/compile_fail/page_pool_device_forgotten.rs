//@ error: E0382 borrow of moved value: `buffer`
// SPDX-License-Identifier: GPL-2.0

//! A buffer that the CPU has taken back has no address for the device.

#![forbid(unsafe_code)]

use kernel::{
    dma::DmaAddress,
    net::{
        napi::Poll,
        page_pool::{
            DeviceBuffer,
            PagePool, //
        }, //
    }, //
};

pub fn reuse(cx: &Poll<'_>, pool: &mut PagePool, buffer: DeviceBuffer) -> DmaAddress {
    //~ let _ = cx;
    let _ = pool.complete(buffer, 60, cx);
    buffer.dma_address(pool.layout())
}
