// SPDX-License-Identifier: GPL-2.0

//! Tests of doorbells that are deferred to the end of a poll.

use super::{
    super::tests::{
        dummy::{
            Data,
            Dummy,
            Event,
            OnXmit,
            Tx, //
        },
        fixture::Fixture,
        UP, //
    },
    patience::PATIENCE,
    Defer,
    MAX_POLLS, //
};

use crate::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

/// The time, if it does not pass by itself but with each look at it, by so much.
static TIME: Atomic<i64> = Atomic::new(0);
static STEP: Atomic<i64> = Atomic::new(0);
/// Wait whatever the past says, if not zero.
static HOPE: Atomic<u32> = Atomic::new(0);

/// The time of a test, if one runs.
pub(super) fn now() -> Option<i64> {
    match STEP.load(Relaxed) {
        0 => None,
        step => Some(TIME.fetch_add(step, Relaxed)),
    }
}

/// Whether to wait whatever the past says, and the scheduler.
pub(super) fn is_hopeful() -> bool {
    HOPE.load(Relaxed) != 0
}

/// Looks at the clock until no packet is waited for any longer. The first one is at the beginning.
const LOOKS: u32 = 9;
/// Repetitions of a poll that has transmitted: the packet comes back to the device in the first.
const REPEATS: u32 = 1 + LOOKS;

/// The clock of a test.
struct Clock;

impl Clock {
    /// Lets a part of the longest time pass with each look.
    fn new() -> Self {
        STEP.store(PATIENCE / i64::from(LOOKS - 1), Relaxed);
        Self
    }

    /// As [`Self::new`], and waits are worth it.
    fn of_hope() -> Self {
        HOPE.store(1, Relaxed);
        Self::new()
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        STEP.store(0, Relaxed);
        HOPE.store(0, Relaxed);
    }
}

impl Defer for Dummy {
    fn kick<'bound>(data: Pin<&Data<'bound>>, _tx: &mut Tx) {
        data.log.add(Event::Kick);
    }
}

/// A device that is up, and logs doorbells.
fn device() -> Result<Fixture> {
    device_of(1)
}

/// The same with so many queue pairs.
fn device_of(pairs: u32) -> Result<Fixture> {
    let device = Fixture::new(pairs)?;

    device.up()?;
    assert!(device.log.take(UP));
    device.set_limit(1 << 20);
    device.log.doorbells.store(1, Relaxed);
    Ok(device)
}

#[macros::kunit_tests(rust_net_doorbell)]
mod cases {
    use super::*;

    #[test]
    fn outside_of_a_poll_nothing_waits() -> Result {
        let device = device()?;

        assert_eq!(device.transmit()?, 0);
        assert!(device.log.take(&[Event::Xmit, Event::Told]));
        Ok(())
    }

    #[test]
    fn one_packet_leaves_before_the_poll_ends() -> Result {
        let device = device()?;

        device.log.forward.store(1, Relaxed);
        device.interrupt(0);
        assert!(device
            .log
            .take(&[Event::Poll, Event::Xmit, Event::Kick, Event::Rearm]));
        Ok(())
    }

    #[test]
    fn packets_of_a_poll_share_a_doorbell() -> Result {
        let device = device()?;

        // Twice, so that nothing is left of the first time.
        for _ in 0..2 {
            device.log.forward.store(4, Relaxed);
            device.interrupt(0);
            assert!(device.log.take(&[
                Event::Poll,
                Event::Xmit,
                Event::Xmit,
                Event::Told,
                Event::Xmit,
                Event::Xmit,
                Event::Kick,
                Event::Rearm
            ]));
        }

        assert_eq!(device.transmit()?, 0);
        assert!(device.log.take(&[Event::Xmit, Event::Told]));
        Ok(())
    }

    #[test]
    fn a_busy_poll_rings_too() -> Result {
        let device = device()?;

        device.log.busy.store(1, Relaxed);
        device.log.forward.store(1, Relaxed);
        device.interrupt(0);
        assert!(device.log.take(&[
            Event::Poll,
            Event::Xmit,
            Event::Kick,
            Event::Poll,
            Event::Rearm
        ]));
        Ok(())
    }

    #[test]
    fn few_wait_at_first_and_more_later() -> Result {
        let device = device()?;

        // One waits, and the next one rings; then two, four, eight and so on. Each poll begins
        // anew.
        for (packets, told, kicked) in [
            (1, 0, 1),
            (2, 1, 0),
            (4, 1, 1),
            (5, 2, 0),
            (9, 2, 1),
            (10, 3, 0),
            (18, 3, 1),
            (19, 4, 0),
            (1, 0, 1),
        ] {
            device.log.forward.store(packets, Relaxed);
            device.interrupt(0);
            assert_eq!(device.log.count(Event::Told), told);
            assert_eq!(device.log.count(Event::Kick), kicked);
            for event in [Event::Xmit, Event::Told, Event::Kick] {
                device.log.forget(event);
            }
            assert!(device.log.take(&[Event::Poll, Event::Rearm]));
        }
        Ok(())
    }

    #[test]
    fn no_more_than_a_number_wait() -> Result {
        let device = device()?;

        // Doorbells with packets 2, 5, 10, 19 and 36.
        device.log.forward.store(36 + 33 + 33 + 32, Relaxed);
        device.interrupt(0);
        assert_eq!(device.log.told.load(Relaxed), 7);
        Ok(())
    }

    #[test]
    fn a_poll_that_has_transmitted_is_repeated() -> Result {
        let (device, _clock) = (device()?, Clock::of_hope());

        device.interrupt(0);
        assert_eq!(device.log.repeated.load(Relaxed), 0);
        assert!(device.log.take(&[Event::Poll, Event::Rearm]));

        device.log.forward.store(1, Relaxed);
        device.interrupt(0);
        assert_eq!(device.log.repeated.load(Relaxed), REPEATS);
        assert!(device
            .log
            .take(&[Event::Poll, Event::Xmit, Event::Kick, Event::Rearm]));
        Ok(())
    }

    #[test]
    fn answers_do_not_wait_for_an_interrupt() -> Result {
        let (device, _clock) = (device()?, Clock::of_hope());

        // Each comes at the last moment. Its doorbell is rung at once: it is alone.
        device.log.forward.store(1, Relaxed);
        device.log.forward_repeated.store(2, Relaxed);
        device.log.pause.store(REPEATS - 1, Relaxed);
        device.interrupt(0);
        assert_eq!(device.log.repeated.load(Relaxed), 3 * REPEATS);
        assert!(device.log.take(&[
            Event::Poll,
            Event::Xmit,
            Event::Kick,
            Event::Xmit,
            Event::Kick,
            Event::Xmit,
            Event::Kick,
            Event::Rearm
        ]));
        Ok(())
    }

    #[test]
    fn no_poll_is_repeated_beyond_its_budget() -> Result {
        let (device, _clock) = (device()?, Clock::of_hope());

        // A driver that transmits each time, and receives what it has transmitted.
        device.log.forward.store(1, Relaxed);
        device.log.forward_repeated.store(150, Relaxed);
        device.interrupt(0);
        // Two more runs, as the core wants it to continue; in the last one nothing comes any more.
        assert_eq!(device.log.repeated.load(Relaxed), 150 + 1 + LOOKS);
        device.log.clear();
        Ok(())
    }

    #[test]
    fn a_poll_that_was_interrupted_goes_on_waiting() -> Result {
        let (device, _clock) = (device()?, Clock::of_hope());

        for (forwarded, repeated) in [(1, LOOKS), (0, 0)] {
            device.log.repeated.store(0, Relaxed);
            device.log.busy.store(1, Relaxed);
            device.log.forward.store(forwarded, Relaxed);
            device.interrupt(0);
            assert_eq!(device.log.repeated.load(Relaxed), repeated);
            assert_eq!(device.log.count(Event::Poll), 2);
            device.log.clear();
        }
        Ok(())
    }

    #[test]
    fn a_clock_that_stands_still_ends_with_the_polls() -> Result {
        let (device, _clock) = (device()?, Clock::of_hope());

        STEP.store(1, Relaxed);
        device.log.forward.store(1, Relaxed);
        device.interrupt(0);
        assert_eq!(device.log.repeated.load(Relaxed), MAX_POLLS - 1);
        device.log.clear();
        Ok(())
    }

    #[test]
    fn waits_in_vain_are_given_up() -> Result {
        // There is a trial on each CPU, whatever came before.
        const POLLS: u32 = 512;
        let (device, _clock) = (device()?, Clock::new());

        for _ in 0..POLLS {
            device.log.forward.store(1, Relaxed);
            device.interrupt(0);
            device.log.clear();
        }
        // Each is repeated until it finds nothing. Whatever there was before, half of them wait for
        // longer at most.
        let repeated = device.log.repeated.load(Relaxed) - 2 * POLLS;
        assert!(repeated > 0);
        assert!(repeated <= POLLS / 2 * (LOOKS - 1));
        Ok(())
    }

    #[test]
    fn a_stopped_queue_does_not_wait() -> Result {
        let device = device()?;

        device
            .log
            .on_xmit
            .store(OnXmit::TakeAndStop as u32, Relaxed);
        device.log.forward.store(1, Relaxed);
        device.interrupt(0);
        // Its completions are looked for at once.
        assert!(device.log.take(&[
            Event::Poll,
            Event::Xmit,
            Event::Told,
            Event::Poll,
            Event::Rearm
        ]));
        Ok(())
    }

    #[test]
    fn a_queue_that_a_process_has_stopped_has_an_interrupt() -> Result {
        let device = device()?;

        device
            .log
            .on_xmit
            .store(OnXmit::TakeAndStop as u32, Relaxed);
        assert_eq!(device.transmit()?, 0);
        device.polled();
        assert!(device.log.take(&[Event::Xmit, Event::Told]));
        Ok(())
    }

    #[cfg(CONFIG_BQL)]
    #[test]
    fn a_queue_at_its_limit_does_not_wait() -> Result {
        let device = device()?;

        assert!(device.set_limit(0));
        device.log.forward.store(1, Relaxed);
        device.interrupt(0);
        assert!(device.log.take(&[
            Event::Poll,
            Event::Xmit,
            Event::Told,
            Event::Poll,
            Event::Rearm
        ]));
        Ok(())
    }

    #[test]
    fn completions_of_a_stopped_queue_are_polled_in_turn_with_its_sender() -> Result {
        let device = device_of(2)?;

        device
            .log
            .on_xmit
            .store(OnXmit::TakeAndStop as u32, Relaxed);
        device.log.forward.store(1, Relaxed);
        device.log.busy.store(1, Relaxed);
        device.log.hold.store(1, Relaxed);
        // Vector 1 transmits to the queue of vector 0, and is interrupted.
        device.interrupt(1);
        assert!(device.log.take(&[
            Event::Poll,
            Event::Xmit,
            Event::Told,
            // Vector 0, whose interrupt stays off as long as vector 1 has something to do.
            Event::Poll,
            Event::Poll,
            Event::Rearm,
            Event::Poll,
            Event::Rearm
        ]));
        Ok(())
    }

    #[test]
    fn a_queue_that_is_taken_away_is_told_before() -> Result {
        let device = device()?;

        device.log.forward.store(1, Relaxed);
        device.log.take_queue.store(1, Relaxed);
        device.interrupt(0);
        assert!(device.log.take(&[
            Event::Poll,
            Event::Xmit,
            Event::Kick,
            Event::QueueTaken,
            Event::Rearm
        ]));
        Ok(())
    }
}
