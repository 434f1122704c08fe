// SPDX-License-Identifier: GPL-2.0

//! A single object of a cache.

use super::Cache;
use core::{
    mem::ManuallyDrop,
    ops::{
        Deref,
        DerefMut, //
    },
    ptr::NonNull, //
};

/// An object that owns its memory in a cache.
///
/// # Invariants
///
/// `ptr` was allocated from `cache`, is owned by this, and holds a value.
pub struct Object<'c, T> {
    pub(crate) cache: &'c Cache<T>,
    ptr: NonNull<T>,
}

// SAFETY: An object owns its value like a box does.
unsafe impl<T: Send> Send for Object<'_, T> {}

// SAFETY: An object owns its value like a box does.
unsafe impl<T: Sync> Sync for Object<'_, T> {}

impl<'c, T> Object<'c, T> {
    /// Gives up the object without dropping it.
    #[inline]
    pub(crate) fn into_raw(this: Self) -> NonNull<T> {
        ManuallyDrop::new(this).ptr
    }

    /// Takes over an object.
    ///
    /// # Safety
    ///
    /// `ptr` was allocated from `cache`, holds a value, and belongs to the caller, which gives it
    /// up.
    #[inline]
    pub(crate) unsafe fn from_raw(cache: &'c Cache<T>, ptr: NonNull<T>) -> Self {
        // INVARIANT: The safety requirements are the type invariants.
        Self { cache, ptr }
    }
}

impl<T> Drop for Object<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariants, `ptr` holds a value, and was allocated from this cache.
        // Neither is used again.
        unsafe {
            self.ptr.drop_in_place();
            self.cache.free_raw(self.ptr);
        }
    }
}

impl<T> Deref for Object<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: By the type invariants, `ptr` holds a value that belongs to us.
        unsafe { self.ptr.as_ref() }
    }
}

impl<T> DerefMut for Object<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: By the type invariants, `ptr` holds a value that belongs to us.
        unsafe { self.ptr.as_mut() }
    }
}
