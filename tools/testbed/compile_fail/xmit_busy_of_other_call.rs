//@ error: none lifetime may not live long enough
// SPDX-License-Identifier: GPL-2.0

//! The packets of two calls are not interchangeable.

#![forbid(unsafe_code)]

use kernel::net::{
    queue::Xmit,
    skbuff::{
        DropReason,
        TxSkBuff, //
    }, //
};

//~ pub fn start_xmit<'call, 'a>(skb: TxSkBuff<'a>, other: TxSkBuff<'call>) -> Xmit<'call> {
pub fn start_xmit<'call, 'a>(skb: TxSkBuff<'call>, other: TxSkBuff<'a>) -> Xmit<'call> {
    skb.drop_with(DropReason::NotSpecified);
    Xmit::Busy(other)
}
