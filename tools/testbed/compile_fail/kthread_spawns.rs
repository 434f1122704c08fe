//@ error: E0277 cannot be shared between threads safely
// SPDX-License-Identifier: GPL-2.0

//! A thread that waits for the threads of a scope must know all of them.

#![forbid(unsafe_code)]

use kernel::{
    cpu::CpuId,
    kthread,
    prelude::*, //
};

pub fn run(cpu: CpuId) -> Result {
    kthread::scope(|scope| {
        scope.spawn_on(cpu, c"spawns", move || {
            //~
            let _ = scope.spawn_on(cpu, c"spawned", || {});
        })
    })
}
