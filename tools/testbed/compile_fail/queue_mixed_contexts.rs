//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! A queue that hard interrupt handlers use cannot be used with interrupts enabled.

#![forbid(unsafe_code)]

use kernel::{
    softirq::Softirq,
    sync::alf_queue::{
        HardInterrupt,
        Mpmc, //
    }, //
};

pub fn push(queue: &Mpmc<u32, HardInterrupt>, cx: Softirq<'_>) {
    //~ let _ = (cx, kernel::sync::alf_queue::with_interrupts_off(|cx| queue.push(cx, 1)));
    let _ = queue.push(cx, 1);
}
