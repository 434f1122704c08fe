//@ error: E0061 this method takes 2 arguments but 1 argument was supplied
// SPDX-License-Identifier: GPL-2.0

//! A shared end needs a proof of the context.

#![forbid(unsafe_code)]

use kernel::sync::alf_queue::Mpmc;

//~ pub fn push(queue: &Mpmc<u32>, cx: kernel::softirq::Softirq<'_>) {
pub fn push(queue: &Mpmc<u32>) {
    //~ let _ = queue.push(cx, 1);
    let _ = queue.push(1);
}
