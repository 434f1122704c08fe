//@ error: E0599 no method named `clone`
// SPDX-License-Identifier: GPL-2.0

//! Single producer: the end cannot be cloned.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::alf_queue, //
};

pub fn two() -> Result {
    let (tx, _rx) = alf_queue::spsc::<u32>(8, GFP_KERNEL)?;
    //~ let _same = tx;
    let _second = tx.clone();
    Ok(())
}
