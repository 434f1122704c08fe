// SPDX-License-Identifier: GPL-2.0

//! Lets tests see what happens when there is no memory.
//!
//! Everything here is off the fast paths, and gone without `CONFIG_KUNIT`. Tests run one after the
//! other, so there is one shortage at a time.

use crate::{
    bindings,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

/// The allocation of a pool that fails, counted from 1 on; 0 for none.
static STEP: Atomic<usize> = Atomic::new(0);
/// The address of a slab cache that is short of objects; 0 for none.
static CACHE: Atomic<usize> = Atomic::new(0);
/// How many objects this has yet.
static LEFT: Atomic<usize> = Atomic::new(0);

/// Comes before each allocation that the creation of a pool makes, and may fail in its place.
pub(super) fn step() -> Result {
    if cfg!(CONFIG_KUNIT) {
        let step = STEP.load(Relaxed);
        STEP.store(step.saturating_sub(1), Relaxed);
        if step == 1 {
            return Err(ENOMEM);
        }
    }
    Ok(())
}

/// Whether a slab cache cannot give many objects at once.
pub(super) fn of_many(cache: *mut bindings::kmem_cache) -> bool {
    cfg!(CONFIG_KUNIT) && CACHE.load(Relaxed) == cache.addr()
}

/// Whether a slab cache cannot give one object.
pub(super) fn of_one(cache: *mut bindings::kmem_cache) -> bool {
    if !of_many(cache) {
        return false;
    }
    let left = LEFT.load(Relaxed);
    LEFT.store(left.saturating_sub(1), Relaxed);
    left == 0
}

/// Calls `body`, in which the allocation `step` of the creation of a pool fails.
#[cfg(CONFIG_KUNIT)]
pub(super) fn at_step<R>(step: usize, body: impl FnOnce() -> R) -> R {
    STEP.store(step, Relaxed);
    let result = body();
    STEP.store(0, Relaxed);
    result
}

/// Calls `body` while `cache` gives only `left` more objects to pools, and these one by one.
#[cfg(CONFIG_KUNIT)]
pub(super) fn of<R>(cache: *mut bindings::kmem_cache, left: usize, body: impl FnOnce() -> R) -> R {
    begin(cache, left);
    let result = body();
    begin(core::ptr::null_mut(), 0);
    result
}

/// Makes `cache` short of objects, or none if it is null. For tests in C.
#[cfg(CONFIG_KUNIT)]
pub(super) fn begin(cache: *mut bindings::kmem_cache, left: usize) {
    LEFT.store(left, Relaxed);
    CACHE.store(cache.addr(), Relaxed);
}
