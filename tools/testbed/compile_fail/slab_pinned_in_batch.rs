//@ error: E0277 the trait bound `impl PinInit<
// SPDX-License-Identifier: GPL-2.0

//! A pinned value cannot be added to a batch whose values may move.

#![forbid(unsafe_code)]

use kernel::{
    new_spinlock,
    prelude::*,
    slab::Batch,
    sync::SpinLock, //
};

//~ pub fn fill(batch: &mut kernel::slab::PinnedBatch<'_, SpinLock<u32>, 8>) -> Result {
pub fn fill(batch: &mut Batch<'_, SpinLock<u32>, 8>) -> Result {
    //~ batch.alloc(8, GFP_KERNEL, |_| new_spinlock!(1))
    batch.alloc_init(8, GFP_KERNEL, |_| new_spinlock!(1))
}
