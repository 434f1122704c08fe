//@ error: E0382 use of moved value: `stopped`
// SPDX-License-Identifier: GPL-2.0

//! A queue that was stopped starts once: its NIC has the ring after that.

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
    tell(ring.rewind(stopped)?);
    //~ Ok(())
    ring.rewind(stopped).map(tell)
}
