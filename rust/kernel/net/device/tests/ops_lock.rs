// SPDX-License-Identifier: GPL-2.0

//! Tests of the locks that callbacks are called with, for devices with and without a lock of their
//! own for their operations.

use super::plain::{
    PlainDevice,
    Plan,
    INSTANCE,
    RTNL, //
};

use crate::{
    driver::registrations::{
        Registration as _,
        Suspension, //
    },
    prelude::*,
    sync::atomic::Relaxed, //
};

/// The locks that the last callback was called with, since this was called.
fn locks<const OPS_LOCK: bool>(device: &PlainDevice<OPS_LOCK>) -> u32 {
    device.plan.locks.xchg(0, Relaxed)
}

/// Takes a device with that sort of lock through its life. `own` is its own lock, if it has one.
fn lifecycle<const OPS_LOCK: bool>(own: u32) -> Result {
    let device = PlainDevice::<OPS_LOCK>::new(Plan::new(1, 0, 1))?;
    let registration = device.registration.as_ref().ok_or(ENODEV)?;

    device.up()?;
    assert_eq!(locks(&device), RTNL | own);
    device.time_out();
    assert_eq!(locks(&device), RTNL | own);
    registration.suspend(Suspension::Sleep)?;
    registration.resume(false)?;
    assert_eq!(locks(&device), RTNL | own);

    // Down, and with it the instances are taken away, under the same locks.
    device.down();
    device.up()?;
    assert_eq!(locks(&device), RTNL | own);
    assert_eq!(device.rx_stats(0), (4, 0));
    Ok(())
}

#[macros::kunit_tests(rust_net_ops_lock)]
mod cases {
    use super::*;

    #[test]
    fn with_rtnl_alone() -> Result {
        lifecycle::<false>(0)
    }

    #[test]
    fn with_a_lock_of_its_own() -> Result {
        lifecycle::<true>(INSTANCE)
    }

    #[test]
    fn ethtool_needs_no_rtnl() -> Result {
        let device = PlainDevice::<true>::new(Plan::new(1, 0, 2))?;

        device.up()?;
        let channels = device.channels();
        assert_eq!((channels.combined_count, channels.tx_count), (1, 2));

        // Except to change the number of queues.
        // SAFETY: The device is registered, and the table is static.
        let needs = unsafe { (*(*device.dev()).ethtool_ops).op_needs_rtnl };
        assert_eq!(needs, 1 << 3);
        Ok(())
    }

    #[test]
    fn goes_away_while_up() -> Result {
        let mut device = PlainDevice::<true>::new(Plan::new(1, 0, 0))?;

        device.up()?;
        device.registration = None;
        Ok(())
    }
}
