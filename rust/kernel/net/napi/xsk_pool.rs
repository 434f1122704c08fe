// SPDX-License-Identifier: GPL-2.0

//! Pools of users' memory.

use super::{
    Napi,
    Orphans, //
};

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
/// A driver finds it by [`Napi::xsk_pool`] when it makes a receive ring. To keep it longer is of no
/// use.
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
            takes_rings: Atomic::new(true),
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

    /// Counts a ring of `napi`, which is about to be made. Fails if that is not the instance of the
    /// pool's queue, or if the pool is about to go. With the lock of the device's operations held.
    pub(in crate::net) fn add_ring(&self, napi: &Napi) -> Result {
        if !self.takes_rings.load(Relaxed) {
            return Err(EINVAL);
        }
        // SAFETY: By the type invariants, the instance was added to a device.
        let dev = unsafe { (*napi.as_raw()).dev };
        if dev != self.dev || napi.queue() != Some(self.queue) {
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

    /// Refuses other rings from now on. With the lock of the device's operations held.
    pub(in crate::net) fn leave(&self) {
        self.takes_rings.store(false, Relaxed);
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

impl Orphans {
    /// The pool of users' memory that is bound to a queue.
    fn pool(&self, queue: u16) -> Option<Arc<XskPool>> {
        let objects = self.objects.lock();
        let (_, pool) = objects.pools.iter().find(|(of, _)| *of == queue)?;

        Some(pool.clone())
    }

    /// Binds a pool to a queue, which has none.
    pub(in crate::net) fn add_pool(&self, queue: u16, pool: Arc<XskPool>) -> Result {
        self.objects.lock().pools.push((queue, pool), GFP_KERNEL)?;
        Ok(())
    }

    /// Takes the pool of a queue out, if it has one.
    pub(in crate::net) fn take_pool(&self, queue: u16) -> Option<Arc<XskPool>> {
        let pools = &mut self.objects.lock().pools;
        let place = pools.iter().position(|(of, _)| *of == queue)?;

        pools.remove(place).ok().map(|(_, pool)| pool)
    }

    /// The number of bytes of the shortest frames of all pools, if there are any.
    pub(in crate::net) fn frame_len(&self) -> Option<u32> {
        let objects = self.objects.lock();
        let lens = objects.pools.iter().map(|(_, pool)| pool.frame_len());

        lens.min()
    }
}

impl Napi {
    /// The pool of users' memory that is bound to the queue of this instance: its receive ring is
    /// to be an [`XskRing`](crate::net::xdp::xsk::XskRing).
    ///
    /// Context: process context, with the lock of the device's operations held.
    pub fn xsk_pool(&self) -> Option<Arc<XskPool>> {
        self.orphans.pool(self.queue()?)
    }

    /// The number of its queues.
    fn queue(&self) -> Option<u16> {
        // SAFETY: By the type invariants, the instance was added to a device, at this index.
        let index = unsafe { (*self.as_raw()).index };

        u16::try_from(index).ok()
    }
}
