// SPDX-License-Identifier: GPL-2.0

//! Pools of objects in front of a slab cache.
//!
//! A [`QMemPool`] allocates an object in a few instructions: each CPU has two small arrays of
//! unused objects, called magazines, that no other CPU accesses. A [`Softirq`] token excludes other
//! contexts on the same CPU, so a caller in a softirq needs no further protection. Process context
//! takes a [`BhGuard`], which costs more than the allocation: for an occasional object, the slab
//! cache is the better choice.
//!
//! When the magazines of a CPU are empty, or full, it exchanges a whole magazine with the depot
//! that all CPUs share, a pair of [`alf_queue`]s. So objects that one CPU allocates and another
//! frees circulate in magazines, at the cost of two atomic operations per magazine. If the depot is
//! of no help, the pool calls the slab allocator for many objects at once.
//!
//! # Memory
//!
//! A pool holds unused objects: up to two magazines per CPU, and the depot. A CPU that goes offline
//! returns its objects. Memory reclaim empties the depot, then the magazines of all CPUs. The
//! magazines themselves, 512 bytes each, are allocated with the pool.
//!
//! The pool gives its objects to any caller. So it allocates none that are charged to a memory
//! cgroup, or that come from the reserves for freeing memory, whatever the flags say.
//!
//! C header: [`include/linux/qmempool.h`](srctree/include/linux/qmempool.h)
//!
//! # Examples
//!
//! ```
//! use kernel::{
//!     mm::qmempool::{
//!         Options,
//!         QMemPool, //
//!     },
//!     slab::Cache,
//!     softirq::BhGuard, //
//! };
//!
//! let cache = Cache::<[u64; 4]>::new(c"rust_doc_qmempool", 16)?;
//! let pool = QMemPool::new(c"rust_doc", cache, Options::new())?;
//!
//! // A NAPI driver gets the token from its poll function.
//! let guard = BhGuard::new().ok_or(EINVAL)?;
//! let local = pool.local(guard.softirq());
//! for i in 0..100 {
//!     let object = local.alloc([i; 4], GFP_ATOMIC)?;
//!     assert_eq!(object[3], i);
//!     local.free(object);
//! }
//! # drop(guard);
//! # Ok::<(), Error>(())
//! ```
//!
//! Objects do not outlive the pool, since they are memory of its cache:
//!
//! ```ignore
//! let object = {
//!     let pool = QMemPool::new(c"pool", cache, Options::new())?;
//!     pool.alloc(1, GFP_KERNEL)? // Does not compile: `pool` does not live long enough.
//! };
//! ```
//!
//! [`alf_queue`]: crate::sync::alf_queue

use crate::{
    alloc::{
        AllocError,
        Flags, //
    },
    prelude::*,
    slab::{
        Batch,
        Cache,
        Object, //
    },
    softirq::{
        BhGuard,
        Softirq, //
    }, //
};
use core::ptr::NonNull;

mod capi;
mod depot;
mod magazine;
mod pool;
mod shortage;
mod slab;
mod store;
mod tests;

use pool::Pool;
use store::Store;

/// A pool in front of a [`Cache`].
///
/// Creating and dropping a pool may sleep.
///
/// # Invariants
///
/// The slab of `pool` is `cache`.
pub struct QMemPool<T> {
    // Dropped first: it returns its objects to the cache.
    pool: KBox<Pool>,
    cache: Cache<T>,
}

/// The capacity of a pool.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    magazine: usize,
    depot: usize,
}

impl Options {
    /// Magazines of 32 objects, 16 of them in the depot.
    #[inline]
    pub const fn new() -> Self {
        Self {
            magazine: 32,
            depot: 16,
        }
    }

    /// Sets the number of objects in a magazine, from 1 to `QMEMPOOL_MAGAZINE_MAX`, and 128 KiB
    /// together at most.
    ///
    /// A CPU holds up to twice as many.
    #[inline]
    pub const fn magazine(mut self, objects: usize) -> Self {
        self.magazine = objects;
        self
    }

    /// Sets the number of magazines in the depot.
    ///
    /// It should hold the objects in transit from a freeing CPU to an allocating one.
    #[inline]
    pub const fn depot(mut self, magazines: usize) -> Self {
        self.depot = magazines;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> QMemPool<T> {
    /// Creates a pool in front of `cache`, and takes ownership of that.
    ///
    /// `name` is the name of the pool in debugfs.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the size of a magazine is out of range, in objects or in bytes, or if the
    /// objects of the cache are charged to memory cgroups; [`ENOMEM`] if there is no memory.
    pub fn new(name: &CStr, cache: Cache<T>, options: Options) -> Result<Self> {
        let raw = NonNull::new(cache.as_raw()).ok_or(EINVAL)?;
        // SAFETY: The cache is dropped after the pool.
        let pool = unsafe {
            let slab = slab::Slab::new(raw)?;
            Pool::new(name, slab, options.magazine, options.depot)
        }?;
        // INVARIANT: The pool was created with this cache.
        Ok(Self { pool, cache })
    }

    /// Returns this CPU's part of the pool.
    #[inline(always)]
    pub fn local<'p, 'cx>(&'p self, cx: Softirq<'cx>) -> Local<'p, 'cx, T>
    where
        'p: 'cx,
    {
        // INVARIANT: The token proves that we stay on this CPU.
        Local {
            pool: self,
            store: self.pool.store(cx),
            cx,
        }
    }

    /// Allocates an object in process context.
    ///
    /// This disables bottom halves for a moment, or bypasses the pool in contexts in which that is
    /// impossible. The context must be one that `flags` allow.
    pub fn alloc(&self, value: T, flags: Flags) -> Result<Object<'_, T>, AllocError> {
        let memory = BhGuard::new().and_then(|guard| self.local(guard.softirq()).alloc_raw(flags));
        // With bottom halves enabled again, the slab may wait for memory.
        let memory = memory
            .or_else(|| {
                let flags = Flags::from_raw(slab::for_anyone(flags.as_raw()));
                self.cache.alloc_raw(flags)
            })
            .ok_or(AllocError)?;
        // SAFETY: This is unused memory for a `T`.
        unsafe { memory.write(value) };
        // SAFETY: It comes from this cache, holds a value, and is given up.
        Ok(unsafe { Object::from_raw(&self.cache, memory) })
    }

    /// Puts an object into the pool in process context.
    ///
    /// This disables bottom halves for a moment, or bypasses the pool in contexts in which that is
    /// impossible.
    pub fn free(&self, object: Object<'_, T>) {
        match BhGuard::new() {
            Some(guard) => self.local(guard.softirq()).free(object),
            None => drop(object),
        }
    }

    /// Returns the cache behind the pool.
    pub fn cache(&self) -> &Cache<T> {
        &self.cache
    }
}

/// This CPU's part of a pool, for the lifetime of a token.
///
/// # Invariants
///
/// `store` is that of the current CPU, as `cx` proves.
pub struct Local<'p, 'cx, T> {
    pool: &'p QMemPool<T>,
    store: &'cx Store,
    cx: Softirq<'cx>,
}

impl<'p, T> Local<'p, '_, T> {
    /// Allocates an object and moves `value` into it.
    ///
    /// This never waits for memory, whatever `flags` say.
    #[inline(always)]
    pub fn alloc(&self, value: T, flags: Flags) -> Result<Object<'p, T>, AllocError> {
        let memory = self.alloc_raw(flags).ok_or(AllocError)?;
        // SAFETY: This is unused memory for a `T`.
        unsafe { memory.write(value) };
        // SAFETY: It comes from this cache, holds a value, and is given up.
        Ok(unsafe { Object::from_raw(&self.pool.cache, memory) })
    }

    /// Drops the value of an object, and keeps its memory in the pool.
    ///
    /// An object of another cache is freed to that cache.
    #[inline(always)]
    pub fn free(&self, object: Object<'_, T>) {
        if !core::ptr::eq(object.cache, &self.pool.cache) {
            return drop(object);
        }
        let memory = Object::into_raw(object);
        // Drop the value first: its destructor may use this pool.
        // SAFETY: The object held a value, which was ours and is not used again.
        unsafe { memory.drop_in_place() };
        // SAFETY: The memory comes from the slab of this pool, and was given up by its owner.
        unsafe { self.pool.pool.free(self.store, self.cx, memory.cast()) };
    }

    /// Adds up to `count` objects to a batch, limited by memory and by the room in the batch.
    /// Returns their number.
    ///
    /// Their values come from `init`, which is called with numbers from 0 on. This never waits for
    /// memory, whatever `flags` say.
    ///
    /// # Examples
    ///
    /// ```
    /// # use kernel::mm::qmempool::{Options, QMemPool};
    /// # use kernel::slab::{Batch, Cache};
    /// # use kernel::softirq::BhGuard;
    /// # let cache = Cache::new(c"rust_doc_qmempool_bulk", 16)?;
    /// let pool = QMemPool::<usize>::new(c"rust_doc_bulk", cache, Options::new())?;
    /// let mut batch = Batch::<_, 16>::new(pool.cache());
    ///
    /// let guard = BhGuard::new().ok_or(EINVAL)?;
    /// let local = pool.local(guard.softirq());
    /// assert_eq!(local.alloc_bulk(&mut batch, 10, GFP_ATOMIC, |i| i), 10);
    /// assert!(batch.iter().copied().eq(0..10));
    /// assert_eq!(local.free_bulk(&mut batch, 100), 10);
    /// # Ok::<(), Error>(())
    /// ```
    #[inline]
    pub fn alloc_bulk<const N: usize>(
        &self,
        batch: &mut Batch<'p, T, N>,
        count: usize,
        flags: Flags,
        mut init: impl FnMut(usize) -> T,
    ) -> usize {
        // SAFETY: The changes below preserve the invariants.
        let (cache, len, places) = unsafe { batch.parts() };
        if !core::ptr::eq(cache, &self.pool.cache) {
            return 0;
        }
        // SAFETY: By the invariants of batches, there are at least `len` places.
        let places = unsafe { places.get_unchecked_mut(*len..) };
        let count = count.min(places.len());
        // SAFETY: There are `count` places. `NonNull` has the same layout for any type.
        let count = unsafe {
            self.pool
                .pool
                .alloc_bulk(self.cx, flags.as_raw(), places.as_mut_ptr().cast(), count)
        };
        for i in 0..count {
            let value = init(i);
            // SAFETY: The first `count` places point to memory for a `T` that is ours.
            unsafe { places.get_unchecked(i).assume_init().write(value) };
        }
        // INVARIANT: `count` more elements point to objects of the cache with values.
        *len += count;
        count
    }

    /// Drops the last `count` values of a batch, or all if it has fewer, and keeps their memory in
    /// the pool. Returns their number.
    ///
    /// If the objects come from another cache, this does nothing.
    #[inline]
    pub fn free_bulk<const N: usize>(&self, batch: &mut Batch<'_, T, N>, count: usize) -> usize {
        // SAFETY: The changes below preserve the invariants.
        let (cache, len, places) = unsafe { batch.parts() };
        if !core::ptr::eq(cache, &self.pool.cache) {
            return 0;
        }
        let count = count.min(*len);
        // INVARIANT: The batch gives up its last `count` objects.
        *len -= count;
        // SAFETY: By the invariants of batches, there were `len + count` places with objects.
        let places = unsafe { places.get_unchecked_mut(*len..).get_unchecked_mut(..count) };
        if core::mem::needs_drop::<T>() {
            for place in places.iter() {
                // SAFETY: The places point to values, which are ours.
                unsafe { place.assume_init().drop_in_place() };
            }
        }
        // SAFETY: The memory comes from the slab of this pool, and is ours.
        unsafe {
            self.pool
                .pool
                .free_bulk(self.cx, places.as_ptr().cast(), count)
        };
        count
    }

    #[inline(always)]
    fn alloc_raw(&self, flags: Flags) -> Option<NonNull<T>> {
        let memory = self.pool.pool.alloc(self.store, self.cx, flags.as_raw())?;
        Some(memory.cast())
    }
}
