//@ error: E0277 cannot be sent between threads safely
// SPDX-License-Identifier: GPL-2.0

//! The token is valid on the CPU of the poll function only.

#![forbid(unsafe_code)]

use kernel::{
    net::napi::Poll,
    prelude::*,
    workqueue, //
};

pub fn poll(cx: Poll<'static>) -> Result {
    workqueue::system().try_spawn(GFP_KERNEL, move || {
        //~
        let _ = cx.budget();
    })?;
    Ok(())
}
