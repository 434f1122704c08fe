// SPDX-License-Identifier: GPL-2.0

//! Tests of a device that needs other memory for another MTU or other features.

use super::plain::{
    PlainDevice,
    Plan,
    Step,
    FEATURE, //
};

use super::super::Features;

use crate::{
    prelude::*,
    sync::atomic::Relaxed, //
};

/// A device that is up.
fn device() -> Result<PlainDevice<true>> {
    let device = PlainDevice::new(Plan::new(2))?;

    device.up()?;
    device.plan.steps();
    Ok(device)
}

/// The settings of the device, and those that it was to have, when other rings were made last:
/// MTU and feature of each.
fn beside(plan: &Plan) -> [u64; 4] {
    let [mtu, features, new_mtu, new_features] =
        plan.beside.each_ref().map(|seen| seen.load(Relaxed));

    [mtu, features & FEATURE.0, new_mtu, new_features & FEATURE.0]
}

#[macros::kunit_tests(rust_net_reconfigure)]
mod cases {
    use super::*;

    #[test]
    fn the_mtu_stays_if_there_is_no_memory() -> Result {
        let device = device()?;
        let plan = &device.plan;

        plan.fail.store(1, Relaxed);
        assert_eq!(device.set_mtu(1000), Err(ENOMEM));
        // It was neither stopped nor started.
        assert_eq!(plan.steps(), [Step::Open].into());
        assert_eq!((device.mtu(), device.is_linked()), (1500, true));

        plan.fail.store(0, Relaxed);
        device.set_mtu(1000)?;
        assert_eq!(
            plan.steps(),
            [Step::Open, Step::Quiesce, Step::Start].into()
        );
        assert_eq!(device.mtu(), 1000);
        Ok(())
    }

    #[test]
    fn the_mtu_is_undone_if_the_device_does_not_start() -> Result {
        let device = device()?;
        let plan = &device.plan;

        plan.fail_start.store(1, Relaxed);
        assert_eq!(device.set_mtu(1000), Err(EIO));
        assert_eq!((device.mtu(), device.is_linked()), (1500, true));
        device.transmit(1)
    }

    #[test]
    fn features_stay_if_there_is_no_memory() -> Result {
        let device = device()?;
        let plan = &device.plan;

        plan.no_feature.store(1, Relaxed);
        plan.fail.store(1, Relaxed);
        assert_eq!(device.want(FEATURE) & FEATURE.0, FEATURE.0);
        assert_eq!(plan.steps(), [Step::Open].into());
        assert_eq!(plan.told.load(Relaxed) & FEATURE.0, FEATURE.0);
        assert!(device.is_linked());

        plan.fail.store(0, Relaxed);
        assert_eq!(device.want(FEATURE) & FEATURE.0, 0);
        assert_eq!(
            plan.steps(),
            [Step::Open, Step::Quiesce, Step::Start].into()
        );
        Ok(())
    }

    #[test]
    fn rings_that_are_in_use_have_the_old_settings() -> Result {
        let device = device()?;
        let plan = &device.plan;

        device.set_mtu(1000)?;
        let [mtu, features, new_mtu, new_features] = beside(plan);
        assert_eq!((mtu, new_mtu), (1500, 1000));
        assert_eq!((features, new_features), (FEATURE.0, FEATURE.0));

        plan.no_feature.store(1, Relaxed);
        assert_eq!(device.want(FEATURE) & FEATURE.0, 0);
        assert_eq!(beside(plan), [1000, FEATURE.0, 1000, 0]);
        Ok(())
    }

    #[test]
    fn settings_are_undone_if_the_device_does_not_start() -> Result {
        let device = device()?;
        let plan = &device.plan;

        plan.no_feature.store(1, Relaxed);
        plan.fail_start.store(1, Relaxed);
        assert_eq!(device.want(FEATURE) & FEATURE.0, FEATURE.0);
        assert!(device.is_linked());
        device.transmit(1)
    }

    #[test]
    fn receive_queues_alone_are_restarted() -> Result {
        let device = device()?;
        let plan = &device.plan;

        plan.restart_rx.store(1, Relaxed);
        plan.no_feature.store(1, Relaxed);
        assert_eq!(device.want(FEATURE) & FEATURE.0, 0);
        assert_eq!(plan.started_rx_with.load(Relaxed) & FEATURE.0, 0);
        assert_eq!(
            plan.steps(),
            [Step::StopRx, Step::StartRx, Step::StopRx, Step::StartRx].into()
        );
        device.settle(|| ());
        assert_eq!(device.plan.polls(), [1, 1, 0, 0]);
        assert!(device.is_linked());

        // If one of them does not stop, all of the device is restarted.
        plan.no_feature.store(0, Relaxed);
        plan.fail_rx[1].store(1, Relaxed);
        assert_eq!(device.want(FEATURE) & FEATURE.0, FEATURE.0);
        device.wait_for_restart();
        assert_eq!(
            plan.steps(),
            [Step::StopRx, Step::Quiesce, Step::Open, Step::Start].into()
        );
        device.transmit(1)
    }

    #[test]
    fn without_queue_management_the_device_is_restarted() -> Result {
        let device = PlainDevice::<false>::new(Plan::new(2))?;
        let plan = &device.plan;

        device.up()?;
        plan.steps();
        plan.restart_rx.store(1, Relaxed);
        plan.no_feature.store(1, Relaxed);
        assert_eq!(device.want(FEATURE) & FEATURE.0, 0);
        assert_eq!(
            plan.steps(),
            [Step::Open, Step::Quiesce, Step::Start].into()
        );
        Ok(())
    }

    #[test]
    fn a_feature_that_does_not_fit_stays_wanted() -> Result {
        let device = device()?;
        let plan = &device.plan;

        plan.no_feature.store(1, Relaxed);
        assert_eq!(device.want(FEATURE) & FEATURE.0, 0);
        plan.no_feature.store(0, Relaxed);
        assert_eq!(device.want(FEATURE) & FEATURE.0, FEATURE.0);

        // Also while it is down.
        device.down();
        plan.no_feature.store(1, Relaxed);
        assert_eq!(device.want(FEATURE) & FEATURE.0, 0);
        Ok(())
    }

    #[test]
    fn the_driver_adds_no_feature() -> Result {
        let device = device()?;

        assert_eq!(device.want(Features::NONE) & FEATURE.0, 0);
        Ok(())
    }
}
