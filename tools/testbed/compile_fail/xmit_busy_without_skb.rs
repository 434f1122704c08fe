//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! A transmit function that reports a full ring returns the packet.

#![forbid(unsafe_code)]

use kernel::net::{
    queue::Xmit,
    skbuff::{
        DropReason,
        TxSkBuff, //
    }, //
};

pub fn start_xmit<'call>(skb: TxSkBuff<'call>) -> Xmit<'call> {
    //~
    skb.drop_with(DropReason::NotSpecified);
    //~ Xmit::Busy(skb)
    Xmit::Busy(())
}
