// SPDX-License-Identifier: GPL-2.0

//! Packets that the core has handed to a queueing discipline.

use crate::{
    bindings,
    net::skbuff::SkBuff,
    prelude::*, //
};
use core::{
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    }, //
};

/// A packet that was given to a discipline to be enqueued.
///
/// Its links belong to the discipline, and then to the core again, which puts packets that come out
/// on lists of its own, as it does with those that are refused. Other references to the packet
/// share them. So a discipline gives back what it was given, and a [`SkBuff`] from elsewhere does
/// not become one of these. A packet that was kept, and that comes out of a discipline of another
/// device or queue, is dropped there.
///
/// # Invariants
///
/// Nothing else uses the links and the control block of the packet.
#[repr(transparent)]
pub struct QueuedSkBuff(SkBuff);

impl QueuedSkBuff {
    /// Takes over a packet that is to be enqueued.
    ///
    /// # Safety
    ///
    /// As for [`SkBuff::from_raw`], and nothing else may use the links and the control block of the
    /// packet as long as the result exists.
    #[inline(always)]
    pub(super) unsafe fn from_raw(skb: NonNull<bindings::sk_buff>) -> Self {
        // INVARIANT: By the safety requirements.
        //
        // SAFETY: By the safety requirements.
        Self(unsafe { SkBuff::from_raw(skb) })
    }

    /// Whether `sch` may give the packet to the core: it is on the device of that, and for a queue
    /// to which that sends.
    ///
    /// The core takes both from the packet. If all packets of a discipline are for one queue, the
    /// core takes several at once, and locks that queue for all of them.
    ///
    /// # Safety
    ///
    /// `sch` must be a discipline that is in use.
    #[inline(always)]
    pub(super) unsafe fn may_leave(&self, sch: *mut bindings::Qdisc) -> bool {
        let mapping = self.queue_mapping();

        // SAFETY: By the safety requirements, its queue is one of a device, and both are valid.
        unsafe {
            let queue = (*sch).dev_queue;
            let dev = (*queue).dev;

            ptr::eq(self.device(), dev)
                && if (*sch).flags & bindings::TCQ_F_ONETXQUEUE != 0 {
                    ptr::eq((*dev)._tx.wrapping_add(mapping.into()), queue)
                } else {
                    c_uint::from(mapping) < (*dev).num_tx_queues
                }
        }
    }

    /// Gives up the reference without dropping it.
    #[inline(always)]
    pub(super) fn into_raw(self) -> NonNull<bindings::sk_buff> {
        self.0.into_raw()
    }
}

impl Deref for QueuedSkBuff {
    type Target = SkBuff;

    #[inline(always)]
    fn deref(&self) -> &SkBuff {
        &self.0
    }
}

impl From<QueuedSkBuff> for SkBuff {
    #[inline(always)]
    fn from(skb: QueuedSkBuff) -> Self {
        skb.0
    }
}
