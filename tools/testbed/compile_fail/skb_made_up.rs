//@ error: E0624 associated function `from_raw` is private
// SPDX-License-Identifier: GPL-2.0

//! Drivers cannot make a packet from a pointer.

#![forbid(unsafe_code)]

use kernel::net::skbuff::SkBuff;

pub fn make() {
    //~ let _ = SkBuff::consume;
    let _ = SkBuff::from_raw;
}
