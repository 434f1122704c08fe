// SPDX-License-Identifier: GPL-2.0

//! The index arithmetic and the memory ordering of an array-based queue.
//!
//! Nothing here depends on the rest of the kernel: atomic operations go through [`AtomicIndex`], so
//! that the same source runs under a model checker on the host.
//!
//! Positions are free-running 32-bit counters: the low bits of a position select its slot, and the
//! difference of two positions is correct even after the counters have wrapped, because a queue
//! holds far fewer than 2^32 elements.

use core::cell::Cell;

/// The operations that the queue needs on an atomic position.
///
/// The ring passes elements between contexts with plain accesses, and each direction needs one edge
/// from "done with the slots" on one side to "may access the slots" on the other side:
///
/// - The producer writes slots, then publishes its position. The consumer reads that position,
///   then reads the slots. Without release, the position could become visible before the
///   elements; without acquire, the elements could be read before the position.
/// - The consumer moves elements out of slots, then publishes its position. The producer reads
///   that position, then overwrites the slots. Without release, the overwrite could overtake the
///   reads. The acquire orders the plain writes after the load of the position; a relaxed load
///   and the branch on it would only be enough for marked writes, since the memory model does not
///   promise that compilers keep a control dependency to plain ones.
///
/// A side with a single user keeps its own position in private memory and never reads the shared
/// one, so it needs no third operation. Several users of a side need [`Self::wait_for`] and more,
/// see [`reserve`]. A full barrier is never needed.
///
/// [`reserve`]: super::reserve
pub(crate) trait AtomicIndex {
    /// Reads the position of the other side, with acquire ordering.
    fn load_acquire(&self) -> u32;

    /// Publishes this side's position, with release ordering.
    fn store_release(&self, position: u32);

    /// Waits until this side's position is `position`, with acquire ordering.
    fn wait_for(&self, position: u32);
}

/// The producer's private view of a ring.
///
/// # Invariants
///
/// - `next` is the position that the producer published last; the consumer has not passed it.
/// - `seen` is a position that the consumer has published, and `next - seen <= capacity`.
pub(crate) struct ProducerView {
    next: u32,
    // A cache of the other side's position: refreshing it is not visible to callers.
    seen: Cell<u32>,
}

impl ProducerView {
    /// Returns the view of a ring of which both positions are `start`.
    pub(crate) const fn new(start: u32) -> Self {
        // INVARIANT: The ring is empty.
        Self {
            next: start,
            seen: Cell::new(start),
        }
    }

    /// Returns the position that the next element gets.
    #[inline(always)]
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    /// Returns how many slots were free when the consumer's position was last read.
    #[inline(always)]
    pub(crate) fn free_seen(&self, capacity: u32) -> u32 {
        // By the type invariants this does not wrap.
        capacity.wrapping_sub(self.next.wrapping_sub(self.seen.get()))
    }

    /// Reads the consumer's position and returns how many slots are free.
    #[inline(always)]
    pub(crate) fn free(&self, capacity: u32, consumer: &impl AtomicIndex) -> u32 {
        // INVARIANT: The consumer publishes positions that it reached, which never pass `next`.
        self.seen.set(consumer.load_acquire());
        self.free_seen(capacity)
    }

    /// Checks that `wanted` slots are free; looks at the consumer's position only if the slots
    /// known to be free are not enough. There is never room for more than `capacity`.
    #[inline(always)]
    pub(crate) fn has_room(
        &self,
        wanted: usize,
        capacity: u32,
        consumer: &impl AtomicIndex,
    ) -> bool {
        // CAST: `usize` has at least 32 bits wherever the kernel runs.
        wanted <= self.free_seen(capacity) as usize
            || wanted <= self.free(capacity, consumer) as usize
    }

    /// Publishes `count` elements that were written from [`Self::next`] on.
    ///
    /// `count` must not exceed the room that [`Self::has_room`] found.
    #[inline(always)]
    pub(crate) fn publish(&mut self, count: u32, producer: &impl AtomicIndex) {
        // INVARIANT: `count` slots are free, so `next - seen` stays within the capacity.
        self.next = self.next.wrapping_add(count);
        producer.store_release(self.next);
    }
}

/// The consumer's private view of a ring.
///
/// # Invariants
///
/// - All elements before `next` have been moved out of their slots by the consumer.
/// - `seen` is a position that the producer has published, at or after `next`.
pub(crate) struct ConsumerView {
    next: u32,
    // A cache of the other side's position: refreshing it is not visible to callers.
    seen: Cell<u32>,
}

impl ConsumerView {
    /// Returns the view of a ring of which both positions are `start`.
    pub(crate) const fn new(start: u32) -> Self {
        // INVARIANT: The ring is empty.
        Self {
            next: start,
            seen: Cell::new(start),
        }
    }

    /// Returns the position of the oldest element.
    #[inline(always)]
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    /// Returns how many elements there were when the producer's position was last read.
    #[inline(always)]
    pub(crate) fn len_seen(&self) -> u32 {
        self.seen.get().wrapping_sub(self.next)
    }

    /// Reads the producer's position and returns how many elements there are.
    #[inline(always)]
    pub(crate) fn len(&self, producer: &impl AtomicIndex) -> u32 {
        // INVARIANT: The producer's position never goes back, so it is still at or after `next`.
        self.seen.set(producer.load_acquire());
        self.len_seen()
    }

    /// Checks that there is an element; looks at the producer's position only if all elements
    /// known of have been taken.
    #[inline(always)]
    pub(crate) fn has_element(&self, producer: &impl AtomicIndex) -> bool {
        self.len_seen() != 0 || self.len(producer) != 0
    }

    /// Notes that the oldest element has been moved out of its slot.
    ///
    /// [`Self::has_element`] must have found one. The producer may use the slot again only after
    /// [`Self::publish`].
    #[inline(always)]
    pub(crate) fn advance(&mut self) {
        // INVARIANT: There was an element, so `next` does not pass `seen`.
        self.next = self.next.wrapping_add(1);
    }

    /// Returns how many elements there are, `limit` at most; looks at the producer's position only
    /// if fewer than that are known of.
    #[inline(always)]
    pub(crate) fn up_to(&self, limit: u32, producer: &impl AtomicIndex) -> u32 {
        if limit <= self.len_seen() {
            limit
        } else {
            limit.min(self.len(producer))
        }
    }

    /// Notes that `count` elements, as many as [`Self::up_to`] found or fewer, have been moved out.
    #[inline(always)]
    pub(crate) fn advance_by(&mut self, count: u32) {
        // INVARIANT: There were so many, so `next` does not pass `seen`.
        self.next = self.next.wrapping_add(count);
    }

    /// Gives the slots of all elements taken so far back to the producer.
    #[inline(always)]
    pub(crate) fn publish(&self, consumer: &impl AtomicIndex) {
        consumer.store_release(self.next);
    }
}
