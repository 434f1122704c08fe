// SPDX-License-Identifier: GPL-2.0

//! The memory that the two ends of an array-based queue share.

use super::{
    index::AtomicIndex,
    reserve::{
        AtomicClaim,
        End,
        Run,
        Wanted, //
    }, //
};
use crate::{
    alloc::Flags,
    prelude::*,
    processor::cpu_relax,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    }, //
};
use core::{
    cell::UnsafeCell,
    mem::MaybeUninit,
    ptr::NonNull, //
};

/// A position that one end publishes, and the other end reads.
pub(super) struct Position(Atomic<u32>);

impl AtomicIndex for Position {
    #[inline(always)]
    fn load_acquire(&self) -> u32 {
        self.0.load(Acquire)
    }

    #[inline(always)]
    fn store_release(&self, position: u32) {
        self.0.store(position, Release)
    }

    #[inline(always)]
    fn wait_for(&self, position: u32) {
        while self.0.load(Acquire) != position {
            cpu_relax();
        }
    }
}

/// The word that users of a shared end claim positions with.
pub(super) struct Word(Atomic<u64>);

impl AtomicClaim for Word {
    #[inline(always)]
    fn load_acquire(&self) -> u64 {
        self.0.load(Acquire)
    }

    #[inline(always)]
    fn replace_release(&self, old: u64, new: u64) -> bool {
        self.0.cmpxchg(old, new, Release).is_ok()
    }

    #[inline(always)]
    fn store_relaxed(&self, new: u64) {
        self.0.store(new, Relaxed)
    }
}

/// An end of a ring.
pub(super) type RingEnd = End<Word, Position>;

/// One position, of which nobody wants a part.
const ONE: Wanted = Wanted {
    count: 1,
    all: true,
};

type Slot<T> = UnsafeCell<MaybeUninit<T>>;

/// The slots of a queue and the positions of its two ends.
///
/// # Invariants
///
/// - `slots` has `mask + 1` elements, which is a power of two, at most [`Ring::MAX_CAPACITY`].
/// - The slots of the positions from the consumer's up to the producer's hold initialised elements
///   that belong to the consuming end; all others belong to the producing end. Of what belongs to a
///   shared end, a run that a user claimed belongs to that user until it publishes the run.
pub(super) struct Ring<T> {
    pub(super) producer: RingEnd,
    pub(super) consumer: RingEnd,
    mask: u32,
    slots: KVVec<Slot<T>>,
}

// SAFETY: The ring hands elements from one context to another, which `T: Send` allows. It gives no
// context a shared reference to an element that another one has.
unsafe impl<T: Send> Send for Ring<T> {}

// SAFETY: By the type invariants a slot belongs to one end at a time; the positions are atomic.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    /// The greatest capacity: differences of positions stay well within 32 bits.
    pub(super) const MAX_CAPACITY: usize = 1 << 30;

    /// Allocates an empty ring whose positions begin at `start`.
    pub(super) fn new(capacity: usize, start: u32, flags: Flags) -> Result<Self> {
        if !capacity.is_power_of_two() || capacity > Self::MAX_CAPACITY {
            return Err(EINVAL);
        }

        let mut slots = KVVec::<Slot<T>>::with_capacity(capacity, flags)?;
        for _ in 0..capacity {
            slots.push(UnsafeCell::new(MaybeUninit::uninit()), flags)?;
        }

        let end = || {
            RingEnd::new(
                start,
                |w| Word(Atomic::new(w)),
                |p| Position(Atomic::new(p)),
            )
        };
        // INVARIANT: `slots` has `capacity` elements, a power of two, and the ring is empty.
        Ok(Self {
            producer: end(),
            consumer: end(),
            // CAST: `capacity` is at least 1 and at most `MAX_CAPACITY`.
            mask: (capacity - 1) as u32,
            slots,
        })
    }

    /// Returns how to find the slots, for an end that keeps the ring alive.
    pub(super) fn slots(&self) -> Slots<T> {
        // INVARIANT: By the type invariants of `Ring`, there are `mask + 1` slots.
        Slots {
            base: NonNull::from(self.slots.as_slice()).cast(),
            mask: self.mask,
        }
    }

    /// Returns the number of elements, while others may put in and take out.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        // In this order the difference does not become negative. It may become greater than the
        // capacity if both ends move in between.
        let start = self.consumer.tail.load_acquire();
        let end = self.producer.tail.load_acquire();
        end.wrapping_sub(start).min(self.mask + 1)
    }
}

/// Whether other users of the same end may be active.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Users {
    /// Only the caller, and it promises so.
    One,
    /// Any number, of whom none interrupts another on the same CPU.
    Many,
}

/// Operations of users of ends that have no view of their own.
impl<T> Ring<T> {
    /// Moves elements from `from` into the queue, and returns how many.
    ///
    /// # Safety
    ///
    /// - `from` points to `wanted.count` elements, of which the caller gives up the ones moved.
    /// - If `users` is [`Users::One`], no other user of the producing end is active; else no other
    ///   user runs on this CPU until this returns, and all others use [`Users::Many`] too.
    #[inline(always)]
    pub(super) unsafe fn enqueue(&self, from: *const T, wanted: Wanted, users: Users) -> u32 {
        // Others wait from the claim to the publication: what can be done before, is.
        let slots = self.slots();
        let (lead, other) = (slots.capacity(), &self.consumer.tail);
        let claimed = match users {
            Users::One => self.producer.claim_alone(other, lead, wanted),
            Users::Many => self.producer.claim(other, lead, wanted),
        };
        let Some(run) = claimed else {
            return 0;
        };
        // SAFETY: The run was claimed, so its slots are ours and free. There are as many elements
        // as were wanted, and the run is not longer.
        unsafe { slots.write_run(run, from) };
        match users {
            Users::One => self.producer.publish_alone(run),
            Users::Many => self.producer.publish(run),
        }
        run.count
    }

    /// Moves elements out of the queue to `to`, as many as there are, and returns how many.
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
        let claimed = match users {
            Users::One => self.consumer.claim_alone(other, 0, wanted),
            Users::Many => self.consumer.claim(other, 0, wanted),
        };
        let Some(run) = claimed else {
            return 0;
        };
        // SAFETY: The run was claimed, so its slots are ours and hold elements. There is room for
        // as many as were wanted, and the run is not longer.
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
    /// Puts one element in, or gives it back if there is no room.
    ///
    /// # Safety
    ///
    /// As for [`Self::enqueue`] with [`Users::Many`].
    #[inline(always)]
    pub(super) unsafe fn push(&self, value: T) -> Result<(), T> {
        let slots = self.slots();
        let (lead, other) = (slots.capacity(), &self.consumer.tail);
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
        let run = self.consumer.claim(&self.producer.tail, 0, ONE)?;
        // SAFETY: The slot was claimed, so it is ours and holds an element, which nobody reads
        // again.
        let value = unsafe { slots.read(run.start) };
        self.consumer.publish(run);
        Some(value)
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // All users are gone, and the release of the last reference to the ring comes after
        // everything they did, so relaxed loads see their last positions. An operation ends with
        // all that it claimed published.
        let end = self.producer.tail.0.load(Relaxed);
        let mut position = self.consumer.tail.0.load(Relaxed);
        let slots = self.slots();

        while position != end {
            // SAFETY: By the type invariants the slots between the positions hold elements. No
            // end exists any more, and the slot is not used again.
            drop(unsafe { slots.read(position) });
            position = position.wrapping_add(1);
        }
    }
}

/// The slots of a ring, as an end keeps them: next to its own position, without the way through
/// the shared structure, and without a bounds check, because a masked position is always inside.
///
/// # Invariants
///
/// `base` points to an array of `mask + 1` slots, a power of two, as long as the ring exists.
pub(super) struct Slots<T> {
    base: NonNull<Slot<T>>,
    mask: u32,
}

impl<T> Clone for Slots<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slots<T> {}

impl<T> Slots<T> {
    /// Returns the number of slots.
    #[inline(always)]
    pub(super) fn capacity(&self) -> u32 {
        self.mask + 1
    }

    /// Returns the index of the slot of `position`, which is less than the capacity.
    #[inline(always)]
    pub(super) fn index(&self, position: u32) -> usize {
        // CAST: `usize` has at least 32 bits wherever the kernel runs.
        (position & self.mask) as usize
    }

    /// Returns the place for the element of `position`.
    ///
    /// # Safety
    ///
    /// The ring exists.
    #[inline(always)]
    unsafe fn at(&self, position: u32) -> *mut T {
        // SAFETY: By the type invariants and the safety requirement, the masked position is an
        // index into the array.
        let slot = unsafe { self.base.as_ptr().add(self.index(position)) };
        UnsafeCell::raw_get(slot).cast::<T>()
    }

    /// Puts an element into the slot of `position`.
    ///
    /// # Safety
    ///
    /// The ring exists, and the slot belongs to the caller and holds no element.
    #[inline(always)]
    pub(super) unsafe fn write(&self, position: u32, value: T) {
        // SAFETY: By the safety requirements, the place is valid and nobody else accesses it.
        unsafe { self.at(position).write(value) }
    }

    /// Moves the element out of the slot of `position`.
    ///
    /// # Safety
    ///
    /// The ring exists, and the slot belongs to the caller and holds an element, which is not
    /// read again.
    #[inline(always)]
    pub(super) unsafe fn read(&self, position: u32) -> T {
        // SAFETY: By the safety requirements, the place holds an element that nobody else
        // accesses, and the caller does not use the slot's copy any more.
        unsafe { self.at(position).read() }
    }

    /// Moves elements from `from` into the slots of a run.
    ///
    /// # Safety
    ///
    /// The ring exists, the slots of the run belong to the caller and hold no elements, and `from`
    /// points to as many elements, which are not used again. The run is not longer than the ring.
    #[inline(always)]
    pub(super) unsafe fn write_run(&self, run: Run, from: *const T) {
        // CAST: As for `index`.
        let (index, count) = (self.index(run.start), run.count as usize);
        // SAFETY: By the safety requirements; a run that ends in the array has its slots one after
        // the other.
        unsafe {
            if index + count <= self.capacity() as usize {
                copy(from, self.at(run.start), count);
            } else {
                self.write_wrapped(run, from);
            }
        }
    }

    /// As [`Self::write_run`], of a run that goes on at the beginning of the array.
    ///
    /// # Safety
    ///
    /// As for [`Self::write_run`].
    #[cold]
    #[inline(never)]
    unsafe fn write_wrapped(self, run: Run, from: *const T) {
        // CAST: As for `index`.
        let (first, count) = (self.until_end(run.start), run.count as usize);
        // SAFETY: By the safety requirements; the slots are those up to the end of the array, and
        // the rest from its beginning.
        unsafe {
            core::ptr::copy_nonoverlapping(from, self.at(run.start), first);
            core::ptr::copy_nonoverlapping(from.add(first), self.at(0), count - first);
        }
    }

    /// Moves elements out of the slots of a run to `to`.
    ///
    /// # Safety
    ///
    /// The ring exists, the slots of the run belong to the caller and hold elements, which are not
    /// read again, and `to` points to room for as many. The run is not longer than the ring.
    #[inline(always)]
    pub(super) unsafe fn read_run(&self, run: Run, to: *mut T) {
        // CAST: As for `index`.
        let (index, count) = (self.index(run.start), run.count as usize);
        // SAFETY: As in `write_run`.
        unsafe {
            if index + count <= self.capacity() as usize {
                copy(self.at(run.start), to, count);
            } else {
                self.read_wrapped(run, to);
            }
        }
    }

    /// As [`Self::read_run`], of a run that goes on at the beginning of the array.
    ///
    /// # Safety
    ///
    /// As for [`Self::read_run`].
    #[cold]
    #[inline(never)]
    unsafe fn read_wrapped(self, run: Run, to: *mut T) {
        // CAST: As for `index`.
        let (first, count) = (self.until_end(run.start), run.count as usize);
        // SAFETY: As in `write_wrapped`.
        unsafe {
            core::ptr::copy_nonoverlapping(self.at(run.start), to, first);
            core::ptr::copy_nonoverlapping(self.at(0), to.add(first), count - first);
        }
    }

    /// Returns how many slots there are from that of `position` to the end of the array.
    #[inline(always)]
    fn until_end(&self, position: u32) -> usize {
        // CAST: As for `index`.
        self.capacity() as usize - self.index(position)
    }

    /// Looks at the element in the slot of `position`.
    ///
    /// # Safety
    ///
    /// The ring exists, and the slot belongs to the caller and holds an element that stays where
    /// it is during `'a`.
    #[inline(always)]
    pub(super) unsafe fn peek<'a>(&self, position: u32) -> &'a T {
        // SAFETY: By the safety requirements, the place holds an element for that long.
        unsafe { &*self.at(position) }
    }

    /// Returns the element in the slot of `position` for changing it.
    ///
    /// # Safety
    ///
    /// The ring exists, and the slot belongs to the caller and holds an element that stays where
    /// it is, and that nobody else refers to, during `'a`.
    #[inline(always)]
    pub(super) unsafe fn get_mut<'a>(&self, position: u32) -> &'a mut T {
        // SAFETY: By the safety requirements, the place holds an element for that long.
        unsafe { &mut *self.at(position) }
    }
}

/// Copies `count` elements.
///
/// Batches are short, so that a call to `memcpy()` would cost about as much as the copy itself.
/// Small elements are moved one by one instead, in blocks. A loop over blocks of several moves is
/// none that the compiler takes for a `memcpy()`, so that it needs no barrier, which would make it
/// read again what it knows already.
///
/// # Safety
///
/// As for [`core::ptr::copy_nonoverlapping`].
#[inline(always)]
unsafe fn copy<T>(mut from: *const T, mut to: *mut T, count: usize) {
    macro_rules! block {
        ($($offset:literal)*) => {{
            const LEN: usize = [$($offset),*].len();
            // SAFETY: By the safety requirements: blocks follow each other, and their sizes add
            // up to `count`.
            unsafe {
                $(to.add($offset).write(from.add($offset).read());)*
                from = from.add(LEN);
                to = to.add(LEN);
            }
        }};
    }

    if size_of::<T>() > 2 * size_of::<usize>() {
        // SAFETY: By the safety requirements.
        return unsafe { core::ptr::copy_nonoverlapping(from, to, count) };
    }

    let mut left = count;
    if left >= 16 {
        while left >= 16 {
            block!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
            left -= 16;
        }
        if left == 0 {
            return;
        }
    }
    if left & 8 != 0 {
        block!(0 1 2 3 4 5 6 7);
        if left == 8 {
            return;
        }
    }
    if left & 4 != 0 {
        block!(0 1 2 3);
    }
    if left & 2 != 0 {
        block!(0 1);
    }
    if left & 1 != 0 {
        // SAFETY: By the safety requirements, one element is left.
        unsafe { to.write(from.read()) };
    }
}
