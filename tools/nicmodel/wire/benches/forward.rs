// SPDX-License-Identifier: GPL-2.0
//! The time that the engine spends on a frame which a guest forwards from one port to the other,
//! and on a turn without work, in nanoseconds, without a kernel. The guest, that of the tests, and
//! the engine take turns in one thread, and only the engine's turns are timed.
//!
//! Only figures of the same minute on the same machine can be compared: run two builds in turn.
//!
//!     cargo bench --package nicmodel-wire --bench forward
#![allow(clippy::unwrap_used)] // it ends there

mod guest;

use std::time::{Duration, Instant};

use guest::{Bench, route};

/// Frames, or turns, of one measurement.
const COUNT: u32 = 100_000;
const ROUNDS: usize = 9;

fn forward(bench: &mut Bench) -> Duration {
    let answer = bench.generate(&format!(r#"{{"from":0,"to":1,"count":{COUNT}}}"#));
    let mut spent = Duration::ZERO;
    loop {
        let begin = Instant::now();
        while bench.turn().busy {}
        spent += begin.elapsed();
        route(&mut bench.ports);
        if let Ok(report) = answer.try_recv() {
            assert_eq!(report.unwrap().forwarded, COUNT);
            return spent;
        }
    }
}

fn idle(bench: &mut Bench) -> Duration {
    let begin = Instant::now();
    for _ in 0..COUNT {
        bench.turn();
    }
    begin.elapsed()
}

/// Prints the least and the median of some rounds.
fn print(name: &str, mut measure: impl FnMut() -> Duration) {
    measure();
    let mut found: Vec<_> = (0..ROUNDS).map(|_| measure().as_nanos()).collect();
    found.sort_unstable();
    let [least, median] = [0, ROUNDS / 2].map(|i| found[i] as f64 / f64::from(COUNT));
    println!("{name:<8} {least:8.1} ns at least, {median:8.1} ns median");
}

fn main() {
    let mut bench = Bench::up();
    print("idle", || idle(&mut bench));
    print("forward", || forward(&mut bench));
}
