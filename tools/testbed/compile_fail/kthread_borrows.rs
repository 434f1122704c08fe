//@ error: E0373 closure may outlive the current function
// SPDX-License-Identifier: GPL-2.0

//! A thread may run longer than the function that started it: forgetting its handle is allowed.

#![forbid(unsafe_code)]

use kernel::{
    cpu::CpuId,
    kthread,
    prelude::*, //
};

pub fn run(cpu: CpuId) -> Result {
    let number = 1;
    //~ kthread::spawn_on(cpu, c"borrows", move || {
    kthread::spawn_on(cpu, c"borrows", || {
        let _ = number + 1;
    })?;
    Ok(())
}
