//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! A handler says what becomes of each frame.

#![forbid(unsafe_code)]

use kernel::net::xdp::{
    Action,
    Handler, //
};

pub struct Counter(pub kernel::sync::atomic::Atomic<u64>);

impl Handler for Counter {
    fn handle<'a>(&'a self, frame: &mut [u8]) -> Action<'a> {
        //~ let action = Action::Drop;
        let action = ();

        frame.fill(0);
        action
    }
}
