//@ error: E0382 use of moved value: `object`
// SPDX-License-Identifier: GPL-2.0

//! An object that is in a batch is the batch's to free.

#![forbid(unsafe_code)]

use kernel::slab::{
    Batch,
    Object, //
};

pub fn free<'c>(batch: &mut Batch<'c, u64, 8>, object: Object<'c, u64>) {
    //~ let _ = batch;
    let _ = batch.push(object);
    drop(object);
}
