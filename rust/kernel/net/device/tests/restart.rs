// SPDX-License-Identifier: GPL-2.0

//! Tests of a device that is restarted while another CPU polls it.

use super::{
    super::{
        Direct,
        TxPath, //
    },
    dummy::{
        Dummy,
        Event, //
    },
    fixture::Fixture, //
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

/// Lets a completion on one CPU make room while another CPU takes the device down: the queue must
/// not be awake when the driver is told to be quiet. The device has the private flags `flags`.
pub(in crate::net::device) fn stays_stopped_while_down<P: TxPath<Dummy>>(flags: u32) -> Result {
    let mut cpus = kthread::online_cpus();
    let (Some(here), Some(there)) = (cpus.next(), cpus.next()) else {
        return Ok(());
    };
    let device = &Fixture::with_path::<P>(1)?;

    device.log.flags.store(flags, Relaxed);
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

#[macros::kunit_tests(rust_net_restart)]
mod cases {
    use super::*;

    #[test]
    fn queues_stay_stopped_while_down() -> Result {
        stays_stopped_while_down::<Direct>(0)
    }
}
