//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! A packet with one owner may still have clones: GRO must not get it.

#![forbid(unsafe_code)]

use kernel::net::{
    napi::Poll,
    skbuff::UnsharedSkBuff, //
};

pub fn loop_back(cx: &Poll<'_>, transmitted: UnsharedSkBuff) {
    //~ cx.receive_cloned(transmitted);
    cx.receive(transmitted);
}
