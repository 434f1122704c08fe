//@ error: E0451 of struct `OpsLocked` are private
// SPDX-License-Identifier: GPL-2.0

//! Only the core says that the lock of a device's operations is held.

#![forbid(unsafe_code)]

use core::marker::PhantomData;
use kernel::net::device::{
    OpsCell,
    OpsLocked, //
};

pub fn read<'bound>(cell: &OpsCell<'bound, u32>, held: &OpsLocked<'bound>) -> u32 {
    //~ let (made_up, _) = (held, PhantomData::<*mut ()>);
    let made_up = &OpsLocked { _bound: PhantomData, _not_send: PhantomData };
    let _ = held;
    *cell.get(made_up)
}
