// SPDX-License-Identifier: GPL-2.0

//! Benchmarks of bulk memory, the Rust side.
//!
//! Loading the module runs one round of the selected benchmarks and writes a line per result to
//! the kernel log. The module `bulk_bench_reference` does the same with what each of them is
//! compared to, called from C. User space loads the two in alternation and compares pairs of
//! rounds, so that what disturbs the machine disturbs both.

#![forbid(unsafe_code)]

use kernel::prelude::*;

#[path = "rust_bulk_bench/alf_queue.rs"]
mod alf_queue;
#[path = "rust_bulk_bench/qmempool.rs"]
mod qmempool;
#[path = "rust_bulk_bench/skb.rs"]
mod skb;
#[path = "rust_bulk_bench/slab.rs"]
mod slab;
#[path = "rust_bulk_bench/timing.rs"]
mod timing;

use timing::Report;

module! {
    type: RustBulkBench,
    name: "rust_bulk_bench",
    authors: ["The skbulk authors"],
    description: "Benchmarks of bulk memory in Rust",
    license: "GPL",
    params: {
        benches: u32 {
            default: 0xf,
            description: "What to run: 1 slab, 2 alf_queue, 4 qmempool, 8 skb; added up",
        },
    },
}

/// A benchmark: its bit, and what runs it.
type Bench = (u32, fn(&Report) -> Result);

const BENCHES: [Bench; 4] = [
    (1, slab::run),
    (2, alf_queue::run),
    (4, qmempool::run),
    (8, skb::run),
];

struct RustBulkBench;

impl kernel::Module for RustBulkBench {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let wanted = module_parameters::benches.value();
        for (bit, run) in BENCHES {
            if wanted & bit != 0 {
                run(&Report)?;
            }
        }
        Ok(Self)
    }
}
