//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! Completion passes packets to a list that only a poll function can have.

#![forbid(unsafe_code)]

use kernel::net::inflight::TxConsumer;

//~ pub fn complete(rx: &mut TxConsumer<'_>, free: &mut kernel::net::skb_free::SkbFreeList<'_>) {
pub fn complete(rx: &mut TxConsumer<'_>) {
    //~ let _ = rx.complete(free, 64, |_| true);
    let _ = rx.complete(&mut (), 64, |_| true);
}
