//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! A callback that is called with the lock of a device need not be called with RTNL.

#![forbid(unsafe_code)]

use kernel::net::device::{
    OpsLocked,
    Rtnl,
    RtnlCell, //
};

pub fn count(cell: &RtnlCell<u64>, rtnl: &mut Rtnl, lock: &mut OpsLocked<'_>) -> u64 {
    //~ let (held, _) = (rtnl, lock);
    let (_, held) = (rtnl, lock);
    *cell.get(held)
}
