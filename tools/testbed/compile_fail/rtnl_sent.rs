//@ error: E0277 cannot be shared between threads safely
// SPDX-License-Identifier: GPL-2.0

//! RTNL is held by one task: another one cannot use its token.

#![forbid(unsafe_code)]

use kernel::{
    cpu::CpuId,
    kthread,
    net::device::{
        Rtnl,
        RtnlCell, //
    },
    prelude::*, //
};

pub fn elsewhere(cpu: CpuId, cell: &RtnlCell<u32>, rtnl: &Rtnl) -> Result {
    //~ let value = *cell.get(rtnl);
    let value = || *cell.get(rtnl);
    kthread::scope(|scope| {
        scope.spawn_on(cpu, c"rtnl", || {
            //~ let _ = value;
            let _ = value();
        })
    })
}
