//@ error: E0515 cannot return value referencing local variable `cache`
// SPDX-License-Identifier: GPL-2.0

//! The memory of a batch's objects belongs to the cache.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    slab::{
        Batch,
        Cache, //
    }, //
};

//~ pub fn outlive<'c>(cache: &'c Cache<u64>) -> Result<Batch<'c, u64, 8>> {
pub fn outlive<'c>() -> Result<Batch<'c, u64, 8>> {
    //~
    let cache = Cache::<u64>::new(c"outlive", 8)?;
    //~ Ok(Batch::new(cache))
    Ok(Batch::new(&cache))
}
