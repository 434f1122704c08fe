//@ error: E0277 cannot be sent between threads safely
// SPDX-License-Identifier: GPL-2.0

//! A CPU's part of a pool cannot be sent to another CPU.

#![forbid(unsafe_code)]

use kernel::{
    cpu::CpuId,
    kthread,
    mm::qmempool::Local,
    prelude::*, //
};

pub fn send(cpu: CpuId, local: Local<'static, 'static, u64>) -> Result {
    kthread::scope(|scope| {
        scope.spawn_on(cpu, c"send", move || {
            //~
            let local = local;
            //~
            let _ = local.alloc(1, GFP_ATOMIC);
        })
    })
}
