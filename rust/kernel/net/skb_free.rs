// SPDX-License-Identifier: GPL-2.0

//! Freeing transmitted packets in bulk.
//!
//! When a NIC reports that it has sent packets, the driver usually finds several at once. Instead
//! of freeing each of them individually, an [`SkbFreeList`] gathers them and frees them together:
//! the memory goes to the CPU's cache of packet heads at once, and the overflow goes to the slab
//! allocator in one call.
//!
//! Not every packet can be freed in bulk: clones, packets with other owners, packets allocated on
//! another CPU, and all packets if this is netpoll are freed individually. The list takes care of
//! that, and counts them in [`BulkStats`].
//!
//! C header: [`include/linux/skbuff.h`](srctree/include/linux/skbuff.h)

use super::{
    ablation,
    napi::Poll,
    skbuff::SkBuff, //
};
use crate::{
    bindings,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};
use core::mem::MaybeUninit;

#[cfg(all(CONFIG_KUNIT = "y", CONFIG_PAGE_POOL))]
mod page_tests;
pub(super) mod tests;

/// Number of packets that a list gathers before it frees them.
pub const CAPACITY: usize = 64;

/// Packets that are to be freed together.
///
/// A list lives inside of one run of a poll function, which the reference to [`Poll`] proves:
/// freeing in bulk is correct in softirq context only, and with the genuine budget. It frees the
/// packets whenever it is full, and the rest when it is dropped.
///
/// # Invariants
///
/// `len` is at most [`CAPACITY`]. The first `len` elements of `skbs` are initialised and owned by
/// the list.
///
/// # Examples
///
/// ```
/// use kernel::net::{
///     napi::Poll,
///     skb_free::{
///         BulkStats,
///         SkbFreeList, //
///     },
///     skbuff::SkBuff, //
/// };
///
/// fn free_all(cx: &Poll<'_>, stats: &BulkStats, sent: impl Iterator<Item = SkBuff>) {
///     let mut free = SkbFreeList::new(cx, stats);
///     for skb in sent {
///         free.push(skb);
///     }
///     // The rest of the list is freed here.
/// }
/// ```
///
/// It cannot outlive the poll function:
///
/// ```ignore
/// fn poll<'a>(cx: &Poll<'_>, stats: &'a BulkStats) -> SkbFreeList<'a> {
///     SkbFreeList::new(cx, stats) // Does not compile: `cx` does not live long enough.
/// }
/// ```
pub struct SkbFreeList<'a> {
    cx: &'a Poll<'a>,
    stats: &'a BulkStats,
    len: usize,
    skbs: [MaybeUninit<SkBuff>; CAPACITY],
}

impl<'a> SkbFreeList<'a> {
    /// Returns an empty list, which counts the packets that it frees in `stats`.
    #[inline]
    pub fn new(cx: &'a Poll<'a>, stats: &'a BulkStats) -> Self {
        // INVARIANT: The list is empty.
        Self {
            cx,
            stats,
            len: 0,
            skbs: [const { MaybeUninit::uninit() }; CAPACITY],
        }
    }

    /// Puts a packet on the list, and first frees the packets on it if it is full.
    #[inline(always)]
    pub fn push(&mut self, skb: SkBuff) {
        if ablation::is_off!(free) {
            self.free_alone(skb);
            return;
        }
        match self.skbs.get_mut(self.len) {
            Some(place) => {
                place.write(skb);
                // INVARIANT: One more element is initialised.
                self.len += 1;
            }
            None => self.push_full(skb),
        }
    }

    /// Frees all packets on the list and puts another one there.
    #[inline(never)]
    fn push_full(&mut self, skb: SkBuff) {
        self.flush();
        // There is a place now. If there were none, `skb` would be freed when it is dropped.
        if let Some(place) = self.skbs.get_mut(self.len) {
            place.write(skb);
            // INVARIANT: One more element is initialised.
            self.len += 1;
        }
    }

    /// Frees a packet that is on no list.
    #[inline(never)]
    fn free_alone(&self, skb: SkBuff) {
        // SAFETY: The packet is ours, and given up here. The budget comes from the core.
        unsafe { bindings::napi_consume_skb(skb.into_raw().as_ptr(), self.cx.raw_budget()) };
    }

    /// Frees all packets on the list.
    #[inline]
    pub fn flush(&mut self) {
        // INVARIANT: The list gives up all elements.
        let len = core::mem::take(&mut self.len);
        if len == 0 {
            return;
        }

        // SAFETY:
        // - By the type invariants, the array begins with `len` packets that we own and now give
        //   up. `SkBuff` is a transparent wrapper of a pointer to the packet, which is not null.
        // - The budget comes from the core: `cx` proves that this is the poll function called
        //   with it, in softirq context unless the budget is zero.
        let bulk = unsafe {
            bindings::napi_consume_skb_bulk(
                self.skbs.as_mut_ptr().cast::<*mut bindings::sk_buff>(),
                // CAST: `len` is at most `CAPACITY`.
                len as c_uint,
                self.cx.raw_budget(),
            )
        };
        self.stats.add(len, bulk as usize);
    }
}

impl Drop for SkbFreeList<'_> {
    #[inline]
    fn drop(&mut self) {
        self.flush();
    }
}

/// Number of classes into which [`BulkStats`] sorts bulk calls.
pub const CLASSES: usize = CAPACITY.ilog2() as usize + 1;

/// Statistics of freeing in bulk.
///
/// Written by one poll function, and read in any context. If several poll functions write to the
/// same statistics, counts can get lost.
///
/// # Examples
///
/// ```
/// use kernel::net::skb_free::BulkStats;
///
/// let stats = BulkStats::new();
/// assert_eq!(stats.calls(), [0; 7]);
/// assert_eq!(BulkStats::CLASS_NAMES[2], "4_7");
/// ```
pub struct BulkStats {
    calls: [Atomic<u64>; CLASSES],
    packets: Atomic<u64>,
    alone: Atomic<u64>,
}

impl BulkStats {
    /// The sizes of bulk calls that each class counts.
    pub const CLASS_NAMES: [&'static str; CLASSES] =
        ["1", "2_3", "4_7", "8_15", "16_31", "32_63", "64"];

    /// Returns statistics with all counts zero.
    pub const fn new() -> Self {
        Self {
            calls: [const { Atomic::new(0) }; CLASSES],
            packets: Atomic::new(0),
            alone: Atomic::new(0),
        }
    }

    /// Number of calls that freed packets in bulk, by the number of packets; see
    /// [`Self::CLASS_NAMES`].
    pub fn calls(&self) -> [u64; CLASSES] {
        self.calls.each_ref().map(|calls| calls.load(Relaxed))
    }

    /// Number of packets freed in bulk.
    pub fn packets(&self) -> u64 {
        self.packets.load(Relaxed)
    }

    /// Number of packets that were freed individually, because they could not be freed in bulk.
    pub fn alone(&self) -> u64 {
        self.alone.load(Relaxed)
    }

    /// Counts a call with `len` packets, of which `bulk` were freed in bulk.
    #[inline]
    fn add(&self, len: usize, bulk: usize) {
        // There is one writer, so these need not be read-modify-write operations.
        let add = |counter: &Atomic<u64>, count: usize| {
            counter.store(counter.load(Relaxed).wrapping_add(count as u64), Relaxed)
        };

        if let Some(calls) = bulk
            .checked_ilog2()
            .and_then(|class| self.calls.get(class as usize))
        {
            add(calls, 1);
            add(&self.packets, bulk);
        }
        if bulk < len {
            add(&self.alone, len - bulk);
        }
    }
}

impl Default for BulkStats {
    fn default() -> Self {
        Self::new()
    }
}
