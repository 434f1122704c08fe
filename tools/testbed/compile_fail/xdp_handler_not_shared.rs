//@ error: E0277 cannot be shared between threads safely
// SPDX-License-Identifier: GPL-2.0

//! The poll functions of several queues run a handler at the same time.

#![forbid(unsafe_code)]

use core::cell::Cell;
use kernel::net::xdp::{
    Action,
    Handler, //
};

pub struct Counter {
    //~ frames: kernel::sync::atomic::Atomic<u64>,
    frames: Cell<u64>,
}

impl Handler for Counter {
    fn handle<'a>(&'a self, _frame: &mut [u8]) -> Action<'a> {
        let _ = &self.frames;
        Action::Drop
    }
}
