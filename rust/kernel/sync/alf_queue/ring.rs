// SPDX-License-Identifier: GPL-2.0

//! The memory that the two ends of an array-based queue share.

use super::index::AtomicIndex;
use crate::{
    alloc::Flags,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc, //
    }, //
};
use core::{
    cell::UnsafeCell,
    mem::MaybeUninit,
    ptr::NonNull, //
};

/// A position on cache lines of its own.
///
/// Two lines rather than one, since processors that fetch lines in pairs would otherwise make the
/// ends disturb each other.
#[repr(align(128))]
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
}

type Slot<T> = UnsafeCell<MaybeUninit<T>>;

/// The slots of a queue and the positions of its two ends.
///
/// # Invariants
///
/// - `slots` has `mask + 1` elements, which is a power of two, at most [`Ring::MAX_CAPACITY`].
/// - The slots of the positions from `consumer` up to `producer` hold initialised elements that
///   belong to the consuming end; all others belong to the producing end.
pub(super) struct Ring<T> {
    pub(super) producer: Position,
    pub(super) consumer: Position,
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
    pub(super) fn new(capacity: usize, start: u32, flags: Flags) -> Result<Arc<Self>> {
        if !capacity.is_power_of_two() || capacity > Self::MAX_CAPACITY {
            return Err(EINVAL);
        }

        let mut slots = KVVec::<Slot<T>>::with_capacity(capacity, flags)?;
        for _ in 0..capacity {
            slots.push(UnsafeCell::new(MaybeUninit::uninit()), flags)?;
        }

        // INVARIANT: `slots` has `capacity` elements, a power of two, and the ring is empty.
        Ok(Arc::new(
            Self {
                producer: Position(Atomic::new(start)),
                consumer: Position(Atomic::new(start)),
                // CAST: `capacity` is at least 1 and at most `MAX_CAPACITY`.
                mask: (capacity - 1) as u32,
                slots,
            },
            flags,
        )?)
    }

    /// Returns how to find the slots, for an end that keeps the ring alive.
    pub(super) fn slots(&self) -> Slots<T> {
        // INVARIANT: By the type invariants of `Ring`, there are `mask + 1` slots.
        Slots {
            base: NonNull::from(self.slots.as_slice()).cast(),
            mask: self.mask,
        }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // Both ends are gone, and the release of the last reference to the ring comes after
        // everything they did, so relaxed loads see their last positions.
        let end = self.producer.0.load(Relaxed);
        let mut position = self.consumer.0.load(Relaxed);
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
