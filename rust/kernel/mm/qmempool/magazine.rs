// SPDX-License-Identifier: GPL-2.0

//! Magazines: small arrays of unused objects.

use super::slab::Slab;
use crate::{
    alloc::Flags,
    bindings,
    prelude::*, //
};
use core::{
    mem::MaybeUninit,
    ptr::NonNull, //
};

/// An object of a pool that is not in use.
pub(super) type Unused = NonNull<c_void>;

/// Maximum number of objects in a magazine.
pub(super) const MAX: usize = bindings::QMEMPOOL_MAGAZINE_MAX as usize;

/// An array of unused objects, which it owns.
///
/// Dropping it frees them to the slab.
///
/// # Invariants
///
/// - The first `len` slots hold objects that were allocated from `slab`, are poisoned for KASAN,
///   and belong to the magazine; `len <= MAX`.
/// - `slab` is valid.
#[repr(C)]
pub(super) struct Magazine {
    /// The first member: C code identifies a magazine by the address of its slots.
    slots: [MaybeUninit<Unused>; MAX],
    slab: Slab,
    len: u32,
}

// It should fill a kmalloc() size class.
const _: () = assert!(cfg!(not(CONFIG_64BIT)) || size_of::<Magazine>() == 512);

// SAFETY: A magazine owns its objects, which are memory without values.
unsafe impl Send for Magazine {}

impl Magazine {
    /// Allocates an empty magazine.
    ///
    /// # Safety
    ///
    /// `slab` is valid as long as the magazine lives.
    pub(super) unsafe fn new(slab: Slab, flags: Flags) -> Result<KBox<Self>> {
        // INVARIANT: There are no objects.
        Ok(KBox::new(
            Self {
                slots: [const { MaybeUninit::uninit() }; MAX],
                slab,
                len: 0,
            },
            flags,
        )?)
    }

    /// Returns the number of objects.
    #[inline(always)]
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Changes the number of objects.
    ///
    /// # Safety
    ///
    /// The first `len` slots hold objects of the magazine, as the type invariants require.
    #[inline(always)]
    pub(super) unsafe fn set_len(&mut self, len: u32) {
        // INVARIANT: By the safety requirements.
        self.len = len;
    }

    /// Fills an empty magazine with up to `count` objects from the slab.
    pub(super) fn fill(&mut self, count: u32, gfp: bindings::gfp_t) {
        if self.len != 0 {
            return;
        }
        if let Some(slots) = self.slots.get_mut(..count as usize) {
            // SAFETY: By the type invariants, the slab is valid.
            let len = unsafe { self.slab.alloc(slots, gfp) };
            // INVARIANT: The first `len` slots were filled by the slab, `len <= count <= MAX`.
            // CAST: It is at most `MAX`.
            self.len = len as u32;
        }
    }

    /// Frees all objects to the slab.
    pub(super) fn empty(&mut self) {
        // INVARIANT: The objects are given up.
        let len = core::mem::take(&mut self.len);
        if let Some(slots) = self.slots.get_mut(..len as usize) {
            // SAFETY: By the type invariants, these are objects of the slab, which is valid, that
            // belonged to us.
            unsafe { self.slab.free(slots) };
        }
    }
}

impl Drop for Magazine {
    fn drop(&mut self) {
        self.empty();
    }
}
