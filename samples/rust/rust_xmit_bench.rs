// SPDX-License-Identifier: GPL-2.0

//! Benchmark of transmitting from many CPUs through one queue.
//!
//! Kernel threads submit packets, as fast as they can, to a sink that only one of them can use at a
//! time: a queue, or a ring with a doorbell. What a packet, a call and a doorbell cost is given in
//! cycles. The designs differ in how packets come to the sink: everyone takes its lock, as the
//! network stack did until 6.18; or whoever finds a lock-less list empty takes it, as
//! `__dev_xmit_skb()` does since then; or a [`Combiner`] decides.
//!
//! Loading the module runs all designs with each number of senders once, and writes lines to the
//! kernel log. User space loads it again and again, with `round` counting up, which runs the
//! designs in another order. Each packet must come through once, in the order of its sender: if not
//! so, loading fails.
//!
//! [`Combiner`]: kernel::net::combiner::Combiner

#![forbid(unsafe_code)]

use kernel::prelude::*;

#[path = "rust_xmit_bench/cycles.rs"]
mod cycles;
#[path = "rust_xmit_bench/designs.rs"]
mod designs;
#[path = "rust_xmit_bench/histogram.rs"]
mod histogram;
#[path = "rust_xmit_bench/race.rs"]
mod race;
#[path = "rust_xmit_bench/sink.rs"]
mod sink;
#[path = "rust_xmit_bench/transfer.rs"]
mod transfer;

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
            description: "Number of this round; decides in which order designs run",
        },
        most_senders: u32 {
            default: 8,
            description: "Runs 1, 2, 4, ... senders up to this, 64 at most",
        },
        packets: u32 {
            default: 50_000,
            description: "Packets of a run that are counted, for each two senders",
        },
        think_cycles: u32 {
            default: 100,
            description: "What a sender does for a packet before it submits it",
        },
        call_cycles: u32 {
            default: 50,
            description: "What a call of the sink costs, for one packet or for a batch",
        },
        packet_cycles: u32 {
            default: 100,
            description: "What a packet costs in the sink",
        },
        doorbell_cycles: u32 {
            default: 200,
            description: "What a doorbell costs, if the sink is a ring",
        },
        limit: u32 {
            default: 1000,
            description: "Packets on a list from which on more are dropped",
        },
        bound: u32 {
            default: 64,
            description: "Packets after which a combiner hands over",
        },
    },
}

struct RustXmitBench;

impl kernel::Module for RustXmitBench {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let most = module_parameters::most_senders.value();
        let packets = module_parameters::packets.value();
        if !(1..=64).contains(&most) || !(1..=100_000_000).contains(&packets) {
            pr_err!("most_senders must be 1 to 64, and packets 1 to 100 million\n");
            return Err(EINVAL);
        }
        let costs = Costs {
            call: module_parameters::call_cycles.value(),
            packet: module_parameters::packet_cycles.value(),
            doorbell: module_parameters::doorbell_cycles.value(),
        };
        let think = module_parameters::think_cycles.value();
        let clock_step = cycles::clock_step();

        cycles::report("think", think);
        cycles::report("call", costs.call);
        cycles::report("packet", costs.packet);
        cycles::report("doorbell", costs.doorbell);
        transfer::report()?;

        let mut senders = 1;
        while senders <= most {
            let plan = Plan {
                senders,
                // Who shares a CPU has his turn after some milliseconds.
                packets: u64::from(packets) * u64::from(senders.div_ceil(2)),
                think,
                costs,
                limit: module_parameters::limit.value(),
                bound: module_parameters::bound.value(),
                clock_step,
            };
            designs::run_all(&plan, module_parameters::round.value())?;
            senders *= 2;
        }
        Ok(Self)
    }
}
