// SPDX-License-Identifier: GPL-2.0

//! Access to the slots of an array-based queue.

use super::reserve::Run;
use core::{
    cell::UnsafeCell,
    mem::MaybeUninit,
    ptr::NonNull, //
};

pub(super) type Slot<T> = UnsafeCell<MaybeUninit<T>>;

/// The slots of a ring. An end keeps this next to its own position, so that an access does not go
/// through the shared structure. There are no bounds checks: a masked position is always in range.
///
/// # Invariants
///
/// `base` points to an array of `mask + 1` slots, a power of two, for the lifetime of the ring.
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
    /// Returns the access to the slots of a ring.
    ///
    /// # Safety
    ///
    /// `slots` has `mask + 1` elements, which is a power of two.
    #[inline(always)]
    pub(super) unsafe fn new(slots: &[Slot<T>], mask: u32) -> Self {
        // INVARIANT: By the safety requirements. Callers of the methods keep the ring alive.
        Self {
            base: NonNull::from(slots).cast(),
            mask,
        }
    }

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

    /// Returns a pointer to the slot of `position`.
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

    /// Writes an element to the slot of `position`.
    ///
    /// # Safety
    ///
    /// The ring exists, and the slot belongs to the caller and holds no element.
    #[inline(always)]
    pub(super) unsafe fn write(&self, position: u32, value: T) {
        // SAFETY: By the safety requirements, the slot is valid and belongs to the caller.
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
        // SAFETY: By the safety requirements, the slot holds an element that belongs to the
        // caller, and the copy in the slot is not used any more.
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
        // SAFETY: By the safety requirements; the slots of a run that does not wrap are
        // contiguous.
        unsafe {
            if index + count <= self.capacity() as usize {
                copy(from, self.at(run.start), count);
            } else {
                self.write_wrapped(run, from);
            }
        }
    }

    /// As [`Self::write_run`], for a run that wraps to the beginning of the array.
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
        // the remaining ones from its beginning.
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

    /// As [`Self::read_run`], for a run that wraps to the beginning of the array.
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

    /// Returns the number of slots from that of `position` to the end of the array.
    #[inline(always)]
    fn until_end(&self, position: u32) -> usize {
        // CAST: As for `index`.
        self.capacity() as usize - self.index(position)
    }

    /// Returns a reference to the element in the slot of `position`.
    ///
    /// # Safety
    ///
    /// The ring exists, and the slot belongs to the caller and holds an element that stays where
    /// it is during `'a`.
    #[inline(always)]
    pub(super) unsafe fn peek<'a>(&self, position: u32) -> &'a T {
        // SAFETY: By the safety requirements, the slot holds an element during `'a`.
        unsafe { &*self.at(position) }
    }

    /// Returns a mutable reference to the element in the slot of `position`.
    ///
    /// # Safety
    ///
    /// The ring exists, and the slot belongs to the caller and holds an element that stays where
    /// it is, and to which there is no other reference, during `'a`.
    #[inline(always)]
    pub(super) unsafe fn get_mut<'a>(&self, position: u32) -> &'a mut T {
        // SAFETY: By the safety requirements, the slot holds an element during `'a`.
        unsafe { &mut *self.at(position) }
    }
}

/// Copies `count` elements.
///
/// Runs are short, so that a call to `memcpy()` would cost about as much as the copy itself.
/// Instead, small elements are moved one by one, in blocks. The compiler does not turn a loop over
/// blocks of several moves into `memcpy()`. A compiler barrier would also prevent that, but would
/// cause needless reloads.
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
