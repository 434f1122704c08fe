// SPDX-License-Identifier: GPL-2.0

//! Tests of a device whose NIC is away for a while.

use super::{
    dummy::{
        Event,
        Fail, //
    },
    fixture::Fixture,
    DOWN,
    UP, //
};

use crate::{
    driver::registrations::{
        Registration as _,
        Suspension, //
    },
    prelude::*,
    sync::atomic::Relaxed, //
};

impl Fixture {
    pub(in crate::net::device) fn suspend(&self, why: Suspension) -> Result {
        self.registration.as_ref().ok_or(ENODEV)?.suspend(why)
    }

    pub(in crate::net::device) fn resume(&self) -> Result {
        self.registration.as_ref().ok_or(ENODEV)?.resume(false)
    }
}

const RESUMED: &[Event] = &[Event::Reset, Event::Open, Event::Start];

#[macros::kunit_tests(rust_net_suspend)]
mod cases {
    use super::*;

    #[test]
    fn goes_down_and_up_in_order() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        device.up()?;
        assert!(log.take(UP));
        for why in [Suspension::Sleep, Suspension::Reset, Suspension::Error] {
            device.suspend(why)?;
            assert!(log.take(DOWN));
            device.resume()?;
            assert!(log.take(RESUMED));
            assert_eq!(device.transmit()?, 0);
            device.interrupt(0);
            assert!(log.take(&[Event::Xmit, Event::Poll, Event::Rearm]));
        }
        Ok(())
    }

    #[test]
    fn a_nic_out_of_reach_is_left_alone() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        device.up()?;
        assert_eq!(device.transmit()?, 0);
        assert!(log.take(&[Event::Open, Event::Start, Event::Xmit]));

        // The parent cannot keep a NIC from its memory, so it is not freed.
        device.suspend(Suspension::Failure)?;
        assert!(log.take(&[]));

        // But a reset does that, after which it is.
        device.resume()?;
        assert!(log.take(&[
            Event::Reset,
            Event::TxDropped,
            Event::PollerDropped,
            Event::Open,
            Event::Start
        ]));
        assert_eq!(device.transmit()?, 0);
        Ok(())
    }

    #[test]
    fn no_callback_reaches_the_nic() -> Result {
        let device = Fixture::new(2)?;
        let log = &device.log;

        device.up()?;
        assert!(log.take(UP));
        device.suspend(Suspension::Sleep)?;
        assert_eq!(log.count(Event::Quiesce), 1);
        log.clear();
        log.addresses.store(0, Relaxed);

        // By the core's checks, and by those behind them.
        assert_eq!(device.set_mtu(2000), Err(ENODEV));
        assert_eq!(device.set_address([2, 0, 0, 0, 0, 9]), Err(ENODEV));
        device.join([3, 0, 0, 0, 0, 1])?;
        assert_eq!(device.set_channels(1), Some(ENODEV.to_errno()));
        assert_eq!(device.statistic_values(2, [0; 2]), [0; 2]);
        device.time_out();
        assert!(device.transmit_late(0)?.is_some());
        assert!(log.take(&[]));

        assert_eq!(log.unreachable.load(Relaxed), 0);
        device.stats();
        assert_eq!(log.unreachable.load(Relaxed), 1);

        device.resume()?;
        assert!(log.take(RESUMED));
        device.stats();
        assert_eq!(log.unreachable.load(Relaxed), 1);
        // The filter comes with it.
        assert!(device.addresses_come());
        Ok(())
    }

    #[test]
    fn one_that_is_down_stays_down() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        device.suspend(Suspension::Sleep)?;
        assert_eq!(device.up(), Err(ENODEV));
        assert!(log.take(&[]));
        device.resume()?;
        assert!(log.take(&[Event::Reset]));

        device.up()?;
        assert!(log.take(UP));
        device.suspend(Suspension::Sleep)?;
        assert!(log.take(DOWN));
        device.down();
        device.resume()?;
        assert!(log.take(&[Event::Reset]));
        Ok(())
    }

    #[test]
    fn one_that_cannot_go_up_is_closed() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        device.up()?;
        device.suspend(Suspension::Sleep)?;
        log.fail.store(Fail::Start as u32, Relaxed);
        assert_eq!(device.resume(), Err(EIO));
        assert!(!device.device().is_running());

        log.fail.store(Fail::No as u32, Relaxed);
        device.up()?;
        assert_eq!(device.transmit()?, 0);
        Ok(())
    }

    #[test]
    fn one_that_cannot_be_reset_is_closed_for_good() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        device.up()?;
        device.suspend(Suspension::Reset)?;
        log.fail.store(Fail::Reset as u32, Relaxed);
        assert_eq!(device.resume(), Err(EIO));
        assert!(!device.device().is_running());

        log.fail.store(Fail::No as u32, Relaxed);
        assert_eq!(device.up(), Err(ENODEV));
        Ok(())
    }

    #[test]
    fn a_reset_mends_a_nic_that_did_not_stop() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        device.up()?;
        log.fail.store(Fail::Quiesce as u32, Relaxed);
        device.suspend(Suspension::Reset)?;
        assert_eq!(log.count(Event::TxDropped), 0);

        log.fail.store(Fail::No as u32, Relaxed);
        device.resume()?;
        assert_eq!(log.count(Event::TxDropped), 1);
        assert_eq!(log.count(Event::PollerDropped), 1);
        assert_eq!(device.transmit()?, 0);
        Ok(())
    }

    #[test]
    fn what_no_reset_has_freed_is_lost() -> Result {
        let device = Fixture::new(1)?;
        let log = device.log.clone();

        device.up()?;
        device.suspend(Suspension::Failure)?;
        log.fail.store(Fail::Reset as u32, Relaxed);
        assert_eq!(device.resume(), Err(EIO));
        log.clear();
        drop(device);
        // Not the state of the driver.
        assert!(log.take(&[Event::TxDropped, Event::PollerDropped, Event::DataDropped]));
        Ok(())
    }
}
