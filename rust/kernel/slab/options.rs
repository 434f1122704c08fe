// SPDX-License-Identifier: GPL-2.0

//! Options of a cache.

use crate::{
    bindings,
    prelude::*, //
};

// Bindgen cannot evaluate the macros of the header.
const SLAB_HWCACHE_ALIGN: bindings::slab_flags_t =
    1 << bindings::_slab_flag_bits__SLAB_HWCACHE_ALIGN;
const SLAB_NO_MERGE: bindings::slab_flags_t = 1 << bindings::_slab_flag_bits__SLAB_NO_MERGE;
/// Maximum size of an object: the largest contiguous allocation.
const MAX_SIZE: usize = bindings::KMALLOC_MAX_SIZE as usize;
/// Maximum capacity of a sheaf: its header of a few words and its pointers are one allocation.
const MAX_CAPACITY: usize = MAX_SIZE / size_of::<*mut c_void>() - 8;

/// Size of the header of a sheaf, in words: a number of 32 bits each are its size and its node.
const SHEAF_HEADER: usize = if cfg!(CONFIG_64BIT) { 4 } else { 5 };

/// Options for creating a cache.
///
/// # Examples
///
/// ```
/// use kernel::slab::{
///     Cache,
///     Options, //
/// };
///
/// // Bulk calls of up to 64 objects that share no cache line with others.
/// let options = Options::new().bulk(64).hwcache_align();
/// let cache = Cache::<[u8; 40]>::with_options(c"rust_doc_record", options)?;
/// # drop(cache);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    bulk: usize,
    flags: bindings::slab_flags_t,
}

impl Options {
    /// The defaults of `kmem_cache_create()`.
    #[inline]
    pub const fn new() -> Self {
        Self { bulk: 0, flags: 0 }
    }

    /// Sets the maximum number of objects per bulk call.
    ///
    /// Larger calls are allowed, and take several sheaves. The capacity of one is about twice this
    /// number; at least what the allocator chooses for objects of this size (28 for 256 bytes, for
    /// example). A CPU has up to two sheaves, and a NUMA node [further ones](super#sheaves).
    #[inline]
    pub const fn bulk(mut self, objects: usize) -> Self {
        self.bulk = objects;
        self
    }

    /// Aligns objects to cache lines, unless they are so small that several fit into one.
    #[inline]
    pub const fn hwcache_align(mut self) -> Self {
        self.flags |= SLAB_HWCACHE_ALIGN;
        self
    }

    /// Returns the capacity of a sheaf; zero leaves it to the allocator.
    pub(super) fn capacity(&self) -> Result<u32> {
        // Room for two batches, so that one batch in use does not empty the sheaf. Without
        // subtracting the header of a sheaf, twice a power of two pointers would not fit into a
        // power of two bytes, and half of the allocation would be wasted.
        let two_batches = self.bulk.checked_mul(2).ok_or(EINVAL)?;
        let objects = two_batches.saturating_sub(SHEAF_HEADER).max(self.bulk);
        if objects > MAX_CAPACITY {
            return Err(EINVAL);
        }
        Ok(objects.try_into()?)
    }

    /// Creates a cache of objects of this size and alignment. Returns null if there is no memory.
    pub(super) fn create(
        &self,
        name: &CStr,
        size: usize,
        align: usize,
    ) -> Result<*mut bindings::kmem_cache> {
        // The allocator rounds sizes up in 32 bits, where one close to 2^32 wraps to a small one,
        // and checks the size in debug builds only. It warns of a file in sysfs without a name.
        if name.is_empty() || size.max(align) > MAX_SIZE {
            return Err(EINVAL);
        }
        let mut args = bindings::kmem_cache_args {
            align: align.try_into()?,
            sheaf_capacity: self.capacity()?,
            ..pin_init::zeroed()
        };
        // The allocator requires a size other than zero.
        let size = size.max(1).try_into()?;
        // A merged cache would have the sheaves of the cache that it was merged into.
        let flags = self.flags | SLAB_NO_MERGE;

        // SAFETY: `name` is a valid string, which is copied. `args` is valid. There is no
        // constructor.
        Ok(unsafe {
            bindings::__kmem_cache_create_args(name.as_char_ptr(), size, &raw mut args, flags)
        })
    }
}
