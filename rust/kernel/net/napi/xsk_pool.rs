// SPDX-License-Identifier: GPL-2.0

//! Pools of users' memory.

use crate::{
    bindings,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

use core::ptr::NonNull;

/// The frames of a user's sockets, which are bound to a queue: `struct xsk_buff_pool` in C.
///
/// A driver finds it by [`Napi::xsk_pool`](super::Napi::xsk_pool) when it makes a receive ring. To
/// keep it longer is of no use.
///
/// # Invariants
///
/// - As long as `is_there`, `raw` is bound to `queue` of `dev`, and mapped for the parent of that.
///   It is set to false with the lock of the device's operations held, when no ring is in use by
///   an instance that is enabled.
/// - `rings` is the number of rings with this pool. It does not grow when `takes_rings` is false.
pub struct XskPool {
    raw: NonNull<bindings::xsk_buff_pool>,
    dev: *mut bindings::net_device,
    queue: u16,
    frame_len: u32,
    rings: Atomic<u32>,
    takes_rings: Atomic<bool>,
    is_there: Atomic<bool>,
}

// SAFETY: A pool is not tied to a thread. What accesses it asks for what it takes.
unsafe impl Send for XskPool {}

// SAFETY: As for `Send`. The fields change with the lock of the device's operations held.
unsafe impl Sync for XskPool {}

impl XskPool {
    /// Takes over a pool of frames of `frame_len` bytes that is about to be bound to a queue.
    ///
    /// # Safety
    ///
    /// `raw` must be valid, bound to that queue and mapped, until [`Self::end`].
    pub(in crate::net) unsafe fn new(
        raw: NonNull<bindings::xsk_buff_pool>,
        dev: *mut bindings::net_device,
        queue: u16,
        frame_len: u32,
    ) -> Result<Arc<Self>> {
        // INVARIANT: By the safety requirements. There is no ring.
        let this = Self {
            raw,
            dev,
            queue,
            frame_len,
            rings: Atomic::new(0),
            takes_rings: Atomic::new(false),
            is_there: Atomic::new(true),
        };

        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// The number of bytes of a frame that the NIC may write.
    pub fn frame_len(&self) -> u32 {
        self.frame_len
    }

    /// The pool, for those who know that it is there.
    #[inline(always)]
    pub(in crate::net) fn as_raw(&self) -> *mut bindings::xsk_buff_pool {
        self.raw.as_ptr()
    }

    /// Whether the pool is there. With the lock of the device's operations held.
    pub(in crate::net) fn is_there(&self) -> bool {
        self.is_there.load(Relaxed)
    }

    /// Counts a ring of that queue, which is about to be made. Fails if the pool is bound to
    /// another one, or is about to go. With the lock of the device's operations held.
    pub(super) fn add_ring(&self, dev: *mut bindings::net_device, queue: u16) -> Result {
        if !self.takes_rings.load(Relaxed) || dev != self.dev || queue != self.queue {
            return Err(EINVAL);
        }
        self.rings.fetch_add(1, Relaxed);
        Ok(())
    }

    /// A ring is gone.
    pub(in crate::net) fn remove_ring(&self) {
        self.rings.fetch_sub(1, Relaxed);
    }

    /// The number of rings.
    pub(in crate::net) fn rings(&self) -> u32 {
        self.rings.load(Relaxed)
    }

    /// Whether it takes rings. With the lock of the device's operations held.
    pub(super) fn takes_rings(&self) -> bool {
        self.takes_rings.load(Relaxed)
    }

    /// Takes rings from now on, or not. With the lock of the device's operations held.
    pub(super) fn take_rings(&self, takes_rings: bool) {
        self.takes_rings.store(takes_rings, Relaxed);
    }

    /// Refuses other rings from now on. With the lock of the device's operations held.
    pub(in crate::net) fn leave(&self) {
        self.take_rings(false);
    }

    /// The pool is about to go.
    ///
    /// # Safety
    ///
    /// The lock of the device's operations must be held. After [`Self::leave`], all rings must have
    /// gone that instances have which are enabled, or will be again.
    pub(in crate::net) unsafe fn end(&self) {
        // INVARIANT: By the safety requirements.
        self.is_there.store(false, Relaxed);
    }
}
