// SPDX-License-Identifier: GPL-2.0

//! Tests of a device that is restarted: while another CPU polls it, and without success.

use super::{
    dummy::{
        Event,
        Fail, //
    },
    fixture::Fixture,
    UP, //
};

use crate::{
    kthread,
    prelude::*,
    softirq::BhGuard,
    sync::atomic::Relaxed,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

#[macros::kunit_tests(rust_net_restart)]
mod cases {
    use super::*;

    /// A completion on one CPU makes room while another CPU takes the device down: the queue must
    /// not be awake when the driver is told to be quiet.
    #[test]
    fn queues_stay_stopped_while_down() -> Result {
        let Some((here, there)) = kthread::two_cpus_for_case() else {
            return Ok(());
        };
        let device = &Fixture::new(1)?;

        device.up()?;
        assert_eq!(device.transmit()?, 0);
        // The driver checks when it is told to be quiet.
        device.log.complete_late.store(1, Relaxed);
        kthread::scope(|scope| {
            scope.spawn_on(there, c"net-poll", move || {
                let _bh = BhGuard::new();
                device.irqs[0].raise();
            })?;
            scope.spawn_on(here, c"net-restart", move || {
                while device.log.complete_late.load(Relaxed) != 0 {
                    fsleep(Delta::from_micros(100));
                }
                // Unlike when it closes a device, the core does not wait for poll functions before.
                device.time_out();
            })
        })?;
        assert_eq!(device.log.count(Event::Quiesce), 1);
        assert_eq!(device.log.awake.load(Relaxed), 0);
        assert!(!device.is_stopped());
        Ok(())
    }

    /// A device that `restart` could not take up again is closed, and can be opened.
    fn is_closed_after(restart: impl FnOnce(&Fixture)) -> Result {
        let device = Fixture::new(2)?;
        let log = &device.log;

        device.up()?;
        log.fail.store(Fail::Start as u32, Relaxed);
        restart(&device);
        assert!(!device.device().is_running());

        // The driver is not called as if it were up.
        log.addresses.store(0, Relaxed);
        device.join([3, 0, 0, 0, 0, 1])?;
        assert!(!device.addresses_come());

        log.fail.store(Fail::No as u32, Relaxed);
        device.up()?;
        assert!(device.device().is_running());
        assert_eq!(device.transmit()?, 0);
        Ok(())
    }

    #[test]
    fn a_hang_that_cannot_be_mended_closes() -> Result {
        is_closed_after(Fixture::time_out)
    }

    #[test]
    fn what_a_nic_may_still_use_is_kept() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        device.up()?;
        assert!(log.take(UP));
        assert_eq!(device.transmit()?, 0);
        assert!(log.take(&[Event::Xmit]));

        // The parent has no bus mastering to turn off.
        log.fail.store(Fail::Quiesce as u32, Relaxed);
        device.down();
        assert!(log.take(&[Event::Quiesce]));

        // Nor is the NIC used before it was reset.
        log.fail.store(Fail::No as u32, Relaxed);
        assert_eq!(device.up(), Err(EIO));
        assert!(log.take(&[]));
        Ok(())
    }

    #[test]
    fn a_nic_that_does_not_stop_is_not_restarted() -> Result {
        let device = Fixture::new(1)?;

        device.up()?;
        device.log.fail.store(Fail::Quiesce as u32, Relaxed);
        device.time_out();
        assert!(!device.device().is_running());
        assert_eq!(device.log.count(Event::Open), 1);
        assert_eq!(device.log.count(Event::TxDropped), 0);
        Ok(())
    }

    #[test]
    fn check_ups_restart_and_end_when_down() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;
        let wait = |done: &dyn Fn() -> bool| {
            for _ in 0..500 {
                if done() {
                    break;
                }
                fsleep(Delta::from_millis(10));
            }
            assert!(done());
        };

        log.unwell.store(1, Relaxed);
        device.up()?;
        wait(&|| log.count(Event::Start) == 2);
        assert_eq!(log.count(Event::Quiesce), 1);

        // They go on after the restart, and one that finds nothing does nothing.
        let seen = log.watchdog.load(Relaxed);
        wait(&|| log.watchdog.load(Relaxed) > seen);
        assert_eq!(log.count(Event::Quiesce), 1);

        device.down();
        let seen = log.watchdog.load(Relaxed);
        fsleep(Delta::from_millis(1_200));
        assert_eq!(log.watchdog.load(Relaxed), seen);
        Ok(())
    }

    #[test]
    fn check_ups_ask_for_one_restart() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        device.up()?;
        let count = crate::net::device::Rtnl::with(|_rtnl| {
            let before = log.watchdog.load(Relaxed);

            log.unwell.store(1, Relaxed);
            // The restart waits for us meanwhile.
            fsleep(Delta::from_millis(2_500));
            log.watchdog.load(Relaxed) - before
        });
        assert_eq!(count, 1);
        Ok(())
    }

    #[test]
    fn an_mtu_that_cannot_be_undone_closes() -> Result {
        is_closed_after(|device| {
            device.log.restart_mtu.store(1, Relaxed);
            assert_eq!(device.set_mtu(3000), Err(EIO));
        })
    }

    #[test]
    fn channels_that_cannot_be_undone_close() -> Result {
        is_closed_after(|device| assert_eq!(device.set_channels(1), Some(EIO.to_errno())))
    }
}
