// SPDX-License-Identifier: GPL-2.0

//! Interrupts that come while a NIC is being started.

use super::{
    dummy::{
        Event,
        Fail, //
    },
    fixture::Fixture, //
};

use crate::{
    prelude::*,
    sync::atomic::Relaxed, //
};

/// A device whose interrupts come while it is started.
fn early() -> Result<Fixture> {
    let device = Fixture::new(1)?;

    device.log.event_irq.store(device.irqs[2].0, Relaxed);
    device.log.early.store(1, Relaxed);
    Ok(device)
}

#[macros::kunit_tests(rust_net_early)]
mod cases {
    use super::*;

    #[test]
    fn callbacks_are_put_off() -> Result {
        let device = early()?;
        let log = &device.log;

        device.up()?;
        device.polled();
        // The poll function may run on this CPU, before the rest of `open()`, or in ksoftirqd.
        assert!(log.forget(Event::ThreadRan));
        assert!(log.take(&[
            Event::Open,
            Event::Start,
            Event::Started,
            Event::Poll,
            Event::Rearm
        ]));

        // None was put off since, nor is one left when the device is restarted.
        device.interrupt(0);
        assert!(log.take(&[Event::Poll, Event::Rearm]));
        log.early.store(0, Relaxed);
        device.down();
        log.clear();
        device.up()?;
        device.polled();
        assert!(log.take(&[Event::Open, Event::Start]));
        Ok(())
    }

    #[test]
    fn events_are_put_off() -> Result {
        let device = early()?;
        let log = &device.log;

        // Each start begins anew.
        for _ in 0..2 {
            device.up()?;
            device.polled();
            assert!(!log.forget(Event::Poll) || log.forget(Event::Rearm));
            assert!(log.take(&[Event::Open, Event::Start, Event::Started, Event::ThreadRan]));
            device.down();
            log.clear();
        }
        Ok(())
    }

    #[test]
    fn none_comes_if_the_nic_does_not_start() -> Result {
        let device = early()?;

        device.log.fail.store(Fail::StartLate as u32, Relaxed);
        assert_eq!(device.up(), Err(EIO));
        assert_eq!(device.log.count(Event::Poll), 0);
        assert_eq!(device.log.count(Event::ThreadRan), 0);
        Ok(())
    }
}
