//@ error: E0277 `Cell<u32>` cannot be shared between threads safely
// SPDX-License-Identifier: GPL-2.0

//! Values of other CPUs may be in use.

#![forbid(unsafe_code)]

use core::cell::Cell;
use kernel::percpu::PerCpu;

//~ pub fn sum(values: &PerCpu<u32>) -> u32 {
pub fn sum(values: &PerCpu<Cell<u32>>) -> u32 {
    //~ values.iter().map(|(_cpu, value)| *value).sum()
    values.iter().map(|(_cpu, value)| value.get()).sum()
}
