// SPDX-License-Identifier: GPL-2.0

//! Timing of loops, and the format of results.
//!
//! Each `bench_NAME.rs` is a module, and a copy of this is part of it. It runs one round of its
//! benchmarks when it is loaded, and writes a line per result to the kernel log. The module
//! `bench_NAME_reference` does the same for the C code that it is compared with. User space loads
//! the two in alternation and compares pairs of rounds, so that a disturbance of the machine
//! affects both.

use kernel::{
    prelude::*,
    time::{
        Instant,
        Monotonic, //
    }, //
};

/// Number of measurements of a loop; the median counts.
const REPEATS: usize = 5;

/// Writes results to the kernel log.
pub(crate) struct Report;

impl Report {
    /// Reports the time of one operation of a case.
    pub(crate) fn time(&self, bench: &str, case: kernel::fmt::Arguments<'_>, picoseconds: u64) {
        pr_info!("bulk_bench: {bench}|{case}|ours|{picoseconds}|ps\n");
    }
}

/// Returns the time of one operation, in picoseconds.
///
/// `body` is called `calls` times in a row, and does `operations` operations per call. The time of
/// an empty loop is subtracted. The loop runs in the caller's context, so it should be short.
#[inline(always)]
pub(crate) fn picoseconds(operations: u64, calls: u64, mut body: impl FnMut()) -> u64 {
    let mut times = [0; REPEATS];
    for time in &mut times {
        let full = nanoseconds(calls, &mut body);
        let empty = nanoseconds(calls, || {
            core::hint::black_box(());
        });
        *time = full.saturating_sub(empty);
    }
    times.sort_unstable();
    let total = (calls * operations).max(1);
    times[REPEATS / 2] * 1000 / total
}

#[inline(always)]
fn nanoseconds(calls: u64, mut body: impl FnMut()) -> u64 {
    let start = Instant::<Monotonic>::now();
    for _ in 0..calls {
        body();
    }
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(0)
}
