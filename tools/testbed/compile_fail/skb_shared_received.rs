//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! The stack notes in a received packet what its headers are: there must be no other owner.

#![forbid(unsafe_code)]

use kernel::{
    net::{
        napi::Poll,
        skbuff::SkBuff, //
    },
    prelude::*, //
};

pub fn loop_back(cx: &Poll<'_>, transmitted: SkBuff) -> Result<(), SkBuff> {
    //~ cx.receive_cloned(transmitted.unshare(GFP_ATOMIC)?);
    cx.receive_cloned(transmitted);
    Ok(())
}
