// SPDX-License-Identifier: GPL-2.0

//! The slab behind a pool.

use super::{
    magazine::Unused,
    shortage, //
};
use crate::{
    bindings,
    prelude::*, //
};
use core::{
    mem::MaybeUninit,
    ptr::NonNull, //
};

/// A slab cache of untyped objects.
///
/// It has no constructor, its objects are not charged to memory cgroups, and have no readers after
/// they were freed. Objects in a pool are poisoned: KASAN reports accesses to them and double
/// frees.
#[derive(Clone, Copy)]
pub(super) struct Slab {
    raw: NonNull<bindings::kmem_cache>,
}

impl Slab {
    /// Returns [`EINVAL`] if objects of the cache cannot be given to anyone without asking the slab
    /// allocator.
    ///
    /// # Safety
    ///
    /// The slab cache is valid.
    pub(super) unsafe fn new(raw: NonNull<bindings::kmem_cache>) -> Result<Self> {
        // SAFETY: By the safety requirements.
        if !unsafe { bindings::__qmempool_accepts(raw.as_ptr()) } {
            return Err(EINVAL);
        }
        Ok(Self { raw })
    }

    pub(super) fn as_raw(self) -> *mut bindings::kmem_cache {
        self.raw.as_ptr()
    }

    /// Returns the size of an object.
    ///
    /// # Safety
    ///
    /// The slab cache is valid.
    pub(super) unsafe fn object_size(self) -> u32 {
        // SAFETY: By the safety requirements.
        unsafe { bindings::kmem_cache_size(self.as_raw()) }
    }

    /// Fills slots with new objects, from the first slot on. Returns their number.
    ///
    /// This never waits for memory, whatever the flags say.
    ///
    /// # Safety
    ///
    /// The slab cache is valid.
    pub(super) unsafe fn alloc(
        self,
        slots: &mut [MaybeUninit<Unused>],
        gfp: bindings::gfp_t,
    ) -> usize {
        let gfp = without_waiting(gfp);
        if slots.is_empty() {
            return 0;
        }
        // SAFETY: The cache is valid, and `slots` has this length. `NonNull` has the layout of a
        // pointer, and on success the allocator writes no null pointers.
        let done = !shortage::of_many(self.as_raw())
            && unsafe {
                bindings::kmem_cache_alloc_bulk(
                    self.as_raw(),
                    gfp,
                    slots.len(),
                    slots.as_mut_ptr().cast(),
                )
            };

        let mut count = 0;
        if done {
            for slot in slots {
                // SAFETY: The allocator has filled it.
                poison(unsafe { slot.assume_init() });
                count += 1;
            }
        } else if let Some(slot) = slots.first_mut() {
            // Memory is short: the caller needs only one object.
            if shortage::of_one(self.as_raw()) {
                return 0;
            }
            // SAFETY: The cache is valid.
            let object = unsafe { bindings::kmem_cache_alloc(self.as_raw(), gfp) };
            if let Some(object) = NonNull::new(object) {
                slot.write(object);
                poison(object);
                count = 1;
            }
        }
        count
    }

    /// Frees objects. The slots are undefined afterwards.
    ///
    /// # Safety
    ///
    /// The slab cache is valid, and all slots hold unused objects of it that belong to the caller.
    pub(super) unsafe fn free(self, slots: &mut [MaybeUninit<Unused>]) {
        if slots.is_empty() {
            return;
        }
        // SAFETY: By the safety requirements, the slab cache is valid.
        let size = unsafe { self.object_size() };
        for slot in slots.iter() {
            // SAFETY: By the safety requirements, the slots hold objects of this size.
            unsafe { unpoison(slot.assume_init(), size) };
        }

        // SAFETY: By the safety requirements. `NonNull` has the layout of a pointer.
        unsafe {
            bindings::kmem_cache_free_bulk(
                self.as_raw(),
                slots.len(),
                slots.as_mut_ptr().cast::<*mut c_void>(),
            )
        };
    }
}

/// Tells KASAN that an object is unused. Returns false if the object must not be reused, since it
/// was unused already (a double free).
#[inline(always)]
pub(super) fn poison(object: Unused) -> bool {
    // SAFETY: KASAN checks the pointer itself.
    unsafe { bindings::kasan_mempool_poison_object(object.as_ptr()) }
}

/// Tells KASAN that an object is in use.
///
/// # Safety
///
/// `object` is an object of this size that belongs to the caller.
#[inline(always)]
pub(super) unsafe fn unpoison(object: Unused, size: u32) {
    // SAFETY: By the safety requirements.
    unsafe { bindings::kasan_mempool_unpoison_object(object.as_ptr(), size as usize) };
}

/// Returns the flags for an allocation with bottom halves disabled, which cannot sleep and may
/// fail.
pub(super) fn without_waiting(gfp: bindings::gfp_t) -> bindings::gfp_t {
    let wait = 1 << bindings::___GFP_DIRECT_RECLAIM_BIT | 1 << bindings::___GFP_NOFAIL_BIT;
    let quiet = crate::alloc::flags::__GFP_NOWARN;
    // Objects are zeroed when they leave the pool, since those in the pool are not zero.
    let zero = crate::alloc::flags::__GFP_ZERO;
    for_anyone(gfp | quiet.as_raw()) & !(wait | zero.as_raw())
}

/// Returns the flags for an allocation that may end up in a pool, which gives it to anyone.
///
/// So it is not charged to a memory cgroup, and does not use the reserves for freeing memory.
pub(super) fn for_anyone(gfp: bindings::gfp_t) -> bindings::gfp_t {
    // SAFETY: This has no requirements.
    unsafe { bindings::qmempool_gfp(gfp) }
}
