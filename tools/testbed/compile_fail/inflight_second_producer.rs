//@ error: E0599 no method named `clone`
// SPDX-License-Identifier: GPL-2.0

//! A single transmit function is the producer of packets in flight.

#![forbid(unsafe_code)]

use kernel::net::inflight::TxProducer;

pub fn two(tx: TxProducer<'_>) {
    //~ let _same = tx;
    let _second = tx.clone();
}
