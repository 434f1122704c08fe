// SPDX-License-Identifier: GPL-2.0

//! The memory that the two ends of an array-based queue share.

use super::{
    atomics::{
        Position,
        Word, //
    },
    index::AtomicIndex,
    preemption::PreemptionOff,
    reserve::{
        self,
        End,
        Wanted, //
    },
    slots::{
        Slot,
        Slots, //
    }, //
};
use crate::{
    alloc::Flags,
    prelude::*, //
};
use core::{
    cell::UnsafeCell,
    mem::MaybeUninit, //
};

/// An end of a ring.
pub(super) type RingEnd = End<Word, Position>;

/// A request for one position.
const ONE: Wanted = Wanted {
    count: 1,
    all: true,
};

/// The slots of a queue and the positions of its two ends.
///
/// # Invariants
///
/// - `slots` has `mask + 1` elements, which is a power of two, at most [`Ring::MAX_CAPACITY`].
/// - The slots of the positions from the consumer's up to the producer's hold initialised elements
///   that belong to the consuming end; all others belong to the producing end. If an end is shared,
///   a claimed run of its slots belongs to the user that claimed it, until that publishes the run.
pub(super) struct Ring<T> {
    pub(super) producer: RingEnd,
    pub(super) consumer: RingEnd,
    mask: u32,
    slots: KVVec<Slot<T>>,
}

// SAFETY: The ring passes elements from one context to another, which `T: Send` allows. Contexts
// never share references to an element.
unsafe impl<T: Send> Send for Ring<T> {}

// SAFETY: By the type invariants, a slot belongs to one end at a time; the positions are atomic.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    /// Maximum capacity.
    // CAST: `usize` has at least 32 bits wherever the kernel runs.
    pub(super) const MAX_CAPACITY: usize = reserve::MAX_CAPACITY as usize;

    /// Allocates an empty ring whose positions begin at `start`.
    pub(super) fn new(capacity: usize, start: u32, flags: Flags) -> Result<Self> {
        if !capacity.is_power_of_two() || capacity > Self::MAX_CAPACITY {
            return Err(EINVAL);
        }

        // Not even of more than the allocator can ever give.
        let mut slots = KVVec::<Slot<T>>::with_capacity(capacity, flags | __GFP_NOWARN)?;
        for _ in 0..capacity {
            slots.push(UnsafeCell::new(MaybeUninit::uninit()), flags)?;
        }

        let end = || RingEnd::new(start, Word::new, Position::new);
        // INVARIANT: `slots` has `capacity` elements, a power of two, and the ring is empty.
        Ok(Self {
            producer: end(),
            consumer: end(),
            // CAST: `capacity` is at least 1 and at most `MAX_CAPACITY`.
            mask: (capacity - 1) as u32,
            slots,
        })
    }

    /// Returns the access to the slots, for an end that keeps the ring alive.
    pub(super) fn slots(&self) -> Slots<T> {
        // SAFETY: By the type invariants, there are `mask + 1` slots, a power of two.
        unsafe { Slots::new(&self.slots, self.mask) }
    }

    /// Returns the number of elements, which may change concurrently.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        // In this order the difference does not become negative. It may exceed the capacity if both
        // ends move in between.
        let start = self.consumer.tail.load_acquire();
        let end = self.producer.tail.load_acquire();
        end.wrapping_sub(start).min(self.mask + 1)
    }
}

/// The number of users of an end.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Users {
    /// Only the caller, which guarantees that.
    One,
    /// Any number, none of which interrupts another on the same CPU.
    Many,
}

/// Operations for users of an end without a private view.
impl<T> Ring<T> {
    /// Moves elements from `from` into the queue. Returns their number.
    ///
    /// # Safety
    ///
    /// - `from` points to `wanted.count` elements, of which the caller gives up the ones moved.
    /// - If `users` is [`Users::One`], no other user of the producing end is active; else no other
    ///   user runs on this CPU until this returns, and all others use [`Users::Many`] too.
    #[inline(always)]
    pub(super) unsafe fn enqueue(&self, from: *const T, wanted: Wanted, users: Users) -> u32 {
        // Other users wait between the claim and the publication: compute everything before.
        let slots = self.slots();
        let (lead, other) = (slots.capacity(), &self.consumer.tail);
        let _goes_on = PreemptionOff::in_softirq();
        let claimed = match users {
            Users::One => self.producer.claim_alone(other, lead, wanted),
            Users::Many => self.producer.claim(other, lead, wanted),
        };
        let Some(run) = claimed else {
            return 0;
        };
        // SAFETY: The run was claimed, so its slots are ours and free. It is not longer than
        // `wanted.count`, the number of elements.
        unsafe { slots.write_run(run, from) };
        match users {
            Users::One => self.producer.publish_alone(run),
            Users::Many => self.producer.publish(run),
        }
        run.count
    }

    /// Moves up to `limit` elements out of the queue to `to`. Returns their number.
    ///
    /// # Safety
    ///
    /// - `to` points to room for `limit` elements, of which the caller owns the ones moved.
    /// - As for [`Self::enqueue`], with the consuming end.
    #[inline(always)]
    pub(super) unsafe fn dequeue(&self, to: *mut T, limit: u32, users: Users) -> u32 {
        let slots = self.slots();
        let (wanted, other) = (
            Wanted {
                count: limit,
                all: false,
            },
            &self.producer.tail,
        );
        let _goes_on = PreemptionOff::in_softirq();
        let claimed = match users {
            Users::One => self.consumer.claim_alone(other, 0, wanted),
            Users::Many => self.consumer.claim(other, 0, wanted),
        };
        let Some(run) = claimed else {
            return 0;
        };
        // SAFETY: The run was claimed, so its slots are ours and hold elements. It is not longer
        // than `limit`, for which there is room.
        unsafe { slots.read_run(run, to) };
        match users {
            Users::One => self.consumer.publish_alone(run),
            Users::Many => self.consumer.publish(run),
        }
        run.count
    }
}

/// Operations on one element, for users of shared ends.
impl<T> Ring<T> {
    /// Adds an element, or returns it if there is no room.
    ///
    /// # Safety
    ///
    /// As for [`Self::enqueue`] with [`Users::Many`].
    #[inline(always)]
    pub(super) unsafe fn push(&self, value: T) -> Result<(), T> {
        let slots = self.slots();
        let (lead, other) = (slots.capacity(), &self.consumer.tail);
        let _goes_on = PreemptionOff::in_softirq();
        let Some(run) = self.producer.claim(other, lead, ONE) else {
            return Err(value);
        };
        // SAFETY: The slot was claimed, so it is ours and free.
        unsafe { slots.write(run.start, value) };
        self.producer.publish(run);
        Ok(())
    }

    /// Takes one element out.
    ///
    /// # Safety
    ///
    /// As for [`Self::dequeue`] with [`Users::Many`].
    #[inline(always)]
    pub(super) unsafe fn pop(&self) -> Option<T> {
        let slots = self.slots();
        let _goes_on = PreemptionOff::in_softirq();
        let run = self.consumer.claim(&self.producer.tail, 0, ONE)?;
        // SAFETY: The slot was claimed, so it is ours and holds an element, which is not read
        // again.
        let value = unsafe { slots.read(run.start) };
        self.consumer.publish(run);
        Some(value)
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // All users are gone. Each operation publishes all that it has claimed before it returns.
        let end = self.producer.tail.load_last();
        let mut position = self.consumer.tail.load_last();
        let slots = self.slots();

        while position != end {
            // SAFETY: By the type invariants the slots between the positions hold elements. No
            // end exists any more, and the slot is not used again.
            drop(unsafe { slots.read(position) });
            position = position.wrapping_add(1);
        }
    }
}
