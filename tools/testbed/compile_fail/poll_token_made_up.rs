//@ error: E0624 associated function `new` is private
// SPDX-License-Identifier: GPL-2.0

//! Outside of a poll function there is no token, and nobody but the core makes one.

#![forbid(unsafe_code)]

use kernel::net::napi::Poll;

pub fn make() {
    //~ let _ = Poll::budget;
    let _ = Poll::new;
}
