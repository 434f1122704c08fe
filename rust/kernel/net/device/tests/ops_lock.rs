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

/// Takes a device with that sort of lock through its life. Returns the locks that its callbacks had
/// at each step, and how often it was opened, by the counters of a queue.
fn lifecycle<const OPS_LOCK: bool>() -> Result<([u32; 4], u64)> {
    let device = PlainDevice::<OPS_LOCK>::new(Plan::new(1))?;
    let registration = device.registration.as_ref().ok_or(ENODEV)?;
    let mut had = [0; 4];

    device.up()?;
    had[0] = locks(&device);
    device.time_out();
    had[1] = locks(&device);
    registration.suspend(Suspension::Sleep)?;
    registration.resume(false)?;
    had[2] = locks(&device);

    // Down, and with it the instances are taken away, under the same locks.
    device.down();
    device.up()?;
    had[3] = locks(&device);
    Ok((had, device.rx_stats(0).0))
}

#[macros::kunit_tests(rust_net_ops_lock)]
mod cases {
    use super::*;

    #[test]
    fn with_rtnl_alone() -> Result {
        assert_eq!(lifecycle::<false>()?, ([RTNL; 4], 4));
        Ok(())
    }

    #[test]
    fn with_a_lock_of_its_own() -> Result {
        assert_eq!(lifecycle::<true>()?, ([RTNL | INSTANCE; 4], 4));
        Ok(())
    }

    #[test]
    fn ethtool_needs_no_rtnl() -> Result {
        let device = PlainDevice::<true>::new(Plan::new(2))?;

        device.up()?;
        assert_eq!(device.channels().combined_count, 2);

        // Except to change the number of queues and the lengths of rings, for the state of the
        // link, and for tests.
        // SAFETY: The device is registered, and the table is static.
        let needs = unsafe { (*(*device.dev()).ethtool_ops).op_needs_rtnl };
        assert_eq!(needs, 1 << 2 | 1 << 3 | 1 << 8 | 1 << 9);
        Ok(())
    }

    #[test]
    fn goes_away_while_up() -> Result {
        let mut device = PlainDevice::<true>::new(Plan::new(1))?;

        device.up()?;
        device.registration = None;
        Ok(())
    }
}
