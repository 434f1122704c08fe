//@ error: E0277 cannot be sent between threads safely
// SPDX-License-Identifier: GPL-2.0

//! A token is not valid on another CPU.

#![forbid(unsafe_code)]

use kernel::{
    cpu::CpuId,
    kthread,
    prelude::*,
    softirq::Softirq, //
};

pub fn send(cpu: CpuId, token: Softirq<'static>) -> Result {
    kthread::scope(|scope| {
        scope.spawn_on(cpu, c"send", move || {
            //~
            let token = token;
            //~
            let _ = &token;
        })
    })
}
