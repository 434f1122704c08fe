//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! The stack cannot go on with another packet than the one that it gave to the driver, even if it
//! lies in the same place.

#![forbid(unsafe_code)]

use kernel::{
    net::{
        queue::Xmit,
        skbuff::{
            DropReason,
            SkBuff,
            TxSkBuff, //
        }, //
    },
    prelude::*, //
};

pub fn start_xmit<'call>(skb: TxSkBuff<'call>) -> Xmit<'call> {
    match SkBuff::from(skb).into_unique(GFP_ATOMIC) {
        //~ Ok(skb) => SkBuff::from(skb).consume(),
        Ok(skb) => return Xmit::Busy(SkBuff::from(skb)),
        Err(skb) => skb.drop_with(DropReason::NoMemory),
    }
    Xmit::Taken
}
