// SPDX-License-Identifier: GPL-2.0

//! Tests of NICs that wake the machine.

use super::{
    dummy::{
        Event,
        Fail, //
    },
    unbind::{
        Fixture,
        QUIET, //
    },
    UP, //
};

use crate::{
    bindings,
    driver::registrations::{
        Shutdown,
        Suspension, //
    },
    error::to_result,
    prelude::*,
    sync::atomic::Relaxed, //
};

const ALL: u32 =
    bindings::WAKE_UCAST | bindings::WAKE_MCAST | bindings::WAKE_BCAST | bindings::WAKE_MAGIC;

/// A device whose bus can wake the machine.
fn device() -> Result<Fixture> {
    let device = Fixture::new()?;

    device.log.fail.store(Fail::No as u32, Relaxed);
    device.log.armed.store(0, Relaxed);
    // SAFETY: The device is registered.
    unsafe { bindings::device_set_wakeup_capable(device.parent(), true) };
    Ok(device)
}

/// The packets that the NIC knows, and those that users have chosen.
fn get(device: &Fixture) -> Result<(u32, u32)> {
    let mut info = bindings::ethtool_wolinfo::default();

    device.with_ethtool(|dev, ops| {
        let get = ops.get_wol.ok_or(EOPNOTSUPP)?;
        // SAFETY: The device is registered and RTNL is held.
        unsafe { get(dev, &mut info) };
        Ok((info.supported, info.wolopts))
    })
}

fn set(device: &Fixture, wolopts: u32) -> Result {
    let mut info = bindings::ethtool_wolinfo {
        wolopts,
        ..Default::default()
    };

    device.with_ethtool(|dev, ops| {
        let set = ops.set_wol.ok_or(EOPNOTSUPP)?;
        // SAFETY: As above.
        to_result(unsafe { set(dev, &mut info) })
    })
}

/// Whether the driver core lets the device wake the machine, as sysfs shows it.
fn may_wake(device: &Fixture) -> bool {
    // SAFETY: The device is registered.
    unsafe { bindings::device_may_wakeup(device.parent()) }
}

#[macros::kunit_tests(rust_net_wake_up)]
mod cases {
    use super::*;

    #[test]
    fn users_choose_packets() -> Result {
        let device = device()?;

        assert_eq!(get(&device)?.0, ALL);
        for wanted in [
            bindings::WAKE_BCAST,
            ALL,
            bindings::WAKE_UCAST | bindings::WAKE_MAGIC,
        ] {
            set(&device, wanted)?;
            assert_eq!(get(&device)?, (ALL, wanted));
            assert!(may_wake(&device));
        }
        // Others are refused, and change nothing.
        assert_eq!(
            set(&device, bindings::WAKE_ARP | bindings::WAKE_MAGIC),
            Err(EINVAL)
        );
        assert_eq!(get(&device)?.1, bindings::WAKE_UCAST | bindings::WAKE_MAGIC);

        set(&device, 0)?;
        assert_eq!(get(&device)?, (ALL, 0));
        assert!(!may_wake(&device));
        Ok(())
    }

    #[test]
    fn a_bus_without_it_has_none() -> Result {
        let device = device()?;

        // SAFETY: The device is registered.
        unsafe { bindings::device_set_wakeup_capable(device.parent(), false) };
        assert_eq!(get(&device)?, (0, 0));
        assert_eq!(set(&device, bindings::WAKE_MAGIC), Err(EOPNOTSUPP));
        set(&device, 0)
    }

    #[test]
    fn the_nic_is_armed_before_it_sleeps() -> Result {
        let device = device()?;
        let (bus, log) = (&device.bus, device.log);

        set(&device, bindings::WAKE_MAGIC | bindings::WAKE_MCAST)?;
        device.up()?;
        assert!(log.take(UP));
        bus.suspend(Suspension::Sleep)?;
        // When it is quiet.
        assert!(log.take(&[
            Event::Quiesce,
            Event::TxDropped,
            Event::PollerDropped,
            Event::ResourceGone,
            Event::Armed
        ]));
        assert_eq!(
            log.armed.load(Relaxed),
            bindings::WAKE_MAGIC | bindings::WAKE_MCAST
        );
        bus.resume(Suspension::Sleep)?;
        assert!(log.take(&[Event::Reset, Event::Open, Event::Start]));
        Ok(())
    }

    #[test]
    fn one_that_is_down_is_armed() -> Result {
        let device = device()?;

        set(&device, bindings::WAKE_BCAST)?;
        device.bus.suspend(Suspension::Sleep)?;
        assert!(device.log.take(&[Event::Armed]));
        device.bus.resume(Suspension::Sleep)
    }

    #[test]
    fn users_turn_it_off() -> Result {
        let device = device()?;
        let (bus, log) = (&device.bus, device.log);

        // With ethtool.
        set(&device, bindings::WAKE_MAGIC)?;
        set(&device, 0)?;
        bus.suspend(Suspension::Sleep)?;
        assert!(log.take(&[]));
        bus.resume(Suspension::Sleep)?;
        assert!(log.take(&[Event::Reset]));

        // In sysfs.
        set(&device, bindings::WAKE_MAGIC)?;
        // SAFETY: The device is registered.
        to_result(unsafe { bindings::device_set_wakeup_enable(device.parent(), false) })?;
        bus.suspend(Suspension::Sleep)?;
        assert!(log.take(&[]));
        bus.resume(Suspension::Sleep)
    }

    #[test]
    fn not_for_a_reset() -> Result {
        let device = device()?;
        let (bus, log) = (&device.bus, device.log);

        set(&device, bindings::WAKE_MAGIC)?;
        for why in [Suspension::Reset, Suspension::Error, Suspension::Failure] {
            bus.suspend(why)?;
            assert!(log.take(&[]));
            bus.resume(why)?;
            assert!(log.take(&[Event::Reset]));
        }
        Ok(())
    }

    #[test]
    fn not_a_nic_that_does_not_stop() -> Result {
        let device = device()?;
        let log = device.log;

        set(&device, bindings::WAKE_MAGIC)?;
        device.up()?;
        assert!(log.take(UP));
        log.fail.store(Fail::Quiesce as u32, Relaxed);
        device.bus.suspend(Suspension::Sleep)?;
        log.fail.store(Fail::No as u32, Relaxed);
        assert_eq!(log.armed.load(Relaxed), 0);
        device.bus.resume(Suspension::Sleep)
    }

    #[test]
    fn a_machine_that_is_off_can_be_woken() -> Result {
        for why in [Shutdown::Restart, Shutdown::PowerOff] {
            let device = device()?;
            let log = device.log;
            let is_off = why == Shutdown::PowerOff;

            set(&device, bindings::WAKE_MAGIC)?;
            device.up()?;
            assert!(log.take(UP));
            assert_eq!(device.bus.shut_down(why), is_off);
            if is_off {
                assert_eq!(log.armed.load(Relaxed), bindings::WAKE_MAGIC);
            } else {
                assert!(log.take(QUIET));
            }
        }
        Ok(())
    }
}
