// SPDX-License-Identifier: GPL-2.0

//! The memory that a cache takes.

use crate::bindings;
use core::ptr::NonNull;

/// The memory that a cache takes, see [`super::Cache::footprint`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Number of slabs: the units in which a cache gets memory from the page allocator.
    pub slabs: usize,
    /// Size of all slabs in bytes, including unused space at their ends.
    pub bytes: usize,
    /// Number of objects that are in use or in a sheaf of a CPU or of a node.
    ///
    /// All others are free in their slabs.
    pub objects: usize,
}

/// Counts slabs and objects of a cache.
///
/// Not inlined into other crates: it calls a function that is not exported to modules.
///
/// # Safety
///
/// `raw` is a valid cache.
#[inline(never)]
pub(super) unsafe fn of(raw: NonNull<bindings::kmem_cache>) -> Option<Footprint> {
    let (mut slabs, mut bytes, mut objects) = (0, 0, 0);
    // SAFETY: By the safety requirements. The other pointers are valid for writes.
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
