// SPDX-License-Identifier: GPL-2.0

//! Socket buffers: the packets that travel through the network stack.
//!
//! C header: [`include/linux/skbuff.h`](srctree/include/linux/skbuff.h)
//!
//! A [`SkBuff`] owns one reference to a `struct sk_buff`. Its owner decides the
//! fate of the packet, and each of these decisions consumes it: hand it on, or
//! drop it with a [`DropReason`]. There is no way to use a packet after that,
//! to free it twice, or to lose one silently: a [`SkBuff`] that goes out of
//! scope is freed as a drop.

mod data;
mod lro;
mod offload;
mod owned;
mod segmentation;
mod tests;
mod timestamp;
mod tx;
mod unique;
mod users;

pub(in crate::net) use self::offload::set_protocol;
pub use self::{
    data::Frag,
    offload::{
        ChecksumKind,
        PartialChecksum,
        RxHash, //
    },
    owned::{
        DropReason,
        SkBuff, //
    },
    segmentation::{
        Segmentation, //
        SegmentedProtocol,
    },
    timestamp::TxTimestamp,
    tx::{
        Outgoing,
        TxSkBuff,
        Xmit, //
    },
    unique::UniqueSkBuff, //
};
