// SPDX-License-Identifier: GPL-2.0

//! Work that takes a given number of cycles.

use core::hint::black_box;
use kernel::{
    prelude::*,
    time::{
        Instant,
        Monotonic, //
    }, //
};

/// A multiplication takes three cycles on the CPUs that matter here, and an addition one.
const STEP: u32 = 4;

/// Work, of which each piece waits for the one before.
pub(crate) struct Work(u64);

impl Work {
    pub(crate) const fn new() -> Self {
        Self(3)
    }

    /// Does what takes so many cycles.
    ///
    /// If pieces did not wait for each other, the CPU would do several at the same time. Squaring
    /// keeps the compiler from making one step of several, as it could with what is linear.
    #[inline(always)]
    pub(crate) fn spend(&mut self, cycles: u32) {
        let mut value = black_box(self.0);
        for _ in 0..cycles / STEP {
            value = value.wrapping_mul(value).wrapping_add(0x9e37_79b9);
        }
        self.0 = black_box(value);
    }
}

/// The step of the clock, in nanoseconds.
///
/// The clock of User-Mode Linux goes in steps of 256 ns.
pub(crate) fn clock_step() -> u64 {
    const READINGS: u32 = 1_000;
    let mut least = u64::MAX;

    for _ in 0..READINGS {
        let start = Instant::<Monotonic>::now();
        let passed = u64::try_from(start.elapsed().as_nanos()).unwrap_or(0);
        if passed != 0 {
            least = least.min(passed);
        }
    }
    // A clock that does not move between two readings of so many does not matter any more.
    if least == u64::MAX {
        1
    } else {
        least
    }
}

/// Reports how long so many cycles take here.
pub(crate) fn report(name: &str, cycles: u32) {
    const TIMES: u32 = 10_000;
    let (mut work, mut least) = (Work::new(), u64::MAX);

    // What disturbs only makes it longer.
    for _ in 0..5 {
        let start = Instant::<Monotonic>::now();
        for _ in 0..TIMES {
            work.spend(cycles);
        }
        least = least.min(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    pr_info!("parameter|{name}|{}\n", least * 1000 / u64::from(TIMES));
}
