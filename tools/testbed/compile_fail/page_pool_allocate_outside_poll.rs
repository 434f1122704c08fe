//@ error: E0599 no method named `alloc`
// SPDX-License-Identifier: GPL-2.0

//! Allocation needs proof of exclusive access to the pool's cache.

#![forbid(unsafe_code)]

use kernel::net::page_pool::PagePool;

//~ pub fn refill(pool: &mut PagePool, cx: &kernel::net::napi::Poll<'_>) {
pub fn refill(pool: &mut PagePool) {
    //~ let _ = pool.allocator(cx).map(|mut free| free.alloc());
    let _ = pool.alloc();
}
