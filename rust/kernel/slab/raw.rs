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

// A batch of one object takes this path, too: a single call would be faster, but would make the
// allocator fill the whole sheaf.

/// Makes all elements of `places` point to new memory, or none of them.
#[inline(always)]
pub(super) fn alloc_bulk<T>(
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
pub(super) unsafe fn free_bulk<T>(cache: &Cache<T>, places: &mut [MaybeUninit<NonNull<T>>]) {
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
