// SPDX-License-Identifier: GPL-2.0

//! Slab caches: memory for objects of one type, one at a time or in bulk.
//!
//! A [`Cache`] hands out [`Object`]s, each of which owns its memory and the value in it. A
//! [`Batch`] holds many of them and allocates and frees their memory with one call to the slab
//! allocator, which saves most of the cost of a call per object.
//!
//! That saving depends on the allocator finding the objects of a call in its per-CPU store: what
//! goes beyond takes a path that is several times slower than single calls. The store is as large
//! as its creator asks for, so a cache is told how many objects a bulk call handles at most, see
//! [`Cache::new`].
//!
//! C header: [`include/linux/slab.h`](srctree/include/linux/slab.h)
//!
//! # Examples
//!
//! ```
//! use kernel::slab::{
//!     Batch,
//!     Cache, //
//! };
//!
//! let cache = Cache::<[u64; 4]>::new(c"rust_doc_slab", 16)?;
//!
//! // One at a time.
//! let mut object = cache.alloc([1, 2, 3, 4], GFP_KERNEL)?;
//! object[0] = 5;
//! assert_eq!(*object, [5, 2, 3, 4]);
//!
//! // In bulk: one call allocates all of them, one call frees them.
//! let mut batch = Batch::<_, 16>::new(&cache);
//! batch.alloc(8, GFP_KERNEL, |i| Ok::<_, Error>([i as u64; 4]))?;
//! assert_eq!(batch.len(), 8);
//!
//! // Objects move between the two.
//! assert!(batch.push(object).is_ok());
//! assert_eq!(batch.pop().map(|object| object[0]), Some(5));
//! # Ok::<(), Error>(())
//! ```

use crate::{
    alloc::{
        AllocError,
        Flags, //
    },
    bindings,
    fmt,
    prelude::*, //
};
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ops::{
        Deref,
        DerefMut, //
    },
    ptr::NonNull, //
};

mod batch;
mod tests;

pub use batch::Batch;

/// A cache of memory for objects of type `T`.
///
/// Creating and dropping a cache may sleep. Objects borrow from the cache, so it is dropped after
/// them. If an object was forgotten (see [`core::mem::forget`]), dropping the cache warns, and
/// leaks it.
///
/// # Invariants
///
/// `raw` is a valid cache, owned by this, whose objects have the size and alignment of `T`.
pub struct Cache<T> {
    raw: NonNull<bindings::kmem_cache>,
    _objects: PhantomData<fn() -> T>,
}

// SAFETY: A cache can be used and destroyed by any context. It does not access the objects.
unsafe impl<T> Send for Cache<T> {}

// SAFETY: A cache can be used by several contexts at the same time.
unsafe impl<T> Sync for Cache<T> {}

impl<T> Cache<T> {
    /// Creates a cache whose name is `name` in statistics.
    ///
    /// `bulk` is the greatest number of objects that a bulk call is going to handle. More is
    /// allowed but slow. Each CPU may keep twice as many unused objects.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if a size does not fit into 32 bits, [`ENOMEM`] if there is no memory.
    pub fn new(name: &CStr, bulk: usize) -> Result<Self> {
        // The allocator needs an object to have a size.
        let size = size_of::<T>().max(1);
        let capacity = bulk.checked_mul(2).ok_or(EINVAL)?;

        // SAFETY: `name` is a valid string, which is copied. There is no constructor.
        let raw = unsafe {
            bindings::kmem_cache_create_typed(
                name.as_char_ptr(),
                size.try_into()?,
                align_of::<T>().try_into()?,
                capacity.try_into()?,
            )
        };

        // INVARIANT: `raw` was just created with the size and alignment of `T`.
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            _objects: PhantomData,
        })
    }

    /// Allocates an object and moves `value` into it.
    ///
    /// The context must be one that `flags` allow.
    #[inline]
    pub fn alloc(&self, value: T, flags: Flags) -> Result<Object<'_, T>, AllocError> {
        let ptr = self.alloc_raw(flags).ok_or(AllocError)?;
        // SAFETY: `ptr` is memory for a `T` that nobody else uses.
        unsafe { ptr.write(value) };
        // INVARIANT: `ptr` comes from this cache and holds a value.
        Ok(Object { cache: self, ptr })
    }

    #[inline]
    fn alloc_raw(&self, flags: Flags) -> Option<NonNull<T>> {
        // SAFETY: By the type invariants, the cache is valid.
        let ptr = unsafe { bindings::kmem_cache_alloc(self.as_raw(), flags.as_raw()) };
        NonNull::new(ptr.cast())
    }

    #[inline]
    fn as_raw(&self) -> *mut bindings::kmem_cache {
        self.raw.as_ptr()
    }
}

impl<T> Drop for Cache<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariants, the cache is valid and ours. Objects borrow from it, so
        // there are none that anybody could use.
        unsafe { bindings::kmem_cache_destroy(self.as_raw()) };
    }
}

/// An object that owns its memory in a cache.
///
/// # Invariants
///
/// `ptr` was allocated from `cache`, is owned by this, and holds a value.
pub struct Object<'c, T> {
    cache: &'c Cache<T>,
    ptr: NonNull<T>,
}

// SAFETY: An object owns its value like a box does.
unsafe impl<T: Send> Send for Object<'_, T> {}

// SAFETY: An object owns its value like a box does.
unsafe impl<T: Sync> Sync for Object<'_, T> {}

impl<'c, T> Object<'c, T> {
    /// Moves the value out and frees the memory.
    #[inline]
    pub fn into_inner(this: Self) -> T {
        let this = ManuallyDrop::new(this);
        // SAFETY: By the type invariants, `ptr` holds a value. It is not used again.
        let value = unsafe { this.ptr.read() };
        // SAFETY: By the type invariants, `ptr` was allocated from this cache, and belongs to us.
        unsafe { bindings::kmem_cache_free(this.cache.as_raw(), this.ptr.as_ptr().cast()) };
        value
    }

    /// Gives up the object without dropping it.
    #[inline]
    fn into_raw(this: Self) -> NonNull<T> {
        ManuallyDrop::new(this).ptr
    }

    /// Takes over an object.
    ///
    /// # Safety
    ///
    /// `ptr` was allocated from `cache`, holds a value, and belongs to the caller, who gives it up.
    #[inline]
    unsafe fn from_raw(cache: &'c Cache<T>, ptr: NonNull<T>) -> Self {
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
            bindings::kmem_cache_free(self.cache.as_raw(), self.ptr.as_ptr().cast());
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

impl<T: fmt::Debug> fmt::Debug for Object<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
