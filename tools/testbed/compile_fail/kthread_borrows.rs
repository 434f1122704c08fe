//@ error: E0373 closure may outlive the current function
// SPDX-License-Identifier: GPL-2.0

//! Threads end with their scope, which outlives the variables in it.

#![forbid(unsafe_code)]

use kernel::{
    cpu::CpuId,
    kthread,
    prelude::*, //
};

pub fn run(cpu: CpuId) -> Result {
    kthread::scope(|scope| {
        let number = 1;
        //~ scope.spawn_on(cpu, c"borrows", move || {
        scope.spawn_on(cpu, c"borrows", || {
            let _ = number + 1;
        })
    })
}
