//@ error: E0499 cannot borrow `*ring` as mutable more than once at a time
// SPDX-License-Identifier: GPL-2.0

//! A descriptor is taken once.

#![forbid(unsafe_code)]

use kernel::{
    net::{
        napi::Poll,
        page_pool::{
            RxFormat,
            RxRing, //
        }, //
    },
    prelude::*, //
};

pub fn receive<F: RxFormat>(ring: &mut RxRing<F>, cx: &Poll<'_>) -> Result {
    let mut one = ring.poll(cx)?;
    //~ drop(one.next());
    let _two = ring.poll(cx)?;
    drop(one.next());
    Ok(())
}
