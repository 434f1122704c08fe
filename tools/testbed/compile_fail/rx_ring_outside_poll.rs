//@ error: E0061 this method takes 1 argument but 0 arguments were supplied
// SPDX-License-Identifier: GPL-2.0

//! A ring is filled in the poll function: nothing else uses its pool at the same time.

#![forbid(unsafe_code)]

use kernel::net::page_pool::{
    RxFormat,
    RxRing, //
};

//~ pub fn refill<F: RxFormat>(ring: &mut RxRing<F>, cx: &kernel::net::napi::Poll<'_>) {
pub fn refill<F: RxFormat>(ring: &mut RxRing<F>) {
    //~ let _ = ring.refill(cx);
    let _ = ring.refill();
}
