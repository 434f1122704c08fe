//@ error: E0596 cannot borrow data in dereference of `TxSkBuff<'_>` as mutable
// SPDX-License-Identifier: GPL-2.0

//! A packet that the stack has back is as it was: no time is promised for it.

#![forbid(unsafe_code)]

use kernel::net::{
    queue::Xmit,
    skbuff::TxSkBuff, //
};

pub fn refuse<'call>(mut skb: TxSkBuff<'call>) -> Xmit<'call> {
    //~ let _ = &mut skb;
    skb.promise_timestamp().give_up();
    Xmit::Busy(skb)
}
