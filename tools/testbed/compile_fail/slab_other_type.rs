//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! The objects of a batch are of the cache's type.

#![forbid(unsafe_code)]

use kernel::slab::{
    Batch,
    Object, //
};

//~ pub fn mixed<'c>(batch: &mut Batch<'c, u64, 8>, object: Object<'c, u64>) {
pub fn mixed<'c>(batch: &mut Batch<'c, u64, 8>, object: Object<'c, u32>) {
    batch.gather(object);
}
