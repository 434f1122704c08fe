// SPDX-License-Identifier: GPL-2.0

//! The bulk calls of the allocator.

use super::Cache;
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

/// Whether the allocator's bulk calls may be used: they need interrupts to be enabled.
#[inline(always)]
fn may_bulk() -> bool {
    // SAFETY: This can be called in any context.
    !unsafe { bindings::irqs_disabled() }
}

/// Makes all elements of `places` point to new memory, or none of them.
#[inline(always)]
pub(super) fn alloc_bulk<T>(
    cache: &Cache<T>,
    flags: Flags,
    places: &mut [MaybeUninit<NonNull<T>>],
) -> Result<(), AllocError> {
    // A single call is the faster way to get a single object.
    if places.len() <= 1 || !may_bulk() {
        return alloc_each(cache, flags, places);
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

/// [`alloc_bulk`] without bulk calls.
fn alloc_each<T>(
    cache: &Cache<T>,
    flags: Flags,
    places: &mut [MaybeUninit<NonNull<T>>],
) -> Result<(), AllocError> {
    for i in 0..places.len() {
        match cache.alloc_raw(flags) {
            Some(ptr) => {
                // SAFETY: `i` is less than the length.
                unsafe { places.get_unchecked_mut(i) }.write(ptr);
            }
            None => {
                // SAFETY: There are `i` elements at least, which point to memory that we have just
                // allocated.
                unsafe { free_each(cache, places.get_unchecked(..i)) };
                return Err(AllocError);
            }
        }
    }
    Ok(())
}

/// Frees the memory to which the elements of `places` point. They are undefined afterwards.
///
/// # Safety
///
/// All elements are initialised, and point to memory that was allocated from `cache`, belongs to
/// the caller, and is not used any more.
#[inline(always)]
pub(super) unsafe fn free_bulk<T>(cache: &Cache<T>, places: &mut [MaybeUninit<NonNull<T>>]) {
    if places.len() <= 1 || !may_bulk() {
        // SAFETY: By the safety requirements.
        return unsafe { free_each(cache, places) };
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

/// [`free_bulk`] without bulk calls.
///
/// # Safety
///
/// Those of [`free_bulk`].
unsafe fn free_each<T>(cache: &Cache<T>, places: &[MaybeUninit<NonNull<T>>]) {
    for place in places {
        // SAFETY: By the safety requirements.
        unsafe { cache.free_raw(place.assume_init()) };
    }
}
