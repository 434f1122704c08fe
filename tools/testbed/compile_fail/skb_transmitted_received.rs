//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! GRO edits packets. A transmitted packet may be a clone of one that its sender keeps.

#![forbid(unsafe_code)]

use kernel::{
    net::{
        napi::Poll,
        skbuff::SkBuff, //
    },
    prelude::*, //
};

pub fn loop_back(cx: &Poll<'_>, transmitted: SkBuff) -> Result<(), SkBuff> {
    //~ cx.receive(transmitted.into_unique(GFP_ATOMIC)?);
    cx.receive(transmitted);
    Ok(())
}
