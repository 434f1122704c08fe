// SPDX-License-Identifier: GPL-2.0

//! Packets that the core has handed to a queueing discipline.

use crate::{
    bindings,
    net::skbuff::SkBuff, //
};
use core::{
    ops::Deref,
    ptr::NonNull, //
};

/// A packet that was given to a discipline to be enqueued.
///
/// Its links belong to the discipline, and then to the core again, which puts packets that come out
/// on lists of its own, as it does with those that are refused. Other references to the packet
/// share them. So a discipline gives back what it was given, and a [`SkBuff`] from elsewhere does
/// not become one of these.
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
