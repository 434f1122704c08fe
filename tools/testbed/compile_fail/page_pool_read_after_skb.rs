//@ error: E0382 borrow of moved value: `buffer`
// SPDX-License-Identifier: GPL-2.0

//! A buffer that has become a packet belongs to the packet.

#![forbid(unsafe_code)]

use kernel::net::page_pool::CpuBuffer;

pub fn read(buffer: CpuBuffer<'_>) -> usize {
    //~
    let _skb = buffer.into_skb();
    buffer.len().into()
}
