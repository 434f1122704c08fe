//@ error: E0277 cannot be sent between threads safely
// SPDX-License-Identifier: GPL-2.0

//! A batch is `Send` only if its values are.

#![forbid(unsafe_code)]

use kernel::{
    slab::Batch,
    types::NotThreadSafe, //
};

fn send<T: Send>(_: T) {}

pub fn elsewhere(batch: Batch<'_, NotThreadSafe, 8>) {
    //~ send(batch.len());
    send(batch);
}
