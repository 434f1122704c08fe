// SPDX-License-Identifier: GPL-2.0

//! Tests of pools that are bound and unbound, and of rings with them that come and go.

use super::{
    super::super::super::{
        up::Up,
        Locks, //
    },
    *, //
};

/// A queue whose pool has rings.
fn queue_with_rings(device: &XdpDevice) -> Result<Option<u16>> {
    let registration = device.registration.as_ref().ok_or(ENODEV)?;

    Ok(registration.inner().orphans.queue_with_rings())
}

/// Has the memory that is kept be that of a NIC which is lost.
fn lose_kept(device: &XdpDevice) -> Result {
    let inner = device.registration.as_ref().ok_or(ENODEV)?.inner();

    Locks::with(inner.dev(), |locks| {
        inner
            .kept
            .get(locks.ops())
            .as_ref()
            .map(Up::lose)
            .ok_or(ENOENT)
    })
}

/// Waits for a restart in the background.
fn wait_for_restart(device: &XdpDevice) -> Result {
    let registration = device.registration.as_ref().ok_or(ENODEV)?;

    // SAFETY: The work is initialized. Tests hold no lock.
    unsafe { bindings::flush_work(registration.inner().restart.get()) };
    Ok(())
}

#[macros::kunit_tests(rust_net_xsk_binding)]
mod cases {
    use super::*;

    /// Without a program, others may use the pool.
    #[test]
    fn there_is_a_ring_while_there_is_a_program() -> Result {
        let (device, program, user) = bound(act, false)?;
        let other = User::new(device.dev(), 1, false)?;

        assert_eq!(queue_with_rings(&device)?, Some(0));
        device.attach(None).0?;
        assert_eq!(queue_with_rings(&device)?, None);
        other.bind()?;
        assert_eq!(queue_with_rings(&device)?, None);
        other.unbind()?;

        device.attach(Some(&program)).0?;
        assert_eq!(queue_with_rings(&device)?, Some(0));
        device.run_xsk(|_, _, _| Ok(()))?;
        // One that cannot be attached leaves none behind.
        device.attach(None).0?;
        device.plan.fails.store(0, Relaxed);
        assert!(device.attach(Some(&program)).0.is_err());
        device.plan.fails.store(usize::MAX, Relaxed);
        assert_eq!(queue_with_rings(&device)?, None);
        user.unbind()?;
        device.attach(Some(&program)).0
    }

    #[test]
    fn the_next_ring_begins_without_frames() -> Result {
        let (device, _program, user) = bound(act, false)?;
        let first = (CHUNKS * CHUNK) as u64;

        user.send(first, 60);
        device.run_xsk(|ring, _, cx| ring.transmit(cx, 4).map(drop))?;
        device.restart_rx(0)?;
        // All that the one before had has gone back.
        assert_eq!((user.given_back(), user.sent()), (15, Some(first)));
        device.run_xsk(|ring, program, cx| {
            check((ring.in_use(), ring.tail(), ring.tx_in_use()) == (0, 0, 0))?;
            check(ring.refill(cx)?.added == 15)?;
            program_acts(bindings::xdp_action_XDP_PASS, [0; 3]);
            run(ring, program, 0, cx).map(drop)
        })?;
        // So does the same one.
        user.send(first, 60);
        device.run_xsk(|ring, _, cx| ring.transmit(cx, 4).map(drop))?;
        device.plan.fails_to_start.store(0, Relaxed);
        assert_eq!(device.restart_rx(0), Err(EIO));
        assert_eq!(user.sent(), Some(first));
        device.run_xsk(|ring, _, cx| {
            check((ring.in_use(), ring.tail(), ring.tx_in_use()) == (0, 0, 0))?;
            check(ring.refill(cx)?.added == 15)
        })?;
        user.unbind()
    }

    #[test]
    fn a_device_goes_down_and_up_with_it() -> Result {
        let (device, _program, user) = bound(act, false)?;

        device.down();
        assert_eq!((user.given_back(), user.is_mapped()), (15, true));
        device.up()?;
        device.run_xsk(|ring, _, cx| check(ring.refill(cx)?.added == 15))?;
        device.down();
        user.unbind()?;
        assert!(!user.is_mapped());
        // The next one may be bound while it is down.
        user.bind()?;
        device.up()?;
        device.run_xsk(|ring, _, cx| check(ring.refill(cx)?.added == 15))?;
        user.unbind()
    }

    #[test]
    fn without_memory_it_is_not_bound() -> Result {
        let (device, _program) = device(act)?;
        let user = User::new(device.dev(), 0, false)?;

        device.plan.fails.store(0, Relaxed);
        assert_eq!(user.bind(), Err(ENOMEM));
        assert!(!user.is_mapped());
        device.plan.fails.store(usize::MAX, Relaxed);
        device.plan.fails_to_start.store(0, Relaxed);
        assert_eq!(user.bind(), Err(EIO));
        assert!(!user.is_mapped());
        // The queue has the ring that it had.
        device.run(|ring, _, _, _| check(ring.in_use() == 15))?;
        user.bind()?;
        device.run_xsk(|_, _, _| Ok(()))?;
        user.unbind()
    }

    #[test]
    fn unbinding_does_not_fail() -> Result {
        let (device, _program, user) = bound(act, false)?;

        // There is no memory for the queue, so the device is restarted.
        device.plan.fails.store(0, Relaxed);
        user.unbind()?;
        assert_eq!((user.given_back(), user.is_mapped()), (15, false));
        device.run(|ring, _, _, _| check(ring.in_use() == 15))?;
        device.plan.fails.store(usize::MAX, Relaxed);

        // Nor for that, so it is closed.
        user.bind()?;
        device.plan.fails.store(0, Relaxed);
        device.plan.fails_to_open.store(usize::MAX, Relaxed);
        user.unbind()?;
        assert!(!user.is_mapped());
        assert_eq!(device.run(|_, _, _, _| Ok(())), Err(ENODEV));
        device.plan.fails_to_open.store(0, Relaxed);
        Ok(())
    }

    #[test]
    fn a_queue_that_does_not_stop_is_restarted_once() -> Result {
        let (device, _program, user) = bound(act, false)?;

        device.plan.made();
        device.plan.fails_to_stop.store(0, Relaxed);
        user.unbind()?;
        wait_for_restart(&device)?;
        // The first one was to have another ring before.
        assert_eq!(device.plan.made(), [2, 1]);
        device.run(|ring, _, _, _| check(ring.in_use() == 15))?;

        // Any other restart is in the background.
        device.plan.fails_to_stop.store(0, Relaxed);
        assert_eq!(device.restart_rx(0), Err(EIO));
        wait_for_restart(&device)?;
        assert_eq!(device.plan.made(), [2, 1]);
        Ok(())
    }

    #[test]
    fn memory_stays_until_the_nic_has_stopped() -> Result {
        let (device, _program, user) = bound(act, false)?;

        assert_eq!(user.kept(), (0, true));
        device.plan.fails.store(0, Relaxed);
        device.plan.hangs.store(true, Relaxed);
        user.unbind()?;
        assert_eq!((user.kept(), user.is_mapped()), ((1, true), false));
        // If that is gone, so is what its address tells.
        assert!(user.is_mapped_for(device.dev()));
        lose_kept(&device)?;
        assert!(!user.is_mapped_for(device.dev()));
        device.plan.hangs.store(false, Relaxed);
        // After a reset.
        let inner = device.registration.as_ref().ok_or(ENODEV)?.inner();
        Locks::with(inner.dev(), |locks| inner.free_kept(locks));
        assert_eq!(user.kept(), (0, false));
        Ok(())
    }

    #[test]
    fn pools_take_rings_of_their_queue() -> Result {
        let (device, _program) = device(act)?;
        let user = User::new(device.dev(), 0, false)?;

        // The driver makes a ring of the pool for the other queue, too.
        device.plan.steals.store(true, Relaxed);
        user.bind()?;
        assert_eq!(device.restart_rx(1), Err(EINVAL));
        // It has kept the pool.
        device.plan.steals.store(false, Relaxed);
        user.unbind()?;
        device.plan.steals.store(true, Relaxed);
        assert_eq!(device.restart_rx(0), Err(EINVAL));
        device.plan.steals.store(false, Relaxed);
        device.restart_rx(0)
    }
}
