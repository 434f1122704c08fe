//@ error: E0382 borrow of moved value: `tx`
// SPDX-License-Identifier: GPL-2.0

//! An end that has been moved to another context cannot be used in this one.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::alf_queue,
    workqueue, //
};

pub fn two() -> Result {
    let (mut tx, _rx) = alf_queue::spsc::<u32>(8, GFP_KERNEL)?;

    workqueue::system().try_spawn(GFP_KERNEL, move || {
        let _ = tx.push(1);
    })?;
    //~
    let _ = tx.push(2);
    Ok(())
}
