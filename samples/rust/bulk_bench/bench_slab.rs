// SPDX-License-Identifier: GPL-2.0

//! Benchmarks of slab: the cost of allocating and freeing an object, in bulk and alone.
//!
//! Loading the module runs one round. `reference/bench_slab_reference.c` is the C side.

#![forbid(unsafe_code)]

use core::mem::MaybeUninit;
use kernel::{
    prelude::*,
    slab::{
        Batch,
        Cache,
        Options, //
    }, //
};

mod timing;

use timing::{
    picoseconds,
    Report, //
};

module! {
    type: BenchSlab,
    name: "bench_slab",
    authors: ["The skbulk authors"],
    description: "Benchmarks of slab caches in Rust",
    license: "GPL",
}

struct BenchSlab;

impl kernel::Module for BenchSlab {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        run(&Report)?;
        Ok(Self)
    }
}

/// As large as the head of a packet. Nothing writes to it, so that only the allocator counts.
type Element = MaybeUninit<[u64; 29]>;

const SIZES: [usize; 14] = [1, 2, 3, 4, 8, 16, 30, 32, 34, 48, 64, 128, 158, 250];
const MAX_SIZE: usize = 256;
/// Number of objects per measurement of a case: few enough to complete undisturbed in most passes.
const OBJECTS: usize = 8_000;
/// Number of passes over all cases; the median counts, so that a disturbance hits few results.
const PASSES: usize = 5;

/// Runs one round.
fn run(report: &Report) -> Result {
    bulk(report)?;
    single(report)
}

fn median(mut times: [u64; PASSES]) -> u64 {
    times.sort_unstable();
    times[PASSES / 2]
}

/// Objects share no cache line, like the heads of packets.
fn options() -> Options {
    Options::new().hwcache_align()
}

/// Allocates and frees one batch in a cache of its own.
#[inline(always)]
fn cycle(cache: &Cache<Element>, count: usize) {
    let mut batch = Batch::<_, MAX_SIZE>::new(cache);
    let result = batch.alloc(count, GFP_ATOMIC, |_| Ok::<_, Error>(MaybeUninit::uninit()));
    // If memory is short, the batch is empty.
    let _ = result;
}

fn bulk(report: &Report) -> Result {
    let cache = Cache::with_options(c"bulk_bench_ours", options().bulk(MAX_SIZE))?;

    let mut times = [[0; PASSES]; SIZES.len()];
    for pass in 0..PASSES {
        for (time, size) in times.iter_mut().zip(SIZES) {
            let calls = OBJECTS / size;
            time[pass] = picoseconds(size as u64, calls as u64, || cycle(&cache, size));
        }
    }
    // The same case has three references.
    for bench in ["slab", "slab-sized", "slab-loop"] {
        for (size, time) in SIZES.into_iter().zip(times) {
            report.time(bench, fmt!("bulk {size}"), median(time));
        }
    }
    Ok(())
}

fn single(report: &Report) -> Result {
    let cache = Cache::<Element>::with_options(c"bulk_bench_ours_single", options())?;

    let mut times = [0; PASSES];
    for time in &mut times {
        *time = picoseconds(1, OBJECTS as u64, || {
            drop(cache.alloc(MaybeUninit::uninit(), GFP_ATOMIC));
        });
    }
    report.time("slab-single", fmt!("single"), median(times));
    Ok(())
}
