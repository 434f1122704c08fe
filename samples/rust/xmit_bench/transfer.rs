// SPDX-License-Identifier: GPL-2.0

//! Measures how long a cache line takes from one CPU to another.

use super::sink::Alone;
use kernel::{
    cpu::CpuId,
    kthread,
    prelude::*,
    processor::cpu_relax,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
    time::{
        Instant,
        Monotonic, //
    }, //
};

/// Number of turns of each CPU.
const TURNS: u32 = 5_000;
/// Number of measurements. Disturbances only add time, so the minimum counts.
const REPEATS: u32 = 7;

/// Reports the time of a turn, if two CPUs are online.
pub(crate) fn report() -> Result {
    let mut cpus = kthread::online_cpus();
    let (Some(first), Some(second)) = (cpus.next(), cpus.next()) else {
        return Ok(());
    };
    let mut least = u64::MAX;

    for _ in 0..REPEATS {
        least = least.min(nanoseconds(first, second)?);
    }
    pr_info!(
        "parameter|transfer|{}\n",
        least * 1000 / u64::from(2 * TURNS)
    );
    Ok(())
}

/// Two CPUs take turns at a counter: each waits for the other's number, and writes the next one.
fn nanoseconds(first: CpuId, second: CpuId) -> Result<u64> {
    let turn = &Alone(Atomic::new(0u32));
    let time = &Atomic::new(0u64);
    let take = |parity: u32| {
        let mut start = None;
        for number in (parity..2 * TURNS).step_by(2) {
            while turn.0.load(Acquire) != number {
                cpu_relax();
            }
            // Both threads are running by now.
            let _ = start.get_or_insert_with(Instant::<Monotonic>::now);
            turn.0.store(number + 1, Release);
        }
        if let (Some(start), 1) = (start, parity) {
            let nanoseconds = u64::try_from(start.elapsed().as_nanos()).unwrap_or(0);
            time.store(nanoseconds, Relaxed);
        }
    };

    kthread::scope(|scope| {
        scope.spawn_on(first, c"xmit_bench/turn", move || take(0))?;
        let second = scope.spawn_on(second, c"xmit_bench/turn", move || take(1));
        if second.is_err() {
            // Take the turns that the first thread waits for.
            take(1);
        }
        second
    })?;
    Ok(time.load(Relaxed))
}
