//@ error: E0382 borrow of moved value: `skb`
// SPDX-License-Identifier: GPL-2.0

//! The stack owns a received packet.

#![forbid(unsafe_code)]

use kernel::net::{
    napi::Poll,
    skbuff::UniqueSkBuff, //
};

pub fn receive(cx: &Poll<'_>, skb: UniqueSkBuff) -> usize {
    //~ let _ = cx;
    cx.receive(skb);
    skb.data().len()
}
