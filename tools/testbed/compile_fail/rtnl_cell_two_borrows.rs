//@ error: E0499 cannot borrow `*rtnl` as mutable more than once at a time
// SPDX-License-Identifier: GPL-2.0

//! State that RTNL protects is lent to one user at a time.

#![forbid(unsafe_code)]

use kernel::net::device::{
    Rtnl,
    RtnlCell, //
};

pub fn twice(cell: &RtnlCell<[u32; 2]>, rtnl: &mut Rtnl) -> u32 {
    //~ let first = cell.get(rtnl);
    let first = cell.get_mut(rtnl);
    //~ let second = cell.get(rtnl);
    let second = cell.get_mut(rtnl);
    first[0] + second[1]
}
