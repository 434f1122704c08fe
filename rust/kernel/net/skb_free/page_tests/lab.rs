// SPDX-License-Identifier: GPL-2.0

//! A page pool, and a run of a poll function that frees packets with its pages.

use super::super::{
    tests::context::in_poll,
    BulkStats,
    SkbFreeList, //
};
use crate::{
    bindings,
    net::{
        napi::Poll,
        page_pool::fill_new,
        skbuff::SkBuff, //
    },
    prelude::*,
    sync::Arc, //
};
use core::ptr::NonNull;

/// Bytes in front of a packet.
const HEADROOM: u32 = 64;

/// A page pool that is not mapped for a device.
pub(super) struct Pool(pub(super) NonNull<bindings::page_pool>);

// SAFETY: A test uses its pool in one context at a time.
unsafe impl Send for Pool {}

// SAFETY: As above.
unsafe impl Sync for Pool {}

impl Pool {
    /// A pool whose ring holds `size` pages of that order.
    pub(super) fn new(order: u32, size: u32) -> Result<Self> {
        let mut params = bindings::page_pool_params::default();

        params.__bindgen_anon_1.fast.order = order;
        params.__bindgen_anon_1.fast.pool_size = size;
        params.__bindgen_anon_1.fast.nid = bindings::NUMA_NO_NODE;
        // SAFETY: The parameters are valid.
        let pool = crate::error::from_err_ptr(unsafe { bindings::page_pool_create(&params) })?;
        Ok(Self(NonNull::new(pool).ok_or(ENOMEM)?))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: The pool is ours. Pages that are still in use keep its memory.
        unsafe { bindings::page_pool_destroy(self.0.as_ptr()) };
    }
}

/// The places that the pages of a pool are in, and the counters of the free list.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    /// Packets freed in bulk.
    pub(super) bulk: u64,
    /// Packets freed individually.
    pub(super) alone: u64,
    /// Pages in the cache of the pool's consumer.
    pub(super) cached: usize,
    /// Pages in the ring of the pool.
    pub(super) ring: usize,
    /// Pages that are in use.
    pub(super) used: usize,
}

/// A run of a poll function that frees packets with pages of a pool.
pub(super) struct Lab<'a> {
    pub(super) cx: &'a Poll<'a>,
    pub(super) pool: &'a Pool,
    pub(super) stats: BulkStats,
}

impl Lab<'_> {
    /// Makes this CPU the one of the pool's consumer.
    pub(super) fn consume_here(&self) {
        // SAFETY: There is no other consumer, and the test stays on this CPU.
        unsafe { (*self.pool.0.as_ptr()).cpuid = bindings::raw_smp_processor_id() as c_int };
    }

    /// Number of pages that the cache of the consumer holds.
    pub(super) fn cache_len(&self) -> usize {
        // SAFETY: The pool is alive, and nothing else uses it now.
        unsafe { self.pool.0.as_ref() }.alloc.cache.len()
    }

    pub(super) fn page(&self) -> Option<NonNull<bindings::page>> {
        // SAFETY: Nothing else allocates from the pool.
        NonNull::new(unsafe {
            bindings::page_pool_alloc_pages(self.pool.0.as_ptr(), bindings::GFP_ATOMIC)
        })
    }

    /// A packet that consists of a page, from the byte `offset` on.
    pub(super) fn packet_at(&self, offset: usize) -> Option<SkBuff> {
        build(self.page()?, offset, bindings::PAGE_SIZE as u32)
    }

    pub(super) fn packet(&self) -> Option<SkBuff> {
        self.packet_at(0)
    }

    pub(super) fn packets(&self, count: usize) -> Option<KVec<SkBuff>> {
        let mut packets = KVec::with_capacity(count, GFP_ATOMIC).ok()?;

        for _ in 0..count {
            packets.push(self.packet()?, GFP_ATOMIC).ok()?;
        }
        Some(packets)
    }

    /// Frees packets by means of a list.
    pub(super) fn free(&self, packets: impl IntoIterator<Item = SkBuff>) {
        let mut list = SkbFreeList::new(self.cx, &self.stats);

        packets.into_iter().for_each(|skb| list.push(skb));
    }

    pub(super) fn seen(&self) -> Seen {
        // SAFETY: The pool is alive, and nothing else uses it now.
        unsafe {
            let pool = self.pool.0.as_ref();
            let queue = pool.ring.queue;
            let ring = (0..pool.ring.size as usize)
                .filter(|at| !(*queue.add(*at)).is_null())
                .count();
            let cached = pool.alloc.count as usize;
            let held = pool
                .pages_state_hold_cnt
                .wrapping_sub(pool.pages_state_release_cnt.counter as u32);

            Seen {
                bulk: self.stats.packets(),
                alone: self.stats.alone(),
                cached,
                ring,
                used: held as usize - cached - ring,
            }
        }
    }
}

/// Builds a packet around a buffer.
pub(super) fn build(page: NonNull<bindings::page>, offset: usize, size: u32) -> Option<SkBuff> {
    // SAFETY: The page is ours, and has `size` bytes there. This is softirq context.
    let skb = unsafe {
        let start = bindings::page_address(page.as_ptr()).wrapping_byte_add(offset);
        NonNull::new(bindings::napi_build_skb(start, size))?
    };

    // SAFETY: The packet is new, and has that much room.
    unsafe {
        fill_new(skb, HEADROOM, 60);
        Some(SkBuff::from_raw(skb))
    }
}

/// Runs a test in softirq context, with a pool of `size` pages of that order.
pub(super) fn lab<R: Copy + Send + Sync + 'static>(
    order: u32,
    size: u32,
    budget: c_int,
    f: impl FnOnce(&Lab<'_>) -> Option<R> + Send + 'static,
) -> Result<R> {
    let pool = Arc::new(Pool::new(order, size)?, GFP_KERNEL)?;
    let theirs = pool.clone();

    // Their reference ends with the closure, so that the pool is destroyed in process context.
    in_poll(budget, move |cx| {
        f(&Lab {
            cx,
            pool: &theirs,
            stats: BulkStats::new(),
        })
    })?
    .ok_or(ENOMEM)
}
