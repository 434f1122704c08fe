//@ error: E0499 cannot borrow `*chunk` as mutable more than once
// SPDX-License-Identifier: GPL-2.0

//! Elements that are being moved into a queue are inaccessible.

#![forbid(unsafe_code)]

use kernel::sync::alf_queue::{
    Chunk,
    Producer, //
};

pub fn push(tx: &mut Producer<u32>, chunk: &mut Chunk<u32, 4>) -> Option<u32> {
    let values = chunk.as_mut_slice();
    //~ let _ = tx;
    let _ = tx.push_bulk(chunk);
    values.first().copied()
}
