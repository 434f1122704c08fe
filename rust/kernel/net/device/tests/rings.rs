// SPDX-License-Identifier: GPL-2.0

//! Tests of a device that gets rings of other lengths while it is up.

use super::plain::{
    PlainDevice,
    Plan,
    Step,
    Steps, //
};

use crate::{
    bindings,
    prelude::*,
    sync::atomic::Relaxed, //
};

/// The lengths of receive and transmit rings, for users.
fn lens<const OPS_LOCK: bool>(device: &PlainDevice<OPS_LOCK>) -> (u32, u32) {
    let rings = device.rings();

    (rings.rx_pending, rings.tx_pending)
}

/// Sets the lengths. Returns the result, and whether there is a reason for it.
fn set<const OPS_LOCK: bool>(
    device: &PlainDevice<OPS_LOCK>,
    (rx, tx): (u32, u32),
) -> (c_int, bool) {
    let mut extack = bindings::netlink_ext_ack::default();
    let result = device.set_rings(rx, tx, &mut extack);

    let reason = if extack._msg.is_null() {
        &[]
    } else {
        // SAFETY: The message ends with a zero, and is in `extack` or static.
        unsafe { CStr::from_char_ptr(extack._msg) }.to_bytes()
    };
    (result, reason.ends_with(b"ring size must be 16 to 128"))
}

/// Fails if two values differ. Outside of a case, an assertion would stop the kernel.
fn same<V: PartialEq>(is: V, wanted: V) -> Result {
    if is == wanted {
        Ok(())
    } else {
        Err(EBADMSG)
    }
}

/// Changes the lengths while the device is up, and while it is down.
fn change<const OPS_LOCK: bool>() -> Result {
    let device = PlainDevice::<OPS_LOCK>::new(Plan::new(2))?;
    let plan = &device.plan;

    same(
        (device.rings().rx_max_pending, lens(&device)),
        (128, (32, 32)),
    )?;
    device.up()?;
    same(
        (plan.lens(), plan.steps()),
        ((32, 32), [Step::Open, Step::Start].into()),
    )?;

    // The new rings are there before the old ones go.
    same(set(&device, (64, 100)), (0, false))?;
    let all = [Step::Open, Step::Quiesce, Step::Start];
    same((plan.lens(), plan.steps()), ((64, 128), all.into()))?;
    same(lens(&device), (64, 128))?;
    device.transmit(1)?;

    // Queues that can be restarted one by one get other receive rings without the rest.
    same(set(&device, (128, 128)), (0, false))?;
    let one = [Step::MakeRx, Step::StopRx, Step::StartRx];
    let steps = if OPS_LOCK {
        Steps::from(one).and(one)
    } else {
        all.into()
    };
    same((plan.lens(), plan.steps()), ((128, 128), steps))?;
    same(lens(&device), (128, 128))?;
    device.transmit(1)?;
    same(set(&device, (64, 128)), (0, false))?;
    plan.steps();

    // Nothing changes.
    same(set(&device, (60, 128)), (0, false))?;
    same(plan.steps(), [].into())?;

    device.down();
    same(plan.steps(), [Step::Quiesce].into())?;
    same(set(&device, (16, 16)), (0, false))?;
    same(plan.steps(), [].into())?;
    device.up()?;
    same(plan.lens(), (16, 16))
}

#[macros::kunit_tests(rust_net_rings)]
mod cases {
    use super::*;

    #[test]
    fn lengths_change_with_rtnl_alone() -> Result {
        change::<false>()
    }

    #[test]
    fn lengths_change_with_a_lock_of_its_own() -> Result {
        change::<true>()
    }

    #[test]
    fn other_lengths_are_refused_with_a_reason() -> Result {
        let device = PlainDevice::<false>::new(Plan::new(1))?;

        device.up()?;
        device.plan.steps();
        for lens in [(15, 64), (32, 129), (0, 64), (32, u32::MAX)] {
            assert_eq!(set(&device, lens), (ERANGE.to_errno(), true));
        }
        assert_eq!((lens(&device), device.plan.steps()), ((32, 32), [].into()));
        Ok(())
    }

    #[test]
    fn old_rings_stay_if_there_is_no_memory() -> Result {
        let device = PlainDevice::<false>::new(Plan::new(2))?;
        let plan = &device.plan;

        device.up()?;
        plan.steps();
        plan.fail.store(1, Relaxed);
        assert_eq!(set(&device, (64, 64)), (ENOMEM.to_errno(), false));

        // It was neither stopped nor started.
        assert_eq!(plan.steps(), [Step::Open].into());
        assert_eq!(lens(&device), (32, 32));
        device.transmit(0)?;
        assert!(device.is_linked());

        // Likewise with the number of queues.
        assert_eq!(device.set_channels(1), ENOMEM.to_errno());
        assert_eq!(plan.steps(), [Step::Open].into());
        assert_eq!((device.real_queues(), device.is_linked()), ((2, 2), true));

        // The state of vectors that never ran has nothing to account for.
        assert_eq!(plan.closed.load(Relaxed), 0);

        plan.fail.store(0, Relaxed);
        assert_eq!(set(&device, (64, 64)), (0, false));
        assert_eq!(lens(&device), (64, 64));
        assert_eq!(plan.closed.load(Relaxed), 2);
        Ok(())
    }

    #[test]
    fn a_receive_ring_that_cannot_be_replaced_stays() -> Result {
        let device = PlainDevice::<true>::new(Plan::new(2))?;
        let plan = &device.plan;

        device.up()?;
        plan.steps();
        plan.fail_rx[0].store(1, Relaxed);
        assert_eq!(set(&device, (64, 32)), (ENOMEM.to_errno(), false));
        assert_eq!(plan.steps(), [Step::MakeRx].into());
        assert_eq!((lens(&device), device.is_linked()), ((32, 32), true));

        // The queue before it has the old length again.
        plan.fail_second_rx.store(1, Relaxed);
        assert_eq!(set(&device, (64, 32)), (ENOMEM.to_errno(), false));
        assert_eq!((plan.lens(), lens(&device)), ((32, 32), (32, 32)));

        // One that does not stop has the device restarted, with the new length.
        plan.fail_rx[1].store(1, Relaxed);
        assert_eq!(set(&device, (64, 32)), (0, false));
        assert_eq!((plan.lens(), lens(&device)), ((64, 32), (64, 32)));
        Ok(())
    }

    #[test]
    fn a_nic_that_does_not_start_gets_its_old_rings() -> Result {
        let device = PlainDevice::<false>::new(Plan::new(1))?;
        let plan = &device.plan;

        device.up()?;
        plan.steps();
        plan.fail_start.store(1, Relaxed);
        assert_eq!(set(&device, (64, 64)), (EIO.to_errno(), false));
        // It stops when the start has failed, and goes up as before.
        let all = [
            Step::Open,
            Step::Quiesce,
            Step::Start,
            Step::Quiesce,
            Step::Open,
            Step::Start,
        ];
        assert_eq!((plan.lens(), plan.steps()), ((32, 32), all.into()));
        assert_eq!((lens(&device), device.is_linked()), ((32, 32), true));
        Ok(())
    }
}
