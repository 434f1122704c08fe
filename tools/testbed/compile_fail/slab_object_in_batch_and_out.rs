//@ error: E0382 borrow of moved value: `object`
// SPDX-License-Identifier: GPL-2.0

//! The batch owns an object that was added to it.

#![forbid(unsafe_code)]

use kernel::slab::{
    Batch,
    Object, //
};

pub fn put<'c>(batch: &mut Batch<'c, u64, 8>, object: Object<'c, u64>) -> u64 {
    //~ let _ = batch;
    batch.gather(object);
    *object
}
