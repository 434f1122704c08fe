//@ error: E0505 cannot move out of `cache` because it is borrowed
// SPDX-License-Identifier: GPL-2.0

//! A cache is destroyed after its objects.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    slab::Cache, //
};

pub fn outlive() -> Result<u64> {
    let cache = Cache::<u64>::new(c"outlive", 8)?;
    let object = cache.alloc(1, GFP_KERNEL)?;
    //~
    drop(cache);
    Ok(*object)
}
