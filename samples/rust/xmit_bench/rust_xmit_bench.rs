// SPDX-License-Identifier: GPL-2.0

//! Benchmark of transmitting from many CPUs through one queue.
//!
//! Kernel threads submit packets, as fast as they can, to a sink that only one of them can use at a
//! time: a queue, or a ring with a doorbell. The costs of a packet, a call and a doorbell are
//! parameters, in cycles. The designs differ in how packets reach the sink: every sender takes its
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

use race::Plan;
use sink::Costs;

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
        max_senders: u32 {
            default: 8,
            description: "Maximum number of senders, up to 64; runs 1, 2, 4, ... of them",
        },
        packets: u32 {
            default: 50_000,
            description: "Number of counted packets per run, for each two senders",
        },
        think_cycles: u32 {
            default: 100,
            description: "Cycles that a sender spends on a packet before it submits it",
        },
        call_cycles: u32 {
            default: 50,
            description: "Cycles per call of the sink, for one packet or for a batch",
        },
        packet_cycles: u32 {
            default: 100,
            description: "Cycles per packet in the sink",
        },
        doorbell_cycles: u32 {
            default: 200,
            description: "Cycles per doorbell, if the sink is a ring",
        },
        limit: u32 {
            default: 1000,
            description: "Length of a list from which on packets are refused",
        },
        bound: u32 {
            default: 64,
            description: "Number of packets after which a combiner hands over",
        },
    },
}

struct RustXmitBench;

impl kernel::Module for RustXmitBench {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let most = module_parameters::max_senders.value();
        let packets = module_parameters::packets.value();
        if !(1..=64).contains(&most) || !(1..=100_000_000).contains(&packets) {
            pr_err!("max_senders must be 1 to 64, and packets 1 to 100 million\n");
            return Err(EINVAL);
        }
        let costs = Costs {
            call: module_parameters::call_cycles.value(),
            packet: module_parameters::packet_cycles.value(),
            doorbell: module_parameters::doorbell_cycles.value(),
        };
        let think = module_parameters::think_cycles.value();

        let mut senders = 1;
        while senders <= most {
            let plan = Plan {
                senders,
                // Senders that share a CPU take turns of some milliseconds: run long enough.
                packets: u64::from(packets) * u64::from(senders.div_ceil(2)),
                think,
                costs,
                limit: module_parameters::limit.value(),
                bound: module_parameters::bound.value(),
            };
            designs::run_all(&plan, module_parameters::round.value())?;
            senders *= 2;
        }
        Ok(Self)
    }
}
