//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! A transmit function that reports a full ring returns the packet.

#![forbid(unsafe_code)]

use kernel::net::{
    queue::Xmit,
    skbuff::SkBuff, //
};

pub fn start_xmit(skb: SkBuff) -> Xmit {
    //~
    skb.consume();
    //~ Xmit::Busy(skb)
    Xmit::Busy(())
}
