// SPDX-License-Identifier: GPL-2.0

//! Slab caches: memory for objects of one type, one at a time or in bulk.
//!
//! A [`Cache`] allocates [`Object`]s, each of which owns its memory and the value in it. A
//! [`Batch`] holds many of them and allocates and frees their memory with one call to the slab
//! allocator, which saves most of the cost of a call per object.
//!
//! # Sheaves
//!
//! The allocator keeps free objects in sheaves, arrays of pointers: two for each CPU, and up to ten
//! full ones for each NUMA node. A bulk call copies pointers from and to a sheaf of the CPU. Where
//! that is used up it takes the next one, under the lock of the node. Allocation takes objects from
//! the slabs when the sheaves are empty. The capacity of a sheaf is set when the cache is created,
//! so the creator states the maximum number of objects per bulk call, see [`Cache::new`]: one sheaf
//! then serves a whole call.
//!
//! Unused objects stay in sheaves: those of about four bulk calls per CPU, and of twenty per NUMA
//! node, at most. A bulk call allocates no object ahead of its use; a single allocation that finds
//! the sheaf empty fills it.
//!
//! # Contexts
//!
//! Objects can be allocated in any context that the allocation flags permit, and freed in any
//! context but NMI, one by one and in bulk, with interrupts enabled or disabled. With
//! `CONFIG_PREEMPT_RT`, both need a context that can sleep. Creating and dropping a cache may
//! sleep.
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
    prelude::*, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

mod batch;
mod object;
mod options;
#[cfg(CONFIG_KUNIT)]
mod tests;

pub use self::{
    batch::Batch,
    object::Object,
    options::Options, //
};

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
    /// Creates a cache that is called `name` in statistics.
    ///
    /// `bulk` is the maximum number of objects per bulk call, see [`Options::bulk`].
    ///
    /// # Errors
    ///
    /// Those of [`Self::with_options`].
    #[inline]
    pub fn new(name: &CStr, bulk: usize) -> Result<Self> {
        Self::with_options(name, Options::new().bulk(bulk))
    }

    /// Creates a cache with options.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if `name` is empty, or if `T`, its alignment, or a sheaf of the requested
    /// capacity exceeds the largest contiguous allocation (a few megabytes);
    /// [`ENOMEM`] if there is no memory.
    pub fn with_options(name: &CStr, options: Options) -> Result<Self> {
        let raw = options.create(name, size_of::<T>(), align_of::<T>())?;

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
        // SAFETY: `ptr` is unused memory for a `T`.
        unsafe { ptr.write(value) };
        // SAFETY: `ptr` comes from this cache, holds a value, and is given up.
        Ok(unsafe { Object::from_raw(self, ptr) })
    }

    /// Allocates memory for an object.
    #[inline(always)]
    pub(crate) fn alloc_raw(&self, flags: Flags) -> Option<NonNull<T>> {
        // SAFETY: By the type invariants, the cache is valid.
        let ptr = unsafe { bindings::kmem_cache_alloc(self.as_raw(), flags.as_raw()) };
        NonNull::new(ptr.cast())
    }

    /// Frees the memory of an object.
    ///
    /// # Safety
    ///
    /// `ptr` was allocated from this cache, belongs to the caller, and is not used any more.
    #[inline(always)]
    pub(crate) unsafe fn free_raw(&self, ptr: NonNull<T>) {
        // SAFETY: By the type invariants, the cache is valid. The rest are the safety requirements.
        unsafe { bindings::kmem_cache_free(self.as_raw(), ptr.as_ptr().cast()) };
    }

    #[inline(always)]
    pub(crate) fn as_raw(&self) -> *mut bindings::kmem_cache {
        self.raw.as_ptr()
    }
}

impl<T> Drop for Cache<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariants, the cache is valid and ours. Objects borrow from it, so
        // none is in use.
        unsafe { bindings::kmem_cache_destroy(self.as_raw()) };
    }
}
