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
/// [`Batch::alloc`] and freed by [`Batch::clear`] or when the batch is dropped, with one call each
/// however many objects there are. With interrupts disabled, bulk calls are not possible; the
/// objects are allocated and freed one by one then.
///
/// # Invariants
///
/// The first `len` elements of `objects` point to objects that were allocated from `cache`, hold
/// values, and are owned by the batch; `len <= N`.
pub struct Batch<'c, T, const N: usize> {
    cache: &'c Cache<T>,
    len: usize,
    objects: [MaybeUninit<NonNull<T>>; N],
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
            cache,
            len: 0,
            objects: [const { MaybeUninit::uninit() }; N],
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

    /// Adds `count` new objects, the values of which come from `init`.
    ///
    /// `init` is called with numbers from 0 on. Either all objects are added, or none: if `init`
    /// fails, the values that it has made are dropped and the memory is freed.
    ///
    /// # Errors
    ///
    /// What `init` returns; [`ENOSPC`] if there is no room for `count` more; [`ENOMEM`] if there is
    /// no memory.
    pub fn alloc<E: From<Error>>(
        &mut self,
        count: usize,
        flags: Flags,
        mut init: impl FnMut(usize) -> Result<T, E>,
    ) -> Result<(), E> {
        let cache = self.cache;
        let Some(places) = self
            .objects
            .get_mut(self.len..)
            .and_then(|places| places.get_mut(..count))
        else {
            return Err(ENOSPC.into());
        };
        alloc_bulk(cache, flags, places).map_err(|e| E::from(e.into()))?;

        for i in 0..count {
            match init(i) {
                // SAFETY: `alloc_bulk` has made all elements of `places` point to memory for a
                // `T` that is ours.
                Ok(value) => unsafe { value_of(places, i).write(value) },
                Err(error) => {
                    for done in 0..i {
                        // SAFETY: This element points to memory into which we wrote a value.
                        unsafe { value_of(places, done).drop_in_place() };
                    }
                    // SAFETY: All elements of `places` point to memory from `cache`, in which
                    // there are no values any more. The batch does not count them as its own.
                    unsafe { free_bulk(cache, places) };
                    return Err(error);
                }
            }
        }
        // INVARIANT: `count` more elements point to objects with values.
        self.len += count;
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
                self.len += 1;
                Ok(())
            }
            None => Err(object),
        }
    }

    /// Takes out the object that was added last.
    #[inline]
    pub fn pop(&mut self) -> Option<Object<'c, T>> {
        let last = self.len.checked_sub(1)?;
        let place = self.objects.get(last)?;
        // INVARIANT: The last object is not ours any more.
        self.len = last;
        // SAFETY: By the type invariants, it was initialised to an object of this cache that we
        // owned, and have just given up.
        Some(unsafe { Object::from_raw(self.cache, place.assume_init()) })
    }

    /// Returns an iterator over the values.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.objects.iter().take(self.len).map(|place| {
            // SAFETY: By the type invariants, the first `len` elements point to values, which
            // nobody changes while `self` is borrowed.
            unsafe { place.assume_init().as_ref() }
        })
    }

    /// Returns an iterator over the values that allows changing them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.objects.iter_mut().take(self.len).map(|place| {
            // SAFETY: By the type invariants, the first `len` elements point to distinct values,
            // which nobody else accesses while `self` is borrowed.
            unsafe { place.assume_init().as_mut() }
        })
    }

    /// Drops all values and frees their memory.
    pub fn clear(&mut self) {
        // INVARIANT: The batch gives up all objects.
        let len = core::mem::take(&mut self.len);
        let Some(places) = self.objects.get_mut(..len) else {
            return;
        };
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

/// Whether the allocator's bulk calls may be used: they need interrupts to be enabled.
#[inline(always)]
fn may_bulk() -> bool {
    // SAFETY: This can be called in any context.
    !unsafe { bindings::irqs_disabled() }
}

/// Makes all elements of `places` point to new memory, or none of them.
fn alloc_bulk<T>(
    cache: &Cache<T>,
    flags: Flags,
    places: &mut [MaybeUninit<NonNull<T>>],
) -> Result<(), AllocError> {
    if places.is_empty() {
        return Ok(());
    }
    if !may_bulk() {
        let mut done = 0;
        for place in places.iter_mut() {
            let Some(ptr) = cache.alloc_raw(flags) else {
                break;
            };
            place.write(ptr);
            done += 1;
        }
        if done == places.len() {
            return Ok(());
        }
        if let Some(places) = places.get_mut(..done) {
            // SAFETY: The first `done` elements point to memory that we have just allocated.
            unsafe { free_bulk(cache, places) };
        }
        return Err(AllocError);
    }

    // SAFETY: The cache is valid, and there are as many places as we say. `NonNull` has the layout
    // of a pointer, and the allocator does not hand out null.
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
unsafe fn free_bulk<T>(cache: &Cache<T>, places: &mut [MaybeUninit<NonNull<T>>]) {
    if places.is_empty() {
        return;
    }
    if !may_bulk() {
        for place in places {
            // SAFETY: By the safety requirements.
            unsafe {
                bindings::kmem_cache_free(cache.as_raw(), place.assume_init().as_ptr().cast())
            };
        }
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
