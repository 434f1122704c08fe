//@ error: E0061 this method takes 1 argument but 0 arguments were supplied
// SPDX-License-Identifier: GPL-2.0

//! A ring has an address as long as its queue vector exists.

#![forbid(unsafe_code)]

use kernel::net::page_pool::{
    RxFormat,
    RxRing, //
};

//~ pub fn address<F: RxFormat>(ring: &mut RxRing<F>, napi: &kernel::net::napi::Napi) -> Option<u64> {
pub fn address<F: RxFormat>(ring: &mut RxRing<F>) -> Option<u64> {
    //~ ring.dma_address(napi).ok()
    ring.dma_address().ok()
}
