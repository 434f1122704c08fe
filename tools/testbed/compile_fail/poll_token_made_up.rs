//@ error: E0624 associated function `new` is private
// SPDX-License-Identifier: GPL-2.0

//! Only the core creates a token, for the duration of a poll function.

#![forbid(unsafe_code)]

use kernel::net::napi::Poll;

pub fn make() {
    //~ let _ = Poll::budget;
    let _ = Poll::new;
}
