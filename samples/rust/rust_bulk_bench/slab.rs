// SPDX-License-Identifier: GPL-2.0

//! Benchmarks of slab: what an object costs to allocate and to free, in bulk and alone, and what a
//! cache keeps when nothing is in use.

use super::timing::{
    picoseconds,
    Report, //
};
use core::mem::MaybeUninit;
use kernel::{
    prelude::*,
    slab::{
        Batch,
        Cache,
        Options, //
    }, //
};

/// As large as the head of a packet. Nobody writes to it: what counts is the allocator.
type Element = MaybeUninit<[u64; 29]>;

const SIZES: [usize; 14] = [1, 2, 3, 4, 8, 16, 30, 32, 34, 48, 64, 128, 158, 250];
const MOST: usize = 256;
/// How many objects are allocated to measure one case once: few enough for it to be over before
/// the machine does something else, more often than not.
const OBJECTS: usize = 8_000;
/// How often all cases are measured, so that a disturbance meets different ones; the median counts.
const PASSES: usize = 5;

/// Runs one round.
pub(super) fn run(report: &Report) -> Result {
    bulk(report)?;
    single(report)?;
    rest(report)
}

fn median(mut times: [u64; PASSES]) -> u64 {
    times.sort_unstable();
    times[PASSES / 2]
}

/// Like the heads of packets, objects share no cache line.
fn options() -> Options {
    Options::new().hwcache_align()
}

/// One batch allocated and freed, in a cache that does nothing else.
#[inline(always)]
fn cycle(cache: &Cache<Element>, count: usize) {
    let mut batch = Batch::<_, MOST>::new(cache);
    let result = batch.alloc(count, GFP_ATOMIC, |_| Ok::<_, Error>(MaybeUninit::uninit()));
    // There is memory; where there is not, the batch is empty.
    let _ = result;
}

fn bulk(report: &Report) -> Result {
    let cache = Cache::with_options(c"bulk_bench_ours", options().bulk(MOST))?;

    let mut times = [[0; PASSES]; SIZES.len()];
    for pass in 0..PASSES {
        for (time, size) in times.iter_mut().zip(SIZES) {
            let calls = OBJECTS / size;
            time[pass] = picoseconds(size as u64, calls as u64, || cycle(&cache, size));
        }
    }
    // The same is compared to two other things.
    for bench in ["slab", "slab-loop"] {
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

/// What stays in a cache after bulk calls of all sizes, how much of it a request gives back, and
/// what a cache with the allocator's default store keeps.
fn rest(report: &Report) -> Result {
    let ours = Cache::with_options(c"bulk_bench_ours_rest", options().bulk(MOST))?;
    let plain = Cache::with_options(c"bulk_bench_plain_rest", options())?;

    for (name, cache) in [("ours", &ours), ("plain", &plain)] {
        for size in SIZES {
            for _ in 0..100 {
                cycle(cache, size);
            }
        }
        // Without CONFIG_SLUB_DEBUG, nobody knows.
        let Some(kept) = cache.footprint() else {
            continue;
        };
        cache.shrink();
        let left = cache.footprint().unwrap_or_default();
        report.figure("slab-rest", fmt!("{name}"), kept.bytes as u64, "bytes");
        report.figure(
            "slab-rest",
            fmt!("{name} shrunk"),
            left.bytes as u64,
            "bytes",
        );
    }
    Ok(())
}
