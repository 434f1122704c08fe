// SPDX-License-Identifier: GPL-2.0

//! Timing of loops, and how a result is reported.

use kernel::{
    prelude::*,
    time::{
        Instant,
        Monotonic, //
    }, //
};

/// Number of times that a loop is measured; the median counts.
const REPEATS: usize = 5;

/// Where results go: to the kernel's log, behind the name of the module.
pub(crate) struct Report;

impl Report {
    /// Reports what one operation of a case took.
    pub(crate) fn time(&self, bench: &str, case: kernel::fmt::Arguments<'_>, picoseconds: u64) {
        pr_info!("{bench}|{case}|ours|{picoseconds}|ps\n");
    }

    /// Reports a figure that is not a time.
    pub(crate) fn figure(
        &self,
        bench: &str,
        case: kernel::fmt::Arguments<'_>,
        value: u64,
        unit: &str,
    ) {
        pr_info!("{bench}|{case}|ours|{value}|{unit}\n");
    }
}

/// Returns how many picoseconds one operation takes.
///
/// `body` is called `calls` times in a row, and does `operations` operations in each. What an empty
/// loop takes is subtracted. The loop runs in the context of the caller: it should be short enough
/// for that.
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
