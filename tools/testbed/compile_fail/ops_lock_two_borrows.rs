//@ error: E0499 cannot borrow `*lock` as mutable more than once at a time
// SPDX-License-Identifier: GPL-2.0

//! State that the lock of a device protects is lent to one user at a time.

#![forbid(unsafe_code)]

use kernel::net::device::{
    OpsCell,
    OpsLocked, //
};

pub fn twice<'bound>(cell: &OpsCell<'bound, [u32; 2]>, lock: &mut OpsLocked<'bound>) -> u32 {
    //~ let first = cell.get(lock);
    let first = cell.get_mut(lock);
    //~ let second = cell.get(lock);
    let second = cell.get_mut(lock);
    first[0] + second[1]
}
