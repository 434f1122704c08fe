//@ error: E0515 cannot return value referencing local variable `pool`
// SPDX-License-Identifier: GPL-2.0

//! The memory of objects belongs to the pool's cache.

#![forbid(unsafe_code)]

use kernel::{
    mm::qmempool::{
        Options,
        QMemPool, //
    },
    prelude::*,
    slab::{
        Cache,
        Object, //
    }, //
};

//~ pub fn outlive<'p>(pool: &'p QMemPool<u64>) -> Result<Object<'p, u64>> {
pub fn outlive<'p>() -> Result<Object<'p, u64>> {
    //~
    let pool = QMemPool::new(c"outlive", Cache::new(c"outlive", 8)?, Options::new())?;
    Ok(pool.alloc(1, GFP_KERNEL)?)
}
