//@ error: E0515 cannot return value referencing local variable `guard`
// SPDX-License-Identifier: GPL-2.0

//! The value of this CPU is inaccessible once the context may migrate.

#![forbid(unsafe_code)]

use core::cell::Cell;
use kernel::{
    percpu::PerCpu,
    prelude::*,
    softirq::BhGuard, //
};

//~ pub fn keep(values: &PerCpu<Cell<u32>>) -> Result<u32> {
pub fn keep(values: &PerCpu<Cell<u32>>) -> Result<&Cell<u32>> {
    let guard = BhGuard::new().ok_or(EINVAL)?;
    //~ Ok(values.get(guard.softirq()).get())
    Ok(values.get(guard.softirq()))
}
