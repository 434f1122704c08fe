//@ error: E0382 borrow of moved value: `skb`
// SPDX-License-Identifier: GPL-2.0

//! A packet in flight belongs to the ring: completion may have freed it already.

#![forbid(unsafe_code)]

use kernel::net::{
    inflight::TxProducer,
    skbuff::SkBuff, //
};

pub fn xmit(tx: &mut TxProducer<'_>, skb: SkBuff) -> u32 {
    //~ let _ = tx;
    let _ = tx.submit(skb, 0, |_, _| ());
    skb.len()
}
