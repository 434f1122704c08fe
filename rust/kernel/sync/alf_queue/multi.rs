// SPDX-License-Identifier: GPL-2.0

//! Shared ends of a queue.

use super::{
    chunk::Chunk,
    reserve::Wanted,
    ring::{
        Ring,
        Users, //
    },
    Full, //
};
use crate::{
    alloc::Flags,
    prelude::*,
    softirq::Softirq,
    sync::Arc, //
};

/// Operations on shared ends, for all types that have some.
///
/// Callers have a proof of the queue's context: no other user of the end runs on this CPU in
/// between. No foreign code is called between a claim and its publication.
impl<T> Ring<T> {
    /// Adds all elements, or none.
    ///
    /// # Safety
    ///
    /// As for [`Self::push`].
    #[inline(always)]
    unsafe fn push_from<const N: usize>(&self, values: &mut Chunk<T, N>) -> Result<(), Full> {
        let Ok(count) = u32::try_from(values.known_len()) else {
            // No queue is that large.
            return Err(Full);
        };
        if count == 0 {
            return Ok(());
        }
        let wanted = Wanted { count, all: true };
        // SAFETY: There are `count` elements, which are forgotten if they were moved. The caller
        // meets the other requirements.
        if unsafe { self.enqueue(values.as_ptr(), wanted, Users::Many) } == 0 {
            return Err(Full);
        }
        // SAFETY: All of them were moved.
        unsafe { values.forget_first(count as usize) };
        Ok(())
    }

    /// Adds elements, as many as fit. Returns their number.
    ///
    /// # Safety
    ///
    /// As for [`Self::push`].
    #[inline(always)]
    unsafe fn push_some_from<const N: usize>(&self, values: &mut Chunk<T, N>) -> usize {
        let wanted = Wanted {
            // No queue is larger.
            count: u32::try_from(values.known_len()).unwrap_or(u32::MAX),
            all: false,
        };
        // SAFETY: There are `count` elements, of which the moved ones are forgotten. The caller
        // meets the other requirements.
        let moved = unsafe { self.enqueue(values.as_ptr(), wanted, Users::Many) } as usize;
        // SAFETY: At most as many as there were have been moved.
        unsafe { values.forget_first(moved) };
        moved
    }

    /// Takes out up to `limit` elements. Returns their number.
    ///
    /// # Safety
    ///
    /// As for [`Self::pop`].
    #[inline(always)]
    unsafe fn pop_into<const N: usize>(&self, sink: &mut Chunk<T, N>, limit: usize) -> usize {
        let limit = limit.min(sink.room());
        // No queue is larger.
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        // SAFETY: There is room for `limit` elements. The caller meets the other requirements.
        let moved = unsafe { self.dequeue(sink.end(), limit, Users::Many) } as usize;
        // SAFETY: `count` elements were moved to the sink.
        unsafe { sink.grow(moved) };
        moved
    }
}

macro_rules! shared_producer_operations {
    () => {
        /// Adds an element, or returns it if the queue is full.
        #[inline]
        pub fn push(&self, _cx: Softirq<'_>, value: T) -> Result<(), T> {
            // SAFETY: By the token and the type, no other user interrupts us.
            unsafe { self.ring.push(value) }
        }

        /// Moves all of `values` into the queue, or none if there is no room for all of them.
        ///
        /// They are contiguous in the queue.
        #[inline(always)]
        pub fn push_bulk<const N: usize>(
            &self,
            _cx: Softirq<'_>,
            values: &mut Chunk<T, N>,
        ) -> Result<(), Full> {
            // SAFETY: By the token and the type, no other user interrupts us.
            unsafe { self.ring.push_from(values) }
        }

        /// Moves the first of `values` into the queue, as many as fit. Returns their number.
        #[inline(always)]
        pub fn push_some<const N: usize>(
            &self,
            _cx: Softirq<'_>,
            values: &mut Chunk<T, N>,
        ) -> usize {
            // SAFETY: By the token and the type, no other user interrupts us.
            unsafe { self.ring.push_some_from(values) }
        }
    };
}

macro_rules! shared_consumer_operations {
    () => {
        /// Takes out the oldest element.
        #[inline]
        pub fn pop(&self, _cx: Softirq<'_>) -> Option<T> {
            // SAFETY: By the token and the type, no other user interrupts us.
            unsafe { self.ring.pop() }
        }

        /// Moves the oldest elements to `sink`: at most `limit`, and as many as the queue has and
        /// the sink has room for. Returns their number.
        #[inline(always)]
        pub fn pop_bulk<const N: usize>(
            &self,
            _cx: Softirq<'_>,
            sink: &mut Chunk<T, N>,
            limit: usize,
        ) -> usize {
            // SAFETY: By the token and the type, no other user interrupts us.
            unsafe { self.ring.pop_into(sink, limit) }
        }
    };
}

macro_rules! common_operations {
    () => {
        /// Returns the capacity of the queue.
        #[inline]
        pub fn capacity(&self) -> usize {
            self.ring.slots().capacity() as usize
        }

        /// Returns the number of elements, which may change concurrently.
        #[inline]
        pub fn len(&self) -> usize {
            self.ring.len() as usize
        }

        /// Returns whether the queue is empty, which may change concurrently.
        #[inline]
        pub fn is_empty(&self) -> bool {
            self.ring.len() == 0
        }
    };
}

/// A queue with any number of producers and consumers.
///
/// All operations take `&self`; share it by reference, in an [`Arc`], or in a static. [`super`]
/// says in which contexts it can be dropped.
///
/// # Invariants
///
/// Both ends of the ring are used as shared ends only, by users that have a token.
pub struct Mpmc<T> {
    ring: Ring<T>,
}

impl<T: Send> Mpmc<T> {
    /// Creates a queue, as [`super::mpmc`].
    pub fn new(capacity: usize, flags: Flags) -> Result<Self> {
        Self::new_from(0, capacity, flags)
    }

    /// Creates a queue whose positions begin at `start`, for tests of wrapping.
    pub(super) fn new_from(start: u32, capacity: usize, flags: Flags) -> Result<Self> {
        // INVARIANT: The ring is new, and has no other ends.
        Ok(Self {
            ring: Ring::new(capacity, start, flags)?,
        })
    }
}

impl<T> Mpmc<T> {
    common_operations!();
    shared_producer_operations!();
    shared_consumer_operations!();
}

/// A shared producing end.
///
/// # Invariants
///
/// The producing end of the ring is used as a shared end only, by users that have a token.
pub struct SharedProducer<T> {
    pub(super) ring: Arc<Ring<T>>,
}

impl<T> SharedProducer<T> {
    common_operations!();
    shared_producer_operations!();
}

impl<T> Clone for SharedProducer<T> {
    fn clone(&self) -> Self {
        // INVARIANT: The clone is of the same kind.
        Self {
            ring: self.ring.clone(),
        }
    }
}

/// A shared consuming end.
///
/// # Invariants
///
/// The consuming end of the ring is used as a shared end only, by users that have a token.
pub struct SharedConsumer<T> {
    pub(super) ring: Arc<Ring<T>>,
}

impl<T> SharedConsumer<T> {
    common_operations!();
    shared_consumer_operations!();
}

impl<T> Clone for SharedConsumer<T> {
    fn clone(&self) -> Self {
        // INVARIANT: The clone is of the same kind.
        Self {
            ring: self.ring.clone(),
        }
    }
}
