// SPDX-License-Identifier: GPL-2.0

//! What a cache is asked to be like when it is created.

use crate::{
    bindings,
    prelude::*, //
};
use core::ops::Range;

// The macros of the header are too much for bindgen. A flag that the kernel does not have is zero,
// there as here.
const SLAB_HWCACHE_ALIGN: bindings::slab_flags_t =
    1 << bindings::_slab_flag_bits__SLAB_HWCACHE_ALIGN;
const SLAB_NO_MERGE: bindings::slab_flags_t = 1 << bindings::_slab_flag_bits__SLAB_NO_MERGE;
#[cfg(CONFIG_MEMCG)]
const SLAB_ACCOUNT: bindings::slab_flags_t = 1 << bindings::_slab_flag_bits__SLAB_ACCOUNT;
#[cfg(not(CONFIG_MEMCG))]
const SLAB_ACCOUNT: bindings::slab_flags_t = 0;
#[cfg(not(CONFIG_SLUB_TINY))]
const SLAB_RECLAIM_ACCOUNT: bindings::slab_flags_t =
    1 << bindings::_slab_flag_bits__SLAB_RECLAIM_ACCOUNT;
#[cfg(CONFIG_SLUB_TINY)]
const SLAB_RECLAIM_ACCOUNT: bindings::slab_flags_t = 0;
/// The greatest object: what can be allocated in one piece.
const MAX_SIZE: usize = bindings::KMALLOC_MAX_SIZE as usize;
/// The greatest store: its pointers, and a few words before them, are one object.
const MAX_STORE: usize = MAX_SIZE / size_of::<*mut c_void>() - 8;

/// What is special about a cache.
///
/// # Examples
///
/// ```
/// use core::mem::offset_of;
/// use kernel::slab::{
///     Cache,
///     Options, //
/// };
///
/// struct Record {
///     secret: u64,
///     name: [u8; 32],
/// }
///
/// // Batches of 64, objects that share no cache line with others, and of which user space may be
/// // given the name, but not the secret.
/// let start = offset_of!(Record, name);
/// let options = Options::new()
///     .bulk(64)
///     .hwcache_align()
///     .usercopy(start..start + 32);
/// let cache = Cache::<Record>::with_options(c"rust_doc_record", options)?;
/// # drop(cache);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    bulk: usize,
    keep: Option<usize>,
    flags: bindings::slab_flags_t,
    usercopy: Range<usize>,
}

impl Options {
    /// Nothing special: what `kmem_cache_create()` does by default.
    #[inline]
    pub const fn new() -> Self {
        Self {
            bulk: 0,
            keep: None,
            flags: 0,
            usercopy: 0..0,
        }
    }

    /// The greatest number of objects that a bulk call is going to handle.
    ///
    /// More is allowed but slow. This makes the per-CPU store as large as [`Self::keep`] says.
    #[inline]
    pub const fn bulk(mut self, objects: usize) -> Self {
        self.bulk = objects;
        self
    }

    /// How many unused objects each CPU may keep in its store.
    ///
    /// About twice what a bulk call handles if this is not said; at least what a bulk call handles,
    /// and what the allocator finds right for objects of this size (28 of 256 bytes, for example).
    /// There may be more in reserve if objects are also freed one by one, see [`super`].
    #[inline]
    pub const fn keep(mut self, objects: usize) -> Self {
        self.keep = Some(objects);
        self
    }

    /// Objects begin at a cache line, unless they are so small that several fit into one.
    #[inline]
    pub const fn hwcache_align(mut self) -> Self {
        self.flags |= SLAB_HWCACHE_ALIGN;
        self
    }

    /// Objects are charged to the memory cgroup of who allocates them.
    #[inline]
    pub const fn account(mut self) -> Self {
        self.flags |= SLAB_ACCOUNT;
        self
    }

    /// Objects can be reclaimed: there is a shrinker that frees them.
    #[inline]
    pub const fn reclaimable(mut self) -> Self {
        self.flags |= SLAB_RECLAIM_ACCOUNT;
        self
    }

    /// The bytes of an object that may be copied to and from user space.
    ///
    /// With `CONFIG_HARDENED_USERCOPY`, copies that touch other bytes of an object are refused.
    /// There are no such bytes if this is not said.
    #[inline]
    pub const fn usercopy(mut self, bytes: Range<usize>) -> Self {
        self.usercopy = bytes;
        self
    }

    /// The number of objects for which the per-CPU store has room; zero leaves it to the allocator.
    fn capacity(&self) -> Result<u32> {
        let keep = match self.keep {
            Some(keep) => keep,
            // Room for two batches, so that one in use does not empty the store. The allocator puts
            // four words before the pointers: without these, twice a power of two would not fit
            // into a power of two, and the array would take the double of what it uses.
            None => self.bulk.checked_mul(2).ok_or(EINVAL)?.saturating_sub(4),
        };
        let objects = keep.max(self.bulk);
        if objects > MAX_STORE {
            return Err(EINVAL);
        }
        Ok(objects.try_into()?)
    }

    /// Creates a cache of objects of this size and alignment; null if there is no memory.
    pub(super) fn create(
        &self,
        name: &CStr,
        size: usize,
        align: usize,
    ) -> Result<*mut bindings::kmem_cache> {
        let Range { start, end } = self.usercopy;
        if start > end || end > size {
            return Err(EINVAL);
        }
        // The allocator rounds sizes up in 32 bits, and would take one close to 2^32 for a small
        // one: its check of the size is for debugging.
        if size.max(align) > MAX_SIZE {
            return Err(EINVAL);
        }
        // The allocator complains about a region that has a beginning but no size.
        let (useroffset, usersize) = match end - start {
            0 => (0, 0),
            usersize => (start, usersize),
        };
        let mut args = bindings::kmem_cache_args {
            align: align.try_into()?,
            useroffset: useroffset.try_into()?,
            usersize: usersize.try_into()?,
            sheaf_capacity: self.capacity()?,
            ..pin_init::zeroed()
        };
        // The allocator needs an object to have a size.
        let size = size.max(1).try_into()?;
        // A merged cache would keep the store and the usercopy region of the one that it was
        // merged into.
        let flags = self.flags | SLAB_NO_MERGE;

        // SAFETY: `name` is a valid string, which is copied. `args` is valid. There is no
        // constructor.
        Ok(unsafe {
            bindings::__kmem_cache_create_args(name.as_char_ptr(), size, &raw mut args, flags)
        })
    }
}
