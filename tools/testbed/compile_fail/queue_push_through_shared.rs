//@ error: E0596 cannot borrow `*tx` as mutable
// SPDX-License-Identifier: GPL-2.0

//! A push needs exclusive access to the end.

#![forbid(unsafe_code)]

use kernel::sync::alf_queue::Producer;

//~ pub fn push(tx: &mut Producer<u32>) {
pub fn push(tx: &Producer<u32>) {
    let _ = tx.push(1);
}
