//@ error: E0624 method `napi` is private
// SPDX-License-Identifier: GPL-2.0

//! A ring is not rewound after its NIC has got its address.

#![forbid(unsafe_code)]

use kernel::{
    error::Result,
    net::{napi, page_pool}, //
};

pub fn address<F>(ring: &mut page_pool::RxRing<F>, stopped: napi::RxStopped<'_>) -> Result<u64>
where
    F: page_pool::RxFormat,
{
    //~ ring.rewind(stopped)
    ring.dma_address(stopped.napi())
}
