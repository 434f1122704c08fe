//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! A list of received packets goes to GRO, too.

#![forbid(unsafe_code)]

use kernel::{
    net::{
        rx_list::{
            Protocol,
            RxList, //
        },
        skbuff::SkBuff, //
    },
    prelude::*, //
};

pub fn loop_back(list: &mut RxList<'_>, transmitted: SkBuff) -> Result<(), SkBuff> {
    //~ list.push(transmitted.into_unique(GFP_ATOMIC)?, Protocol::Other);
    list.push(transmitted, Protocol::Other);
    Ok(())
}
