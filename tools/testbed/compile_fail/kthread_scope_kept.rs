//@ error: E0521 borrowed data escapes outside of closure
// SPDX-License-Identifier: GPL-2.0

//! A scope that has ended cannot start threads.

#![forbid(unsafe_code)]

use kernel::{
    cpu::CpuId,
    kthread,
    prelude::*, //
};

pub fn run(cpu: CpuId) -> Result {
    let mut kept = None;
    kthread::scope(|scope| {
        //~ kept = Some(scope.spawn_on(cpu, c"kept", || {}));
        kept = Some(scope);
        let _ = cpu;
    });
    kept.map_or(Ok(()), |_| Ok(()))
}
