//@ error: E0599 no method named `clone`
// SPDX-License-Identifier: GPL-2.0

//! Many producers, but a single consumer.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::alf_queue, //
};

pub fn two() -> Result {
    let (tx, rx) = alf_queue::mpsc::<u32>(8, GFP_KERNEL)?;
    let _also = tx.clone();
    //~ let _same = rx;
    let _second = rx.clone();
    Ok(())
}
