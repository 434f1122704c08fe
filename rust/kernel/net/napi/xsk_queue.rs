// SPDX-License-Identifier: GPL-2.0

//! Queues with pools of users' memory.

use super::{
    Napi,
    Orphans,
    XskPool,
    XskRoom, //
};

use crate::{
    prelude::*,
    sync::Arc, //
};

impl Orphans {
    /// The pool of users' memory that is bound to a queue, if pools are in use.
    fn pool(&self, queue: u16) -> Option<Arc<XskPool>> {
        let objects = self.objects.lock();
        let (_, pool) = objects.pools.iter().find(|(of, _)| *of == queue)?;

        pool.takes_rings().then(|| pool.clone())
    }

    /// Binds a pool to a queue, which has none. Returns whether pools are in use.
    pub(in crate::net) fn add_pool(&self, queue: u16, pool: Arc<XskPool>) -> Result<bool> {
        let objects = &mut *self.objects.lock();

        pool.take_rings(objects.are_pools_in_use);
        objects.pools.push((queue, pool), GFP_KERNEL)?;
        Ok(objects.are_pools_in_use)
    }

    /// Has pools in use from now on, or not: their rings are to be made, or to go. They are while
    /// the device has a program. Without one, the core lets users attach a program to the stack's
    /// packets (`xdpgeneric`), which takes frames of the same pools, with a lock that a poll
    /// function does not know.
    pub(in crate::net) fn use_pools(&self, are_in_use: bool) {
        let objects = &mut *self.objects.lock();

        objects.are_pools_in_use = are_in_use;
        for (_, pool) in &objects.pools {
            pool.take_rings(are_in_use);
        }
    }

    /// Has pools take frames in several buffers from now on, or not: see [`XskPool::take_parts`].
    pub(in crate::net) fn take_parts(&self, takes_parts: bool) {
        for (_, pool) in &self.objects.lock().pools {
            pool.take_parts(takes_parts);
        }
    }

    /// Whether a queue lacks the ring of its pool, if pools are in use.
    pub(in crate::net) fn lacks_ring(&self, queue: u16) -> bool {
        self.pool(queue).is_some_and(|pool| !pool.has_ring())
    }

    /// A queue whose pool has rings.
    pub(in crate::net) fn queue_with_rings(&self) -> Option<u16> {
        let objects = self.objects.lock();
        let mut found = objects.pools.iter().filter(|(_, pool)| pool.rings() != 0);

        found.next().map(|(queue, _)| *queue)
    }

    /// A queue whose pool no socket has any more.
    ///
    /// # Safety
    ///
    /// RTNL must be held, so that C unbinds no pool meanwhile.
    pub(in crate::net) unsafe fn queue_without_users(&self) -> Option<u16> {
        let objects = self.objects.lock();
        // SAFETY: By the safety requirements: a pool that is listed is bound.
        let mut found = objects
            .pools
            .iter()
            .filter(|(_, pool)| !unsafe { pool.has_users() });

        found.next().map(|(queue, _)| *queue)
    }

    /// Takes the pool of a queue out, if it has one.
    pub(in crate::net) fn take_pool(&self, queue: u16) -> Option<Arc<XskPool>> {
        let pools = &mut self.objects.lock().pools;
        let place = pools.iter().position(|(of, _)| *of == queue)?;

        pools.remove(place).ok().map(|(_, pool)| pool)
    }

    /// Whether there are pools.
    pub(in crate::net) fn has_pools(&self) -> bool {
        !self.objects.lock().pools.is_empty()
    }

    /// The least MTU of those that a function finds for the room of each pool, if there are any.
    pub(in crate::net) fn max_mtu(&self, of: impl Fn(XskRoom) -> u32) -> Option<u32> {
        let objects = self.objects.lock();

        objects.pools.iter().map(|(_, pool)| of(pool.room())).min()
    }
}

impl Napi {
    /// The pool of users' memory that is bound to the queue of this instance, if the device has a
    /// program: its receive ring is to be an [`XskRing`](crate::net::xdp::xsk::XskRing).
    ///
    /// Context: process context, with the lock of the device's operations held.
    pub fn xsk_pool(&self) -> Option<Arc<XskPool>> {
        self.orphans.pool(self.queue()?)
    }

    /// Counts a ring of this instance, which is about to be made with a pool: see
    /// [`XskPool::add_ring`].
    pub(in crate::net) fn add_xsk_ring(&self, pool: &XskPool, room: XskRoom) -> Result {
        // SAFETY: By the type invariants, the instance was added to a device.
        let dev = unsafe { (*self.as_raw()).dev };

        pool.add_ring(dev, self.queue().ok_or(EINVAL)?, room)
    }

    /// The number of its queue.
    fn queue(&self) -> Option<u16> {
        // SAFETY: By the type invariants, the instance was added to a device, at this index.
        let index = unsafe { (*self.as_raw()).index };

        u16::try_from(index).ok()
    }
}
