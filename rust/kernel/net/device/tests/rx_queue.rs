// SPDX-License-Identifier: GPL-2.0

//! Tests of a device one of whose receive queues is restarted.

use super::{
    super::ops_lock::Locks,
    buffers::BufferKind,
    plain::{
        OfVector,
        PlainDevice,
        Plan,
        Step,
        Steps,
        INSTANCE, //
    }, //
};

use crate::{
    bindings,
    driver::registrations::{
        Registration as _,
        Suspension, //
    },
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    }, //
};

/// The steps of a restart that works.
const WORKS: [Step; 3] = [Step::MakeRx, Step::StopRx, Step::StartRx];

/// The steps of a restart with new memory that the NIC does not take.
const OLD_AGAIN: [Step; 5] = [
    Step::MakeRx,
    Step::StopRx,
    Step::StartRx,
    Step::StopRx,
    Step::StartRx,
];

/// Those of a device that is restarted as a whole.
const WHOLE: [Step; 3] = [Step::Quiesce, Step::Open, Step::Start];

/// A device that is up, with two pairs of queues and buffers of this kind.
fn device(ring: Option<BufferKind>) -> Result<PlainDevice<true>> {
    let device = PlainDevice::new(Plan {
        ring,
        ..Plan::new(2)
    })?;

    device.up()?;
    device.plan.steps();
    Ok(device)
}

/// Restarts the last queue while the driver fails so many times to make, to stop and to start one.
/// Returns the error and the steps.
fn fail(device: &PlainDevice<true>, times: [u32; 3]) -> (Option<Error>, Steps) {
    for (fail, times) in device.plan.fail_rx.iter().zip(times) {
        fail.store(times, Relaxed);
    }
    let result = device.restart_rx(1);

    (result.err(), device.plan.steps())
}

/// Waits until the vectors have been polled, and returns whether buffers were received in.
fn receives(device: &PlainDevice<true>) -> bool {
    device.settle(|| ());
    device.plan.ring_errno.load(Relaxed) == 0
}

#[macros::kunit_tests(rust_net_rx_queue)]
mod cases {
    use super::*;

    #[test]
    fn one_queue_gets_other_memory() -> Result {
        for kind in [None, Some(BufferKind::Half), Some(BufferKind::Page)] {
            let device = device(kind)?;

            for restarts in 1..4 {
                device.restart_rx(1)?;
                assert_eq!(device.plan.steps(), WORKS.into());
                assert!(receives(&device));
                // Only the vector whose interrupt may have come meanwhile.
                assert_eq!(device.plan.polls(), [0, restarts, 0, 0]);
            }
            assert_ne!(device.plan.locks.load(Relaxed) & INSTANCE, 0);
            device.transmit(1)?;
        }
        Ok(())
    }

    #[test]
    fn other_objects_do_not_pile_up() -> Result {
        let device = device(None)?;
        let inner = device.registration.as_ref().ok_or(ENODEV)?.inner();

        let (made, attached) = Locks::with(inner.dev(), |locks| {
            let vector = inner.rx_vector(1, locks.ops()).ok_or(ENODEV)?;
            // SAFETY: It exists while the device is up, which does not change with the locks held.
            let napi = unsafe { vector.as_ref() }.napi();
            let attach = || napi.attach(Arc::new(OfVector, GFP_KERNEL)?);

            Ok::<_, Error>((napi.alloc_rx(attach).map(|_| ()), attach()))
        })?;
        assert_eq!((made, attached), (Err(EINVAL), Ok(())));

        // Nor is one made for the queue in use while that starts.
        device.restart_rx(1)?;
        let errno = device.plan.attach_errno.load(Relaxed);
        assert_eq!(errno, EINVAL.to_errno());
        Ok(())
    }

    #[test]
    fn without_memory_nothing_happens() -> Result {
        let device = device(Some(BufferKind::Page))?;

        let (error, steps) = fail(&device, [1, 0, 0]);
        assert_eq!((error, steps), (Some(ENOMEM), [Step::MakeRx].into()));
        assert_eq!(device.plan.polls(), [0; 4]);
        device.restart_rx(1)?;
        assert!(receives(&device));
        Ok(())
    }

    #[test]
    fn the_old_memory_is_in_use_again() -> Result {
        for kind in [BufferKind::Half, BufferKind::Page] {
            let device = device(Some(kind))?;

            // Twice, as the first one is not where it began any more.
            for _ in 0..2 {
                let (error, steps) = fail(&device, [0, 0, 1]);
                assert_eq!((error, steps), (Some(EIO), OLD_AGAIN.into()));
                assert!(receives(&device));
            }
            device.restart_rx(1)?;
            assert!(receives(&device));
        }
        Ok(())
    }

    #[test]
    fn a_queue_that_does_not_stop_has_the_device_restarted() -> Result {
        let device = device(Some(BufferKind::Page))?;

        // The work may have run by now.
        let (error, first) = fail(&device, [0, 1, 0]);
        assert_eq!(error, Some(EIO));
        device.wait_for_restart();
        let steps = first.and(device.plan.steps());
        assert_eq!(steps, Steps::from([Step::MakeRx, Step::StopRx]).and(WHOLE));
        device.restart_rx(1)?;
        assert!(receives(&device));
        Ok(())
    }

    #[test]
    fn a_queue_that_starts_with_neither_has_the_device_restarted() -> Result {
        let device = device(Some(BufferKind::Page))?;

        let (error, first) = fail(&device, [0, 0, 2]);
        assert_eq!(error, Some(EIO));
        device.wait_for_restart();
        assert_eq!(
            first.and(device.plan.steps()),
            Steps::from(OLD_AGAIN).and(WHOLE)
        );
        assert!(receives(&device));
        Ok(())
    }

    #[test]
    fn a_ring_that_was_in_use_is_not_started_as_it_is() -> Result {
        for kind in [BufferKind::Page, BufferKind::Chained] {
            let device = device(Some(kind))?;

            device.plan.forgets_rewind.store(1, Relaxed);
            let (error, first) = fail(&device, [0, 0, 1]);
            assert_eq!(error, Some(EIO));
            device.wait_for_restart();
            let steps = first.and(device.plan.steps());
            assert_eq!(steps, Steps::from(OLD_AGAIN).and(WHOLE));
            assert!(receives(&device));
        }
        Ok(())
    }

    #[test]
    fn memory_that_the_nic_may_know_of_is_not_replaced() -> Result {
        let device = device(Some(BufferKind::Page))?;

        // It neither starts with the new memory, nor stops after that.
        device.plan.fail_second_stop.store(1, Relaxed);
        let ((error, first), state) = device.with_rtnl(|dev| {
            let failed = fail(&device, [0, 0, 1]);

            // SAFETY: The device is registered, and up: its restart waits for RTNL.
            let state = unsafe { (*(*bindings::netdev_get_tx_queue(dev, 1)).napi).state };
            (failed, state)
        });
        assert_eq!(error, Some(EIO));
        // The core waits for an instance that is disabled, with the lock held.
        assert_eq!(state & 1 << bindings::NAPI_STATE_NPSVC, 0);
        device.wait_for_restart();
        let [make, stop, start, stop_again, _] = OLD_AGAIN;
        let steps = Steps::from([make, stop, start, stop_again]).and(WHOLE);
        assert_eq!(first.and(device.plan.steps()), steps);
        // The NIC may have the new memory: the driver does not tell it of buffers in the old one.
        assert_eq!(device.plan.polls()[1], 0);
        assert!(receives(&device));
        Ok(())
    }

    #[test]
    fn a_device_that_is_down_has_no_memory_to_replace() -> Result {
        let device = PlainDevice::<true>::new(Plan::new(2))?;

        device.restart_rx(1)?;
        assert_eq!(device.plan.steps(), [].into());
        device.up()?;
        device.plan.steps();
        device.restart_rx(0)?;
        device.down();
        assert_eq!(device.plan.steps(), Steps::from(WORKS).and([Step::Quiesce]));
        device.restart_rx(0)?;
        assert_eq!(device.plan.steps(), [].into());
        Ok(())
    }

    #[test]
    fn a_device_that_sleeps_is_left_alone() -> Result {
        let device = device(None)?;
        let registration = device.registration.as_ref().ok_or(ENODEV)?;

        registration.suspend(Suspension::Sleep)?;
        device.plan.steps();
        assert_eq!(device.restart_rx(0), Err(ENETDOWN));
        assert_eq!(device.plan.steps(), [].into());
        registration.resume(false)?;
        device.restart_rx(0)?;
        Ok(())
    }

    #[test]
    fn the_parent_does_dma() -> Result {
        let device = device(None)?;
        // SAFETY: The device is registered, and its operations do not change.
        let parent = unsafe {
            let dev = device.dev();
            let get = (*(*dev).queue_mgmt_ops).ndo_queue_get_dma_dev;
            get.map(|get| get(dev, 0) == (*dev).dev.parent)
        };
        assert_eq!(parent, Some(true));
        Ok(())
    }

    #[test]
    fn goes_away_after_a_restart() -> Result {
        let mut device = device(Some(BufferKind::Half))?;

        device.restart_rx(0)?;
        device.restart_rx(1)?;
        device.registration = None;
        Ok(())
    }
}
