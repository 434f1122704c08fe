//@ error: E0382 use of moved value: `object`
// SPDX-License-Identifier: GPL-2.0

//! An object is freed once.

#![forbid(unsafe_code)]

use kernel::{
    mm::qmempool::QMemPool,
    prelude::*, //
};

pub fn twice(pool: &QMemPool<u64>) -> Result {
    let object = pool.alloc(1, GFP_KERNEL)?;
    //~
    pool.free(object);
    pool.free(object);
    Ok(())
}
