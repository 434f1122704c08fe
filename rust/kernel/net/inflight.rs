// SPDX-License-Identifier: GPL-2.0

//! Packets in flight: between transmission and completion.
//!
//! A packet that has been put into a transmit ring belongs to the NIC until the NIC reports that
//! it has been sent. Meanwhile the packet and its DMA mappings must be kept. The transmit function
//! adds packets, the poll function takes them out in the order in which they were added, and the
//! two run concurrently: the packets in flight are an array-based queue with one producer and one
//! consumer, see [`alf_queue`].
//!
//! The queue has one record per descriptor of the ring, so that the two advance in step: the slot
//! of a record is the index of its descriptor. A [`TxProducer`] maps a packet and has the driver
//! write the descriptors; a [`TxConsumer`] asks the driver which packets are done, removes their
//! mappings, and frees them in bulk. Drivers see bus addresses, but never hold a mapping, so none
//! can outlive its packet, and none can be forgotten: a record owns both.
//!
//! The NIC reads packets that are in flight, so these belong to the NAPI instance, as does the
//! memory of the ring, see [`Descriptors`]: to drop both ends frees nothing. That is done with the
//! queue vector, after the NIC was stopped, or before by [`TxConsumer::finish`].
//!
//! C headers: [`include/linux/dma-mapping.h`](srctree/include/linux/dma-mapping.h),
//! [`include/linux/skbuff.h`](srctree/include/linux/skbuff.h)
//!
//! # Examples
//!
//! ```
//! use kernel::{
//!     device::{
//!         Bound,
//!         Device, //
//!     },
//!     net::{
//!         inflight::{
//!             self,
//!             TxDesc,
//!             Limits,
//!             TxConsumer,
//!             TxProducer, //
//!         },
//!         napi::{
//!             Napi,
//!             Poll, //
//!         },
//!         queue::RingSize,
//!         skb_free::{
//!             BulkStats,
//!             SkbFreeList, //
//!         },
//!         skbuff::{
//!             DropReason,
//!             SkBuff, //
//!         }, //
//!     }, //
//! };
//!
//! const LIMITS: Limits = Limits {
//!     segment_len: 16 * 1024,
//!     packet_len: 9018,
//!     descriptors: 40,
//! };
//!
//! fn open<'a>(
//!     dev: &'a Device<Bound>,
//!     napi: &Napi,
//! ) -> Result<(TxProducer<'a>, TxConsumer<'a>)> {
//!     inflight::pair(dev, napi, RingSize::of::<512>(), LIMITS)
//! }
//!
//! fn start_xmit(tx: &mut TxProducer<'_>, skb: SkBuff) {
//!     let result = tx.submit(skb, 0, |slot, entry| {
//!         if let TxDesc::Segment(segment) = entry {
//!             // Write descriptor `slot`.
//!             let _ = (slot, segment.addr, segment.len, segment.last);
//!         }
//!     });
//!     match result {
//!         // Ring the doorbell, unless more packets follow at once.
//!         Ok(submitted) => {
//!             let _ = submitted.next_slot;
//!         }
//!         Err(refused) => refused.skb.drop_with(DropReason::NotSpecified),
//!     }
//! }
//!
//! fn poll(rx: &mut TxConsumer<'_>, cx: &Poll<'_>, stats: &BulkStats) {
//!     let mut free = SkbFreeList::new(cx, stats);
//!     let _done = rx.complete(&mut free, usize::MAX, |slot| {
//!         // Has the NIC written back descriptor `slot`?
//!         slot == 0
//!     });
//! }
//! ```

use super::{
    napi::Napi,
    queue::RingSize, //
};
use crate::{
    bindings,
    device::{
        Bound,
        Device, //
    },
    prelude::*,
    sync::alf_queue, //
};
use core::num::NonZero;

mod complete;
mod descriptors;
mod limits;
mod owner;
mod record;
mod split;
mod submit;
mod takes_tests;
mod tests;
mod timestamp_tests;

pub use complete::{
    Completed,
    Finished,
    TxConsumer, //
};
pub use descriptors::Descriptors;
pub use split::{
    Split,
    SplitSum, //
};
pub use submit::{
    Refusal,
    Refused,
    Segment,
    Submitted,
    TxDesc,
    TxProducer, //
};

use owner::RecordsOwner;
use record::Record;

/// The limits of a NIC.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Greatest number of bytes that one descriptor can describe. Longer segments are split.
    pub segment_len: u32,
    /// Greatest length of a packet that the NIC sends as it is, without what it adds. The stack
    /// compares that of routed packets with the MTU, but not those of packet sockets, nor
    /// segments that guests ask for.
    pub packet_len: u32,
    /// Greatest number of descriptors that one packet may need, including those for its context.
    pub descriptors: usize,
}

impl Limits {
    /// Stop a queue when fewer than this number of descriptors are free, of a ring of `len`.
    ///
    /// If no other packet follows at once (`more`), the next ones may be a list, which the stack
    /// takes out of the queueing discipline before it knows how much room there is: what does not
    /// fit goes back, packet by packet, and is dequeued again. So there must be room for a list of
    /// small packets then, or in a short ring for a part of it.
    pub const fn stop_below(self, len: usize, more: bool) -> usize {
        if more {
            self.descriptors
        } else {
            self.descriptors.saturating_add(self.list(len))
        }
    }

    /// The number of free descriptors at which a queue is woken that was stopped by this, of a ring
    /// of `len`: there is room for two packets and a list, or in a short ring for one and for half
    /// of the rest.
    pub const fn wake_at(self, len: usize) -> usize {
        let packet = self.descriptors;

        min(
            packet.saturating_mul(2).saturating_add(self.list(len)),
            packet.saturating_add(len) / 2,
        )
    }

    /// The room for a list of small packets.
    const fn list(self, len: usize) -> usize {
        min(LIST, len.saturating_sub(self.descriptors) / 4)
    }
}

/// The most packets that a run of a queueing discipline hands over, unless users change
/// `net.core.dev_weight` or its bias.
const LIST: usize = 64;

const fn min(left: usize, right: usize) -> usize {
    if left < right {
        left
    } else {
        right
    }
}

/// Creates the two ends for a ring of `napi` with `len` descriptors.
///
/// `dev` must be the parent of the network device.
///
/// One descriptor always stays unused, because for most NICs a ring in which the tail has reached
/// the head is empty.
///
/// # Errors
///
/// [`EINVAL`] if `limits` are zero, or if `dev` is another device; [`ENOMEM`] if there is no
/// memory. May sleep.
pub fn pair<'a>(
    dev: &'a Device<Bound>,
    napi: &Napi,
    len: RingSize,
    limits: Limits,
) -> Result<(TxProducer<'a>, TxConsumer<'a>)> {
    napi.check_parent(dev)?;

    // SAFETY: The instance has been added to a device. The producer is part of what the driver
    // keeps of that device: there is no other place in which a driver can keep a value whose
    // lifetime it does not know, see [`Driver`](super::device::Driver). All of this is dropped
    // before the network device is freed. The parent is bound until the instance has dropped its
    // objects.
    unsafe { pair_of(dev, (*napi.as_raw()).dev, Some(napi), len, limits) }
}

/// Makes the two ends of a ring, whose packets `napi` keeps if there is one.
///
/// # Safety
///
/// `netdev` must be null, or a valid network device that outlives the producer. `dev` must be bound
/// until `napi` has dropped its objects.
unsafe fn pair_of<'a>(
    dev: &'a Device<Bound>,
    netdev: *mut bindings::net_device,
    napi: Option<&Napi>,
    len: RingSize,
    limits: Limits,
) -> Result<(TxProducer<'a>, TxConsumer<'a>)> {
    let segment_len = NonZero::new(limits.segment_len).ok_or(EINVAL)?;
    if limits.descriptors == 0 || limits.packet_len == 0 {
        return Err(EINVAL);
    }

    let (producer, consumer) = alf_queue::spsc::<Record<'a>>(len.get(), GFP_KERNEL)?;
    // SAFETY: By the safety requirements.
    let attach = |napi| unsafe { RecordsOwner::attach(napi, &producer) };
    let owner = napi.map(attach).transpose()?;

    // INVARIANT: By the safety requirements.
    Ok((
        TxProducer {
            dev,
            netdev,
            records: producer,
            segment_len,
            packet_len: limits.packet_len,
            single_len: limits.packet_len.min(limits.segment_len),
            max_descriptors: limits.descriptors,
            _keeper: owner.clone(),
        },
        TxConsumer {
            records: consumer,
            owner,
        },
    ))
}
