//@ error: E0502 cannot borrow `*batch` as mutable
// SPDX-License-Identifier: GPL-2.0

//! Objects that were freed with the batch are inaccessible.

#![forbid(unsafe_code)]

use kernel::slab::Batch;

pub fn after_clear(batch: &mut Batch<'_, u64, 8>) -> u64 {
    let first = batch.iter().next();
    //~
    batch.clear();
    first.copied().unwrap_or(0)
}
