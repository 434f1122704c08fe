//@ error: E0382 use of moved value: `object`
// SPDX-License-Identifier: GPL-2.0

//! The batch frees an object that is in it.

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
