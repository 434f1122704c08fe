//@ error: E0616 field `slots` of struct `RxRing` is private
// SPDX-License-Identifier: GPL-2.0

//! A buffer is out of reach until its descriptor is done.

#![forbid(unsafe_code)]

use kernel::net::{
    napi::Poll,
    page_pool::{
        RxFormat,
        RxRing, //
    }, //
};

pub fn read<F: RxFormat>(ring: &mut RxRing<F>, cx: &Poll<'_>) {
    let _ = cx;
    //~ let _ = ring.poll(cx).map(|mut ring| ring.next());
    let _ = ring.slots;
}
