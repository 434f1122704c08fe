// SPDX-License-Identifier: GPL-2.0

//! How much memory a cache takes.

use crate::bindings;
use core::ptr::NonNull;

/// The memory that a cache takes, see [`super::Cache::footprint`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Slabs, which are what a cache gets from the page allocator and gives back to it.
    pub slabs: usize,
    /// The bytes of all slabs, with what is lost at their ends.
    pub bytes: usize,
    /// Objects that are in use or kept in the store of a CPU or of a node.
    ///
    /// The others are free in their slabs.
    pub objects: usize,
}

/// Counts.
///
/// Not inlined into other crates: what it calls is not for modules.
///
/// # Safety
///
/// `raw` is a valid cache.
#[inline(never)]
pub(super) unsafe fn of(raw: NonNull<bindings::kmem_cache>) -> Option<Footprint> {
    let (mut slabs, mut bytes, mut objects) = (0, 0, 0);
    // SAFETY: By the safety requirements. The others are valid places for numbers.
    let known = unsafe {
        bindings::kmem_cache_footprint(
            raw.as_ptr(),
            &raw mut slabs,
            &raw mut bytes,
            &raw mut objects,
        )
    };
    known.then_some(Footprint {
        slabs,
        bytes,
        objects,
    })
}
