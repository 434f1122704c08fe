// SPDX-License-Identifier: GPL-2.0

//! Injects allocation failures for tests.
//!
//! All calls are off the fast paths, and compile to nothing without `CONFIG_QMEMPOOL_KUNIT_TEST`.
//! Tests run one at a time, so there is one shortage at a time.

use crate::{
    bindings,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

/// The number of the allocation in the creation of a pool that fails, from 1 on; 0 for none.
pub(super) static STEP: Atomic<usize> = Atomic::new(0);
/// The address of a slab cache that is short of objects; 0 for none.
static CACHE: Atomic<usize> = Atomic::new(0);
/// Number of objects that this cache can still provide.
static LEFT: Atomic<usize> = Atomic::new(0);

/// Called before each allocation in the creation of a pool; fails in its place.
pub(super) fn step() -> Result {
    if cfg!(CONFIG_QMEMPOOL_KUNIT_TEST) {
        let step = STEP.load(Relaxed);
        STEP.store(step.saturating_sub(1), Relaxed);
        if step == 1 {
            return Err(ENOMEM);
        }
    }
    Ok(())
}

/// Returns whether bulk allocations from a slab cache fail.
pub(super) fn of_many(cache: *mut bindings::kmem_cache) -> bool {
    cfg!(CONFIG_QMEMPOOL_KUNIT_TEST) && CACHE.load(Relaxed) == cache.addr()
}

/// Returns whether the next single allocation from a slab cache fails.
pub(super) fn of_one(cache: *mut bindings::kmem_cache) -> bool {
    if !of_many(cache) {
        return false;
    }
    let left = LEFT.load(Relaxed);
    LEFT.store(left.saturating_sub(1), Relaxed);
    left == 0
}

/// Starts a shortage of `cache`, which provides only `left` more objects to pools, one per
/// allocation, or ends it if that is null.
#[cfg(CONFIG_QMEMPOOL_KUNIT_TEST)]
pub(super) fn begin(cache: *mut bindings::kmem_cache, left: usize) {
    LEFT.store(left, Relaxed);
    CACHE.store(cache.addr(), Relaxed);
}
