// SPDX-License-Identifier: GPL-2.0
//! Whatever the guest writes, the model neither crashes nor loops.
//!
//! The guest is made of random numbers. Its behaviour depends on the seed alone, so a failure
//! repeats.

mod hostile;

use std::time::{Duration, Instant};

use hostile::{Guest, Random};

const STEPS: u32 = 60_000;
/// One step does a bounded amount of work; this is far beyond it even on a loaded machine.
const STEP_LIMIT: Duration = Duration::from_secs(5);

fn run(seed: u64) {
    let mut guest = Guest::new(Random::new(seed), seed & 1 != 0);
    guest.set_up();
    for step in 0..STEPS {
        let start = Instant::now();
        guest.step();
        let took = start.elapsed();
        assert!(
            took < STEP_LIMIT,
            "seed {seed:#x} step {step} took {took:?}"
        );
    }
    let totals = guest.device.totals.snapshot();
    let total = |name: &str| {
        totals
            .iter()
            .find(|(n, _)| *n == name)
            .map_or(0, |(_, v)| *v)
    };
    // A fuzzer that never gets past the door proves nothing.
    for name in [
        "rx_frames",
        "tx_frames",
        "malformed",
        "dma_errors",
        "resets",
    ] {
        assert!(total(name) > 0, "seed {seed:#x}: nothing exercised {name}");
    }
}

#[test]
fn random_guests_are_survived() {
    for seed in [1, 0x5eed, 0xdead_beef, 0x0123_4567_89ab_cdee] {
        run(seed);
    }
}
