//@ error: E0599 no method named `clone`
// SPDX-License-Identifier: GPL-2.0

//! An owned packet has one owner.

#![forbid(unsafe_code)]

use kernel::net::skbuff::SkBuff;

pub fn copy(skb: SkBuff) {
    //~ let _same = skb;
    let _second = skb.clone();
}
