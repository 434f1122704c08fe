// SPDX-License-Identifier: GPL-2.0

//! Tests of what a pool of users' memory takes of the device, and leaves to it.

use super::*;

#[macros::kunit_tests(rust_net_xsk_limits)]
mod cases {
    use super::*;

    #[test]
    fn memory_limits_the_mtu() -> Result {
        let (device, program) = (XdpDevice::new()?, Program::for_fragments(act)?);
        let (max, user) = (MAX_MTU as c_int, User::new(device.dev(), 0, false)?);

        device.set_mtu(max + 1)?;
        assert_eq!(user.bind(), Err(EINVAL));
        device.set_mtu(max)?;
        user.bind()?;
        assert_eq!(device.set_mtu(max + 1), Err(EINVAL));
        device.attach(Some(&program)).0?;
        assert_eq!(device.set_mtu(max + 1), Err(EINVAL));
        user.unbind()?;
        device.set_mtu(max + 1)
    }

    #[test]
    fn a_device_is_restarted_for_a_program() -> Result {
        let (device, program) = (XdpDevice::new()?, Program::new(act)?);

        device.plan.wants_restart.store(true, Relaxed);
        device.up()?;
        device.attach(Some(&program)).0?;
        device
            .run(|ring, _, program, cx| check(ring.in_use() == 15 && program.program(cx).is_some()))
    }

    #[test]
    fn a_device_that_does_not_restart_has_its_old_memory() -> Result {
        let (device, program) = (XdpDevice::new()?, Program::new(act)?);
        let user = User::new(device.dev(), 0, false)?;

        device.plan.wants_restart.store(true, Relaxed);
        device.up()?;
        device.plan.fails_to_open.store(1, Relaxed);
        assert_eq!(device.attach(Some(&program)), (Err(ENOMEM), true));
        device.plan.made();
        device.attach(Some(&program)).0?;
        // The first attempt left other rings.
        assert_eq!(device.plan.made(), [1, 1]);
        device.plan.fails_to_open.store(1, Relaxed);
        assert_eq!(user.bind(), Err(ENOMEM));
        assert_eq!((device.plan.made(), user.is_mapped()), ([1, 1], false));
        device.run(|ring, _, _, _| check(ring.in_use() == 15))
    }

    #[test]
    fn a_device_that_was_closed_stays_so() -> Result {
        let (device, _program, user) = bound(act, false)?;

        // It fails to restart twice, and is closed.
        device.plan.wants_restart.store(true, Relaxed);
        device.plan.fails_to_open.store(2, Relaxed);
        user.unbind()?;
        assert!(!user.is_mapped());
        assert_eq!(device.run(|_, _, _, _| Ok(())), Err(ENODEV));
        device.up()?;
        device.run(|ring, _, _, _| check(ring.in_use() == 15))
    }

    #[test]
    fn a_device_is_restarted_if_a_queue_cannot_be() -> Result {
        let (device, _program) = device(act)?;
        let user = User::new(device.dev(), 0, false)?;

        user.fill(0..CHUNKS);
        device.plan.wants_restart.store(true, Relaxed);
        user.bind()?;
        device.run_xsk(|ring, _, cx| check(ring.refill(cx)?.added == 15))?;
        user.unbind()?;
        assert_eq!((user.given_back(), user.is_mapped()), (15, false));
        device.run(|ring, _, _, _| check(ring.in_use() == 15))
    }
}
