//@ error: E0521 borrowed data escapes outside of method
// SPDX-License-Identifier: GPL-2.0

//! The bytes of a frame are the ring's again, or another device's, when the handler returns.

#![forbid(unsafe_code)]

use kernel::{
    net::xdp::{
        Action,
        Handler, //
    },
    new_spinlock,
    prelude::*,
    sync::SpinLock, //
};

#[pin_data]
pub struct Keeper {
    #[pin]
    last: SpinLock<&'static [u8]>,
}

impl Keeper {
    pub fn new(last: &'static [u8]) -> impl PinInit<Self> {
        pin_init!(Self { last <- new_spinlock!(last) })
    }
}

impl Handler for Keeper {
    fn handle<'a>(&'a self, frame: &mut [u8]) -> Action<'a> {
        //~ let _ = (&self.last, frame);
        *self.last.lock() = frame;
        Action::Pass
    }
}
