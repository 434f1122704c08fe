// SPDX-License-Identifier: GPL-2.0

//! Benchmark of transmitting from many CPUs through one queue.
//!
//! Kernel threads submit packets, as fast as they can, to a sink that only one of them can use at a
//! time: a queue, or a ring with a doorbell. The costs of a packet, a call and a doorbell are
//! given, in cycles. The designs differ in how packets reach the sink: every sender takes its
//! lock, as the network stack did up to 6.18; or the sender that finds a lock-less list empty takes
//! it, as `__dev_xmit_skb()` has done since; or a [`Combiner`] decides.
//!
//! Loading the module runs all designs with each number of senders once, and writes the results to
//! the kernel log. User space loads it repeatedly and increments `round`, which changes the order
//! of the designs. Each packet has to arrive exactly once, in the order of its sender; otherwise
//! loading fails.
//!
//! [`Combiner`]: kernel::net::combiner::Combiner

#![forbid(unsafe_code)]

use kernel::prelude::*;

mod cycles;
mod designs;
mod race;
mod sink;

module! {
    type: RustXmitBench,
    name: "rust_xmit_bench",
    authors: ["The skbulk authors"],
    description: "Benchmark of transmitting from many CPUs through one queue",
    license: "GPL",
    params: {
        round: u32 {
            default: 1,
            description: "Number of this round; determines the order of the designs",
        },
    },
}

/// Largest number of senders; 1, 2, 4, ... of them run.
const MOST: u32 = 8;

struct RustXmitBench;

impl kernel::Module for RustXmitBench {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let mut senders = 1;
        while senders <= MOST {
            designs::run_all(senders, module_parameters::round.value())?;
            senders *= 2;
        }
        Ok(Self)
    }
}
