//@ error: E0277 cannot be shared between threads safely
// SPDX-License-Identifier: GPL-2.0

//! Two contexts cannot share an end, not even for reading.

#![forbid(unsafe_code)]

use kernel::sync::alf_queue::Producer;

fn send<T: Send>(_: T) {}

pub fn share(tx: &Producer<u32>) {
    //~ send(tx.capacity());
    send(tx);
}
