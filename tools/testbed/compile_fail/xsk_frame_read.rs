//@ error: E0599 no method named `data`
// SPDX-License-Identifier: GPL-2.0

//! A user may write to its memory at any time: there is no reference to what is in it.

#![forbid(unsafe_code)]

use kernel::net::xdp::xsk::XskFrame;

pub fn len(frame: &XskFrame<'_>) -> usize {
    //~ frame.len() as usize
    frame.data().len()
}
