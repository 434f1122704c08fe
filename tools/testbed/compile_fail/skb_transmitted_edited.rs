//@ error: E0599 no method named `put` found
// SPDX-License-Identifier: GPL-2.0

//! The data of a transmitted packet may be that of others.

#![forbid(unsafe_code)]

use kernel::{
    net::skbuff::SkBuff,
    prelude::*, //
};

pub fn add_trailer(skb: SkBuff) -> Result {
    //~ let mut skb = skb.into_unique(GFP_ATOMIC).map_err(|_| ENOMEM)?;
    let mut skb = skb;
    skb.put(&[0; 4])
}
