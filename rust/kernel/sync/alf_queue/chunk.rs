// SPDX-License-Identifier: GPL-2.0

//! The elements of bulk operations.

use core::mem::{
    ManuallyDrop,
    MaybeUninit, //
};

/// Up to `N` elements, stored in place; [`Self::push`] and [`Self::pop`] work at the end.
///
/// # Invariants
///
/// `len <= N`, and the first `len` slots hold elements.
///
/// # Examples
///
/// ```
/// use kernel::sync::alf_queue::Chunk;
///
/// let mut chunk = Chunk::<u32, 4>::new();
/// assert_eq!(chunk.push(1), Ok(()));
/// assert_eq!(chunk.push(2), Ok(()));
/// assert_eq!(chunk.push(3), Ok(()));
/// assert_eq!(chunk.push(4), Ok(()));
/// assert_eq!(chunk.push(5), Err(5));
/// assert_eq!(chunk.as_slice(), [1, 2, 3, 4]);
/// assert_eq!(chunk.pop(), Some(4));
/// assert_eq!(chunk.len(), 3);
/// ```
pub struct Chunk<T, const N: usize> {
    len: usize,
    slots: [MaybeUninit<T>; N],
}

impl<T, const N: usize> Chunk<T, N> {
    /// Returns an empty chunk.
    #[inline(always)]
    pub const fn new() -> Self {
        // INVARIANT: There are no elements.
        Self {
            len: 0,
            slots: [const { MaybeUninit::uninit() }; N],
        }
    }

    /// Returns the number of elements.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an element at the end, or gives it back if there is no room.
    #[inline(always)]
    pub fn push(&mut self, value: T) -> Result<(), T> {
        match self.slots.get_mut(self.len) {
            Some(slot) => {
                slot.write(value);
                // INVARIANT: One more slot holds an element, and there was one.
                self.len += 1;
                Ok(())
            }
            None => Err(value),
        }
    }

    /// Removes and returns the last element.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        let last = self.len.checked_sub(1)?;
        // INVARIANT: The last element is moved out.
        self.len = last;
        // SAFETY: By the type invariants, the slot exists and held an element, which is not read
        // again.
        Some(unsafe { self.slots.as_ptr().add(last).read().assume_init() })
    }

    /// Returns the elements.
    #[inline(always)]
    pub fn as_slice(&self) -> &[T] {
        // SAFETY: By the type invariants.
        unsafe { core::slice::from_raw_parts(self.slots.as_ptr().cast(), self.len) }
    }

    /// Returns the elements, mutably.
    #[inline(always)]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: By the type invariants.
        unsafe { core::slice::from_raw_parts_mut(self.slots.as_mut_ptr().cast(), self.len) }
    }

    /// Returns the number of elements, and tells the compiler that it is at most `N`.
    #[inline(always)]
    pub(super) fn known_len(&self) -> usize {
        // SAFETY: By the type invariants.
        unsafe { core::hint::assert_unchecked(self.len <= N) };
        self.len
    }

    /// Returns a pointer to the first element, of [`Self::known_len`] ones.
    #[inline(always)]
    pub(super) fn as_ptr(&self) -> *const T {
        self.slots.as_ptr().cast()
    }

    /// Removes the first `count` elements without dropping them.
    ///
    /// # Safety
    ///
    /// `count` is at most the number of elements, and they have been moved out.
    #[inline(always)]
    pub(super) unsafe fn forget_first(&mut self, count: usize) {
        if count != self.len {
            // SAFETY: By the safety requirements.
            return unsafe { self.keep_from(count) };
        }
        // INVARIANT: There are no elements any more. A constant rather than a difference, so that
        // the next operation does not depend on the load of the length.
        self.len = 0;
    }

    /// Returns the number of elements that still fit.
    #[inline(always)]
    pub(super) fn room(&self) -> usize {
        N - self.known_len()
    }

    /// Returns a pointer past the last element, to unused memory for [`Self::room`] ones.
    #[inline(always)]
    pub(super) fn end(&mut self) -> *mut T {
        // SAFETY: By the type invariants, this is within the slots or one past the end.
        unsafe { self.slots.as_mut_ptr().add(self.len).cast() }
    }

    /// Takes over `count` elements.
    ///
    /// # Safety
    ///
    /// That many have been written from [`Self::end`] on, and `count` is at most [`Self::room`].
    #[inline(always)]
    pub(super) unsafe fn grow(&mut self, count: usize) {
        // INVARIANT: By the safety requirements.
        self.len += count;
    }

    /// Moves the elements from index `first` on to the beginning.
    ///
    /// # Safety
    ///
    /// `first` is at most the number of elements, and those before it have been moved out.
    #[cold]
    #[inline(never)]
    unsafe fn keep_from(&mut self, first: usize) {
        let rest = self.len - first;
        let base = self.slots.as_mut_ptr();
        // SAFETY: By the type invariants and the safety requirements, these are elements.
        unsafe { core::ptr::copy(base.add(first), base, rest) };
        // INVARIANT: The remaining elements are the first ones now.
        self.len = rest;
    }

    /// Drops all elements.
    #[inline]
    pub fn clear(&mut self) {
        let all: *mut [T] = self.as_mut_slice();
        // INVARIANT: There are no elements any more, even if a destructor does not return.
        self.len = 0;
        // SAFETY: These were the elements, and they are not used again.
        unsafe { core::ptr::drop_in_place(all) };
    }
}

impl<T, const N: usize> Default for Chunk<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> From<[T; N]> for Chunk<T, N> {
    #[inline(always)]
    fn from(values: [T; N]) -> Self {
        let values = ManuallyDrop::new(values);
        // INVARIANT: All slots hold elements.
        Self {
            len: N,
            // SAFETY: The array and the slots have the same layout; the array is not dropped.
            slots: unsafe { core::mem::transmute_copy(&values) },
        }
    }
}

impl<T, const N: usize> Drop for Chunk<T, N> {
    #[inline]
    fn drop(&mut self) {
        self.clear();
    }
}
