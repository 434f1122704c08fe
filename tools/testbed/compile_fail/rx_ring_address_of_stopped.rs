//@ error: E0624 method `napi` is private
// SPDX-License-Identifier: GPL-2.0

//! A ring is not rewound after its NIC has got its address.

#![forbid(unsafe_code)]

use kernel::{
    net::{
        napi::RxStopped,
        page_pool::{
            RxFormat,
            RxRing, //
        }, //
    },
    prelude::*, //
};

pub fn start<F: RxFormat>(
    ring: &mut RxRing<F>,
    stopped: RxStopped<'_>,
    tell: impl Fn(u64),
) -> Result {
    //~ tell(ring.rewind(stopped)?);
    tell(ring.dma_address(stopped.napi())?);
    Ok(())
}
