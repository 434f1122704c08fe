// SPDX-License-Identifier: GPL-2.0

//! Many objects of a cache, allocated and freed together.

use super::{
    Cache,
    Object, //
};
use crate::{
    alloc::{
        AllocError,
        Flags, //
    },
    bindings,
    prelude::*, //
};
use core::{
    mem::MaybeUninit,
    ptr::NonNull, //
};

/// Up to `N` objects of a cache.
///
/// Adding and removing objects one by one moves pointers. Memory is allocated by
/// [`Batch::alloc`] and freed by [`Batch::clear`] or when the batch is dropped, with
/// one call each however many objects there are.
///
/// A batch has the size of `N` pointers, which matters on the stack.
///
/// # Invariants
///
/// The first `len` elements of `objects` point to objects that were allocated from `cache`, hold
/// values, and are owned by the batch; `len <= N`.
// The slab allocator copies the pointers with string instructions, which are slower if the array
// does not start at a cache line: by up to a tenth of a call for few objects.
#[repr(C, align(64))]
pub struct Batch<'c, T, const N: usize> {
    objects: [MaybeUninit<NonNull<T>>; N],
    cache: &'c Cache<T>,
    len: usize,
}

// SAFETY: A batch owns its values like a vector of boxes does.
unsafe impl<T: Send, const N: usize> Send for Batch<'_, T, N> {}

// SAFETY: A batch owns its values like a vector of boxes does.
unsafe impl<T: Sync, const N: usize> Sync for Batch<'_, T, N> {}

impl<'c, T, const N: usize> Batch<'c, T, N> {
    /// Returns an empty batch.
    #[inline]
    pub fn new(cache: &'c Cache<T>) -> Self {
        // INVARIANT: There are no objects.
        Self {
            objects: [const { MaybeUninit::uninit() }; N],
            cache,
            len: 0,
        }
    }

    /// Returns the number of objects.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Checks whether there are no objects.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of objects that can still be added.
    #[inline]
    pub fn room(&self) -> usize {
        // By the type invariants, this does not wrap.
        N.wrapping_sub(self.len)
    }

    /// Adds `count` new objects with values from `init`.
    ///
    /// `init` is called with numbers from 0 on. Either all objects are added, or none: if `init`
    /// fails, the values made so far are dropped and the memory is freed.
    ///
    /// # Errors
    ///
    /// Errors of `init`; [`ENOSPC`] if there is no room for `count` more; [`ENOMEM`] if there is
    /// no memory.
    #[inline]
    pub fn alloc<E: From<Error>>(
        &mut self,
        count: usize,
        flags: Flags,
        mut init: impl FnMut(usize) -> Result<T, E>,
    ) -> Result<(), E> {
        if count > self.room() {
            return Err(ENOSPC.into());
        }
        let (cache, len) = (self.cache, self.len);
        // SAFETY: By the type invariants, `len <= N`; and there is room for `count` more.
        let places = unsafe {
            self.objects
                .get_unchecked_mut(len..)
                .get_unchecked_mut(..count)
        };

        alloc_bulk(cache, flags, places).map_err(|e| E::from(e.into()))?;

        for i in 0..count {
            // SAFETY: `alloc_bulk` has made all elements of `places` point to memory.
            let slot = unsafe { value_of(places, i) };
            match init(i) {
                // SAFETY: It points to unused memory for a `T`.
                Ok(value) => unsafe { slot.write(value) },
                Err(error) => {
                    for done in 0..i {
                        // SAFETY: This element points to memory that holds a value.
                        unsafe { value_of(places, done).drop_in_place() };
                    }
                    // SAFETY: All elements of `places` point to memory from `cache`, in which there
                    // are no values any more. The batch does not count them as its own.
                    unsafe { free_bulk(cache, places) };
                    return Err(error);
                }
            }
        }
        // INVARIANT: `count` more elements point to objects with values, and there was room.
        self.len = len.wrapping_add(count);
        Ok(())
    }

    /// Adds an object, or gives it back if there is no room or it comes from another cache.
    #[inline]
    pub fn push(&mut self, object: Object<'c, T>) -> Result<(), Object<'c, T>> {
        if !core::ptr::eq(self.cache, object.cache) {
            return Err(object);
        }
        match self.objects.get_mut(self.len) {
            Some(place) => {
                place.write(Object::into_raw(object));
                // INVARIANT: The object comes from `cache`, holds a value, and is ours now.
                self.len = self.len.wrapping_add(1);
                Ok(())
            }
            None => Err(object),
        }
    }

    /// Adds an object to be freed later.
    ///
    /// This is for collecting objects from many places: a full batch is freed first, with one call.
    /// An object of another cache is freed on its own, at once.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::slab::{
    ///     Batch,
    ///     Cache, //
    /// };
    ///
    /// let cache = Cache::new(c"rust_doc_gather", 16)?;
    /// let mut garbage = Batch::<u32, 16>::new(&cache);
    /// for i in 0..20 {
    ///     garbage.gather(cache.alloc(i, GFP_KERNEL)?);
    /// }
    /// // The first sixteen have been freed with one call.
    /// assert_eq!(garbage.len(), 4);
    /// # Ok::<(), Error>(())
    /// ```
    #[inline]
    pub fn gather(&mut self, object: Object<'c, T>) {
        if self.room() == 0 {
            self.clear();
        }
        // An object that is returned comes from another cache, or `N` is zero: drop it.
        let _ = self.push(object);
    }

    /// Takes out the object that was added last.
    #[inline]
    pub fn pop(&mut self) -> Option<Object<'c, T>> {
        let last = self.len.checked_sub(1)?;
        // SAFETY: By the type invariants, there are `len` initialised elements.
        let ptr = unsafe { self.objects.get_unchecked(last).assume_init() };
        // INVARIANT: The last object is not ours any more.
        self.len = last;
        // SAFETY: By the type invariants, this is an object of this cache that we owned, and have
        // just given up.
        Some(unsafe { Object::from_raw(self.cache, ptr) })
    }

    /// Returns an iterator over the values.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.objects.iter().take(self.len).map(|place| {
            // SAFETY: By the type invariants, the first `len` elements point to values, which do
            // not change while `self` is borrowed.
            unsafe { place.assume_init().as_ref() }
        })
    }

    /// Returns an iterator over the values that allows changing them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.objects.iter_mut().take(self.len).map(|place| {
            // SAFETY: By the type invariants, the first `len` elements point to distinct values.
            // `self` is borrowed mutably, so there is no other access to them.
            unsafe { place.assume_init().as_mut() }
        })
    }

    /// Returns the cache, the number of objects, and the places for them.
    ///
    /// This is for callers that allocate and free the memory of objects in another way.
    ///
    /// # Safety
    ///
    /// The type invariants must hold again when the borrow ends.
    #[inline(always)]
    #[cfg_attr(not(CONFIG_QMEMPOOL), expect(dead_code, reason = "for qmempool"))]
    pub(crate) unsafe fn parts(
        &mut self,
    ) -> (&'c Cache<T>, &mut usize, &mut [MaybeUninit<NonNull<T>>; N]) {
        (self.cache, &mut self.len, &mut self.objects)
    }

    /// Drops all values and frees their memory.
    #[inline]
    pub fn clear(&mut self) {
        // INVARIANT: The batch gives up all objects.
        let len = core::mem::take(&mut self.len);
        // SAFETY: By the type invariants, `len <= N`.
        let places = unsafe { self.objects.get_unchecked_mut(..len) };

        if core::mem::needs_drop::<T>() {
            for i in 0..len {
                // SAFETY: By the type invariants, this element points to a value that we owned.
                unsafe { value_of(places, i).drop_in_place() };
            }
        }
        // SAFETY: By the type invariants, all elements of `places` point to memory from `cache`
        // that we owned, and the values have been dropped.
        unsafe { free_bulk(self.cache, places) };
    }
}

impl<T, const N: usize> Drop for Batch<'_, T, N> {
    #[inline]
    fn drop(&mut self) {
        self.clear();
    }
}

/// Returns the object to which an element points.
///
/// # Safety
///
/// `index` is less than the length of `places`, and that element is initialised.
#[inline(always)]
unsafe fn value_of<T>(places: &[MaybeUninit<NonNull<T>>], index: usize) -> *mut T {
    // SAFETY: By the safety requirements.
    unsafe { places.get_unchecked(index).assume_init() }.as_ptr()
}

// A batch of one object takes this path, too: a single call would be faster, but would make the
// allocator fill the whole sheaf.

/// Makes all elements of `places` point to new memory, or none of them.
#[inline(always)]
fn alloc_bulk<T>(
    cache: &Cache<T>,
    flags: Flags,
    places: &mut [MaybeUninit<NonNull<T>>],
) -> Result<(), AllocError> {
    // The allocator treats zero objects as a failure.
    if places.is_empty() {
        return Ok(());
    }
    // SAFETY: The cache is valid, and `places` has this length. `NonNull` has the layout of a
    // pointer, and on success the allocator writes no null pointers.
    let done = unsafe {
        bindings::kmem_cache_alloc_bulk(
            cache.as_raw(),
            flags.as_raw(),
            places.len(),
            places.as_mut_ptr().cast(),
        )
    };
    done.then_some(()).ok_or(AllocError)
}

/// Frees the memory to which the elements of `places` point. They are undefined afterwards.
///
/// # Safety
///
/// All elements are initialised, and point to memory that was allocated from `cache`, belongs to
/// the caller, and is not used any more.
#[inline(always)]
unsafe fn free_bulk<T>(cache: &Cache<T>, places: &mut [MaybeUninit<NonNull<T>>]) {
    // Dropping an empty batch is common: skip the call.
    if places.is_empty() {
        return;
    }
    // SAFETY: By the safety requirements. `NonNull` has the layout of a pointer.
    unsafe {
        bindings::kmem_cache_free_bulk(
            cache.as_raw(),
            places.len(),
            places.as_mut_ptr().cast::<*mut c_void>(),
        )
    };
}
