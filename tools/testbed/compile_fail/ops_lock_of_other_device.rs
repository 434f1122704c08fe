//@ error: none lifetime may not live long enough
// SPDX-License-Identifier: GPL-2.0

//! The lock of one device does not protect the state of another.

#![forbid(unsafe_code)]

use kernel::net::device::{
    OpsCell,
    OpsLocked, //
};

//~ pub fn change<'a>(state: &OpsCell<'a, u32>, lock: &mut OpsLocked<'a>) {
pub fn change<'a, 'b: 'a>(state: &OpsCell<'a, u32>, lock: &mut OpsLocked<'b>) {
    *state.get_mut(lock) = 1;
}
