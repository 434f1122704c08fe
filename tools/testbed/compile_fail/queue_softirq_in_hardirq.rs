//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! A hard interrupt handler cannot use a queue that softirqs use.

#![forbid(unsafe_code)]

use kernel::sync::alf_queue::{
    with_interrupts_off,
    Mpmc, //
};

//~ pub fn pop(queue: &Mpmc<u32, kernel::sync::alf_queue::HardInterrupt>) -> Option<u32> {
pub fn pop(queue: &Mpmc<u32>) -> Option<u32> {
    with_interrupts_off(|cx| queue.pop(cx)).flatten()
}
