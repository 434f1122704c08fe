// SPDX-License-Identifier: GPL-2.0

//! A race of completions with a sender that stops the queue.

use super::fixture::Fixture;

use crate::{
    bindings,
    kthread,
    net::{
        device::Immediate,
        queue::{
            Completions,
            TxQueue, //
        }, //
    },
    prelude::*,
    softirq::BhGuard,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
    time::{
        Delta,
        Instant,
        Monotonic, //
    }, //
};

/// The number of times that they race, unless the machine is too busy for that.
const ROUNDS: u32 = 200_000;
const TIME: Delta = Delta::from_secs(2);

/// State that the two sides share. Each counter is on a cache line of its own.
struct Race {
    free: Line,
    /// The rounds that each side has begun, and ended.
    begun: [Line; 2],
    ended: [Line; 2],
    /// Whether the round that ends is the last one.
    last: Line,
}

#[repr(align(64))]
struct Line(Atomic<u32>);

impl Line {
    const fn new() -> Self {
        Self(Atomic::new(0))
    }
}

impl Race {
    const fn new() -> Self {
        Self {
            free: Line::new(),
            begun: [const { Line::new() }; 2],
            ended: [const { Line::new() }; 2],
            last: Line::new(),
        }
    }

    /// Tells the other side that this one is there, and waits for it.
    fn meet(lines: &[Line; 2], me: usize, round: u32) {
        lines[me].0.store(round, Release);
        while lines[1 - me].0.load(Acquire) < round {
            core::hint::spin_loop();
        }
    }
}

/// Room is made by packets of `bytes` in all while the queue is stopped. Returns how often it
/// stayed stopped although there is room, unless the case is skipped.
fn missed_wakeups(bytes: usize) -> Result<Option<u32>> {
    let Some((here, there)) = kthread::two_cpus_for_case() else {
        return Ok(None);
    };
    let device = &Fixture::new(1)?;
    let (race, missed) = (&Race::new(), &Atomic::<u32>::new(0));

    // The device is down: nobody else uses its queue.
    kthread::scope(|scope| {
        scope.spawn_on(there, c"net-complete", move || {
            // SAFETY: The device has this queue. Nothing else completes packets.
            let queue =
                unsafe { Completions::from_raw(bindings::netdev_get_tx_queue(device.dev(), 0)) };

            for round in 1..=ROUNDS {
                let bh = BhGuard::new();
                Race::meet(&race.begun, 0, round);
                race.free.0.store(1, Relaxed);
                queue.completed(1, bytes, || race.free.0.load(Relaxed) as usize, 1);
                drop(bh);
                Race::meet(&race.ended, 0, round);
                if race.last.0.load(Relaxed) != 0 {
                    break;
                }
            }
        })?;
        scope.spawn_on(here, c"net-stop", move || {
            let start = Instant::<Monotonic>::now();

            for round in 1..=ROUNDS {
                // SAFETY: The device has this queue, which is not transmitted to otherwise.
                let (raw, queue) = unsafe {
                    let raw = bindings::netdev_get_tx_queue(device.dev(), 0);
                    (raw, TxQueue::from_raw(raw, &Immediate))
                };
                // Completed bytes have to be in the queue.
                if bytes != 0 {
                    let _ = queue.sent(bytes as u32, false);
                }
                race.free.0.store(0, Relaxed);
                let bh = BhGuard::new();
                Race::meet(&race.begun, 1, round);
                queue.stop_if_low(|| race.free.0.load(Relaxed) as usize, 1, 1);
                drop(bh);
                let is_last = start.elapsed() > TIME;
                race.last.0.store(is_last.into(), Relaxed);
                Race::meet(&race.ended, 1, round);
                if queue.is_stopped() {
                    missed.fetch_add(1, Relaxed);
                    // SAFETY: As above.
                    unsafe { bindings::netif_tx_start_queue(raw) };
                }
                if is_last {
                    break;
                }
            }
        })
    })?;
    Ok(Some(missed.load(Relaxed)))
}

#[macros::kunit_tests(rust_net_wake)]
mod cases {
    use super::*;

    #[test]
    fn packets_without_bytes_wake_the_queue() -> Result {
        assert!(matches!(missed_wakeups(0)?, None | Some(0)));
        Ok(())
    }

    #[test]
    fn completions_know_whether_the_queue_is_stopped() -> Result {
        let device = Fixture::new(1)?;

        device.up()?;
        let is_limited = device.set_limit(0);
        // SAFETY: The device has this queue.
        let raw = unsafe { bindings::netdev_get_tx_queue(device.dev(), 0) };
        // SAFETY: This is the queue of the device. Nothing else completes packets.
        let queue = unsafe { Completions::from_raw(raw) };

        assert!(!queue.is_stopped());
        // SAFETY: The queue is valid.
        unsafe { bindings::netif_tx_stop_queue(raw) };
        assert!(queue.is_stopped());
        // SAFETY: As above.
        unsafe { bindings::netif_tx_start_queue(raw) };
        assert!(!queue.is_stopped());

        // By its limit.
        // SAFETY: The queue is not transmitted to otherwise.
        let _ = unsafe { TxQueue::from_raw(raw, &Immediate) }.sent(64, false);
        assert_eq!(queue.is_stopped(), is_limited);
        queue.completed(1, 64, || 64, 1);
        assert!(!queue.is_stopped());
        Ok(())
    }

    #[test]
    fn packets_with_bytes_wake_the_queue() -> Result {
        assert!(matches!(missed_wakeups(64)?, None | Some(0)));
        Ok(())
    }
}
