// SPDX-License-Identifier: GPL-2.0

//! Packets that a queueing discipline drops.

use super::QueuedSkBuff;
use crate::bindings;
use core::ptr::{
    self,
    NonNull, //
};

/// Why a discipline drops a packet.
///
/// The kernel reports the reason through the `qdisc:qdisc_drop` tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum QdiscDropReason {
    /// None of the other reasons.
    Generic = bindings::qdisc_drop_reason_QDISC_DROP_GENERIC,
    /// The queue is full.
    OverLimit = bindings::qdisc_drop_reason_QDISC_DROP_OVERLIMIT,
    /// To signal congestion.
    Congested = bindings::qdisc_drop_reason_QDISC_DROP_CONGESTED,
    /// There are too many flows.
    MaxFlows = bindings::qdisc_drop_reason_QDISC_DROP_MAXFLOWS,
    /// Too many packets of the flow are waiting.
    FlowLimit = bindings::qdisc_drop_reason_QDISC_DROP_FLOW_LIMIT,
}

/// A packet that was not enqueued.
pub struct Rejected {
    pub(super) skb: QueuedSkBuff,
    pub(super) reason: QdiscDropReason,
}

impl Rejected {
    /// Rejects a packet.
    #[inline(always)]
    pub fn new(skb: QueuedSkBuff, reason: QdiscDropReason) -> Self {
        Self { skb, reason }
    }
}

/// Packets that are dropped after they were enqueued.
///
/// They are freed later.
///
/// # Invariants
///
/// `first` is null or the first one of a list of packets that are linked by `next`, each of which
/// we own a reference to.
pub struct Drops {
    first: *mut bindings::sk_buff,
}

impl Drops {
    pub(super) fn new() -> Self {
        // INVARIANT: There are none.
        Self {
            first: ptr::null_mut(),
        }
    }

    /// Drops a packet.
    #[inline]
    pub fn push(&mut self, skb: QueuedSkBuff) {
        let raw = skb.into_raw();

        // INVARIANT: There is one more, which we own.
        //
        // SAFETY: The packet is valid, and ours. By its type invariants, so are its links.
        unsafe { set_next(raw, self.first) };
        self.first = raw.as_ptr();
    }
}

impl Drop for Drops {
    fn drop(&mut self) {
        // SAFETY: By the type invariants, we own a reference to each packet of the list, and this
        // is not a hard interrupt: no callback of a discipline runs in one.
        unsafe {
            bindings::kfree_skb_list_reason(
                self.first,
                bindings::skb_drop_reason_SKB_DROP_REASON_QUEUE_PURGE,
            )
        };
    }
}

/// Puts a packet in front of a list, which may be empty.
///
/// # Safety
///
/// `skb` must be valid, and not be in use by others.
#[inline(always)]
unsafe fn set_next(skb: NonNull<bindings::sk_buff>, next: *mut bindings::sk_buff) {
    // SAFETY: By the safety requirements.
    unsafe { (*skb.as_ptr()).__bindgen_anon_1.__bindgen_anon_1.next = next };
}
