//@ error: E0382 use of moved value: `skb`
// SPDX-License-Identifier: GPL-2.0

//! Freeing a packet consumes it.

#![forbid(unsafe_code)]

use kernel::net::skbuff::SkBuff;

pub fn free(skb: SkBuff) {
    //~
    skb.consume();
    skb.consume();
}
