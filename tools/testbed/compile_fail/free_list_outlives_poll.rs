//@ error: E0621 explicit lifetime required in the type of `cx`
// SPDX-License-Identifier: GPL-2.0

//! A list of packets to free ends with the poll function.

#![forbid(unsafe_code)]

use kernel::net::{
    napi::Poll,
    skb_free::{
        BulkStats,
        SkbFreeList, //
    }, //
};

//~ pub fn poll<'a>(cx: &'a Poll<'a>, stats: &'a BulkStats) -> SkbFreeList<'a> {
pub fn poll<'a>(cx: &Poll<'_>, stats: &'a BulkStats) -> SkbFreeList<'a> {
    SkbFreeList::new(cx, stats)
}
