// SPDX-License-Identifier: GPL-2.0

//! Queues with pools of users' memory.

use super::{
    Napi,
    Orphans,
    XskPool, //
};

use crate::{
    prelude::*,
    sync::Arc, //
};

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

    /// Counts a ring of this instance, which is about to be made with a pool: see
    /// [`XskPool::add_ring`].
    pub(in crate::net) fn add_xsk_ring(&self, pool: &XskPool) -> Result {
        // SAFETY: By the type invariants, the instance was added to a device.
        let dev = unsafe { (*self.as_raw()).dev };

        pool.add_ring(dev, self.queue().ok_or(EINVAL)?)
    }

    /// The number of its queue.
    fn queue(&self) -> Option<u16> {
        // SAFETY: By the type invariants, the instance was added to a device, at this index.
        let index = unsafe { (*self.as_raw()).index };

        u16::try_from(index).ok()
    }
}
