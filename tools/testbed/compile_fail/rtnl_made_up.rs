//@ error: E0423 cannot initialize a tuple struct which contains private fields
// SPDX-License-Identifier: GPL-2.0

//! Only the core says that RTNL is held.

#![forbid(unsafe_code)]

use core::marker::PhantomData;
use kernel::net::device::{
    Rtnl,
    RtnlCell, //
};

pub fn read(cell: &RtnlCell<u32>, held: &Rtnl) -> u32 {
    //~ let (made_up, _) = (held, PhantomData::<*mut ()>);
    let made_up = &Rtnl(PhantomData);
    let _ = held;
    *cell.get(made_up)
}
