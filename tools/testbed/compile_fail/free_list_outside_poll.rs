//@ error: E0061 this function takes 2 arguments
// SPDX-License-Identifier: GPL-2.0

//! The transmit function has no token, so it cannot free in bulk.

#![forbid(unsafe_code)]

use kernel::net::{
    skb_free::{
        BulkStats,
        SkbFreeList, //
    },
    skbuff::SkBuff, //
};

//~ pub fn poll(cx: &kernel::net::napi::Poll<'_>, stats: &BulkStats, skb: SkBuff) {
pub fn start_xmit(stats: &BulkStats, skb: SkBuff) {
    //~ let mut free = SkbFreeList::new(cx, stats);
    let mut free = SkbFreeList::new(stats);
    free.push(skb);
}
