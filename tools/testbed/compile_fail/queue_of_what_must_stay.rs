//@ error: E0277 cannot be sent between threads safely
// SPDX-License-Identifier: GPL-2.0

//! An element that is not `Send` cannot go through a queue.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::alf_queue, //
};

pub fn queue() -> Result {
    //~ let _ends = alf_queue::spsc::<usize>(8, GFP_KERNEL)?;
    let _ends = alf_queue::spsc::<*mut u8>(8, GFP_KERNEL)?;
    Ok(())
}
