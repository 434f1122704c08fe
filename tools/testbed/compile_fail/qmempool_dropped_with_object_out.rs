//@ error: E0505 cannot move out of `pool` because it is borrowed
// SPDX-License-Identifier: GPL-2.0

//! A pool outlives its objects.

#![forbid(unsafe_code)]

use kernel::{
    mm::qmempool::QMemPool,
    prelude::*, //
};

pub fn end(pool: QMemPool<u64>) -> Result<u64> {
    let object = pool.alloc(1, GFP_KERNEL)?;
    //~
    drop(pool);
    Ok(*object)
}
