//@ error: E0596 cannot borrow data in dereference of `UniqueSkBuff` as mutable
// SPDX-License-Identifier: GPL-2.0

//! The time of a packet is a reference to it, which a packet of one owner cannot have.

#![forbid(unsafe_code)]

use kernel::net::{
    napi::Poll,
    skbuff::UniqueSkBuff, //
};

pub fn receive(cx: &Poll<'_>, mut skb: UniqueSkBuff) {
    //~ let _ = &mut skb;
    skb.promise_timestamp().give_up();
    cx.receive(skb);
}
