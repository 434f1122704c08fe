// SPDX-License-Identifier: GPL-2.0

//! Slab caches: memory for objects of one type, one at a time or in bulk.
//!
//! A [`Cache`] hands out [`Object`]s, each of which owns its memory and the value in it. A
//! [`Batch`] holds many of them and allocates and frees their memory with one call to the slab
//! allocator, which saves most of the cost of a call per object. [`PinnedBatch`] is the same for
//! values that must not move.
//!
//! # The store
//!
//! That saving depends on the allocator finding the objects of a call, and room for those that are
//! freed, in the store of the CPU (its *sheaves*): what goes beyond takes a path that is several
//! times slower than single calls. Bulk calls use a store but never enlarge it. The store is as
//! large as its creator asks for, so a cache is told how many objects a bulk call handles at most,
//! see [`Cache::new`] and [`Options::keep`].
//!
//! Unused objects stay in the store. With `keep` for the number of [`Options::keep`],
//!
//! - a cache from which objects are allocated and freed in bulk only, keeps at most `keep` objects
//!   per CPU, and never more than have been freed there;
//! - a single call that finds nothing in the store fills it, and if objects are also freed one by
//!   one, there may be a second store of that size per CPU, and up to ten more per NUMA node.
//!
//! [`Cache::shrink`] gives all of that back, [`Cache::footprint`] says how much it is.
//!
//! # Contexts
//!
//! Objects are allocated where the allocation flags permit it and freed anywhere but in an NMI, one
//! by one and in bulk, with interrupts enabled or disabled. With `CONFIG_PREEMPT_RT`, neither is
//! possible where it is not possible to sleep. Caches are created, shrunk and dropped where it is
//! possible to sleep.
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
mod footprint;
mod object;
mod options;
mod pinned;
mod raw;
mod tests;

pub use self::{
    batch::Batch,
    footprint::Footprint,
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
    /// Creates a cache whose name is `name` in statistics.
    ///
    /// `bulk` is the greatest number of objects that a bulk call is going to handle, see
    /// [`Options::bulk`].
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
    /// [`EINVAL`] if `T` is larger or more aligned than what can be allocated in one piece (a few
    /// megabytes), if the same is true of the store for so many objects, or if the region for user
    /// space does not lie within an object; [`ENOMEM`] if there is no memory.
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
        // SAFETY: `ptr` is memory for a `T` that nobody else uses.
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
    /// What `init` returns; [`ENOMEM`] if there is no memory.
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
    /// What `init` returns; [`ENOMEM`] if there is no memory.
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
        // SAFETY: `ptr` is memory for a `T` that nobody else uses; by the safety requirements, the
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

    /// Gives the memory back that the cache keeps for later: what is in the stores of CPUs and
    /// nodes goes back to the slabs, and slabs without objects to the page allocator.
    ///
    /// May sleep, and waits for all CPUs. This takes the CPU hotplug lock, so it must not be called
    /// by a shrinker; a shrinker can have it done by a work item. The stores fill again with what
    /// is freed later.
    pub fn shrink(&self) {
        // SAFETY: By the type invariants, the cache is valid. The returned value only says whether
        // there are slabs left.
        unsafe { bindings::kmem_cache_shrink(self.as_raw()) };
    }

    /// How much memory the cache takes, objects in use included.
    ///
    /// This goes through the lists of the allocator; it is for statistics and tests. Without
    /// `CONFIG_SLUB_DEBUG` the answer is not known.
    pub fn footprint(&self) -> Option<Footprint> {
        // SAFETY: By the type invariants, the cache is valid.
        unsafe { footprint::of(self.raw) }
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
        // there are none that anybody could use.
        unsafe { bindings::kmem_cache_destroy(self.as_raw()) };
    }
}
