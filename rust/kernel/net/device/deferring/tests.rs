// SPDX-License-Identifier: GPL-2.0

//! Tests of doorbells that are deferred to the end of a poll.

use super::super::tests::{
    dummy::{
        Event,
        OnXmit, //
    },
    fixture::Fixture,
    UP, //
};

use crate::{
    prelude::*,
    sync::atomic::Relaxed, //
};

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
    fn completions_of_a_stopped_queue_are_polled() -> Result {
        let device = device_of(2)?;

        device
            .log
            .on_xmit
            .store(OnXmit::TakeAndStop as u32, Relaxed);
        device.log.forward.store(1, Relaxed);
        // Vector 1 transmits to the queue of vector 0, which is polled without an interrupt.
        device.interrupt(1);
        assert!(device.log.take(&[
            Event::Poll,
            Event::Xmit,
            Event::Told,
            Event::Rearm,
            Event::Poll,
            Event::Rearm
        ]));
        assert!(!device.is_stopped());
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
