// SPDX-License-Identifier: GPL-2.0

//! Slab caches: memory for objects of one type, one at a time or in bulk.
//!
//! A [`Cache`] allocates [`Object`]s, each of which owns its memory and the value in it. A
//! [`Batch`] holds many of them and allocates and frees their memory with one call to the slab
//! allocator, which saves most of the cost of a call per object. [`PinnedBatch`] is the same for
//! values that must not move.
//!
//! # Sheaves
//!
//! The allocator keeps free objects in sheaves, arrays of pointers: two for each CPU, and up to ten
//! full ones for each NUMA node. A bulk call copies pointers from and to a sheaf of the CPU. Where
//! that is used up it takes the next one, under the lock of the node. Allocation takes objects from
//! the slabs when the sheaves are empty. The capacity of a sheaf is set when the cache is created,
//! so the creator states the maximum number of objects per bulk call, see [`Cache::new`] and
//! [`Options::keep`]: one sheaf then serves a whole call.
//!
//! Unused objects stay in sheaves. If `keep` is the number given to [`Options::keep`], a cache
//! keeps at most two times `keep` objects per CPU and ten times `keep` per NUMA node. A bulk call
//! allocates no object ahead of its use; a single allocation that finds the sheaf empty fills it.
//!
//! [`Cache::shrink`] frees all of them.
//!
//! # Contexts
//!
//! Objects can be allocated in any context that the allocation flags permit, and freed in any
//! context but NMI, one by one and in bulk, with interrupts enabled or disabled. With
//! `CONFIG_PREEMPT_RT`, both need a context that can sleep. Creating, shrinking and dropping
//! a cache may sleep.
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
        flags::__GFP_ZERO,
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
mod pinned;
mod raw;
#[cfg(CONFIG_KUNIT)]
mod tests;

pub use self::{
    batch::Batch,
    object::Object,
    options::Options,
    pinned::PinnedBatch, //
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
    /// [`EINVAL`] if `T`, its alignment, or a sheaf of the requested capacity exceeds the largest
    /// contiguous allocation (a few megabytes), or if the usercopy region is not within an object;
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

    /// Allocates an object whose bytes are all zero.
    ///
    /// The context must be one that `flags` allow.
    #[inline]
    pub fn alloc_zeroed(&self, flags: Flags) -> Result<Object<'_, T>, AllocError>
    where
        T: Zeroable,
    {
        let ptr = self.alloc_raw(flags | __GFP_ZERO).ok_or(AllocError)?;
        // SAFETY: `ptr` comes from this cache, holds zeros, which are a value, and is given up.
        Ok(unsafe { Object::from_raw(self, ptr) })
    }

    /// Allocates an object and initialises it in place.
    ///
    /// The context must be one that `flags` allow. If `init` fails, the memory is freed.
    ///
    /// # Errors
    ///
    /// Errors of `init`; [`ENOMEM`] if there is no memory.
    #[inline]
    pub fn alloc_init<E>(&self, init: impl Init<T, E>, flags: Flags) -> Result<Object<'_, T>>
    where
        Error: From<E>,
    {
        // SAFETY: As `init` is an `Init`, the value may be moved.
        unsafe { self.alloc_with(init, flags) }
    }

    /// Allocates an object and initialises it in place, where it then stays.
    ///
    /// The context must be one that `flags` allow. If `init` fails, the memory is freed.
    ///
    /// # Errors
    ///
    /// Errors of `init`; [`ENOMEM`] if there is no memory.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{
    ///     new_spinlock,
    ///     slab::Cache,
    ///     sync::SpinLock, //
    /// };
    ///
    /// #[pin_data]
    /// struct Counter {
    ///     #[pin]
    ///     count: SpinLock<u32>,
    /// }
    ///
    /// let cache = Cache::<Counter>::new(c"rust_doc_pinned", 0)?;
    /// let counter = cache.alloc_pin_init(
    ///     pin_init!(Counter { count <- new_spinlock!(1) }),
    ///     GFP_KERNEL,
    /// )?;
    /// *counter.count.lock() += 1;
    /// assert_eq!(*counter.count.lock(), 2);
    /// # Ok::<(), Error>(())
    /// ```
    #[inline]
    pub fn alloc_pin_init<E>(
        &self,
        init: impl PinInit<T, E>,
        flags: Flags,
    ) -> Result<Pin<Object<'_, T>>>
    where
        Error: From<E>,
    {
        // SAFETY: The object is pinned right away.
        unsafe { self.alloc_with(init, flags) }.map(Object::into_pin)
    }

    /// Allocates an object and initialises it.
    ///
    /// # Safety
    ///
    /// The value must not be moved, unless `init` is an [`Init`].
    #[inline(always)]
    unsafe fn alloc_with<E>(&self, init: impl PinInit<T, E>, flags: Flags) -> Result<Object<'_, T>>
    where
        Error: From<E>,
    {
        let ptr = self.alloc_raw(flags).ok_or(ENOMEM)?;
        // SAFETY: `ptr` is unused memory for a `T`; by the safety requirements, the
        // value stays there. After an error, the memory is freed, not touched.
        match unsafe { pin_init::raw_try_init(ptr.as_ptr(), init) } {
            // SAFETY: `ptr` comes from this cache, holds a value, and is given up.
            Ok(()) => Ok(unsafe { Object::from_raw(self, ptr) }),
            Err(error) => {
                // SAFETY: `ptr` comes from this cache, and there is no value in it.
                unsafe { self.free_raw(ptr) };
                Err(error.into())
            }
        }
    }

    /// Frees unused memory: the objects in sheaves of CPUs and nodes return to their slabs, and
    /// empty slabs to the page allocator.
    ///
    /// May sleep, and waits for all CPUs. This takes the CPU hotplug lock, so a shrinker must not
    /// call it directly, but can queue a work item that does. Objects freed later fill the sheaves
    /// again.
    pub fn shrink(&self) {
        // SAFETY: By the type invariants, the cache is valid. The return value only tells whether
        // slabs are left.
        unsafe { bindings::kmem_cache_shrink(self.as_raw()) };
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
