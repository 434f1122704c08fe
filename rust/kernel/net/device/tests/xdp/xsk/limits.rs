// SPDX-License-Identifier: GPL-2.0

//! Tests of what a pool of users' memory takes of the device, and leaves to it.

use super::{
    super::nic::{
        MAX_MTU_OF_MEMORY,
        MAX_MTU_OF_PARTS, //
    },
    *, //
};

#[macros::kunit_tests(rust_net_xsk_limits)]
mod cases {
    use super::*;

    #[test]
    fn memory_limits_the_mtu() -> Result {
        let (device, program) = (XdpDevice::new()?, Program::for_fragments(act)?);
        let (max, user) = (
            MAX_MTU_OF_MEMORY as c_int,
            User::new(device.dev(), 0, false)?,
        );

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
    fn memory_whose_sockets_are_closed_does_not() -> Result {
        let (device, program) = (XdpDevice::new()?, Program::for_fragments(act)?);
        let user = User::new(device.dev(), 0, false)?;

        device.attach(Some(&program)).0?;
        device.up()?;
        user.bind()?;
        user.set_closed(true);
        let changed = device.set_mtu(MAX_MTU_OF_MEMORY as c_int + 1);
        let is_mapped = user.is_mapped();
        // C unbinds it when it gets to that.
        let unbound = user.unbind();
        user.set_closed(false);
        assert!(!is_mapped);
        changed.and(unbound)
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
    #[test]
    fn memory_for_several_buffers_limits_it_less() -> Result {
        let (device, program) = (XdpDevice::new()?, Program::for_fragments(act)?);
        let one = Program::new(act)?;
        let (max, user) = (
            MAX_MTU_OF_PARTS as c_int,
            User::with_parts(device.dev(), false)?,
        );

        device.up()?;
        device.attach(Some(&program)).0?;
        device.set_mtu(max + 1)?;
        assert_eq!(user.bind(), Err(EINVAL));
        device.set_mtu(max)?;
        user.bind()?;
        assert_eq!(device.set_mtu(max + 1), Err(EINVAL));

        // A program for frames in one buffer needs a ring for these.
        for mtu in [MAX_MTU + 1, MAX_MTU, MAX_MTU_OF_MEMORY + 1] {
            device.set_mtu(mtu as c_int)?;
            assert_eq!(device.attach(Some(&one)), (Err(EINVAL), true));
        }
        device.plan.made();
        device.set_mtu(MAX_MTU_OF_MEMORY as c_int)?;
        device.plan.fails.store(0, Relaxed);
        assert_eq!(device.attach(Some(&one)), (Err(ENOMEM), true));
        device.set_mtu(max)?;
        device.plan.fails.store(usize::MAX, Relaxed);
        device.set_mtu(MAX_MTU_OF_MEMORY as c_int)?;
        device.attach(Some(&one)).0?;
        assert_eq!(device.plan.made(), [1, 0]);
        assert_eq!(device.set_mtu(MAX_MTU_OF_MEMORY as c_int + 1), Err(EINVAL));
        // It is for those of the other one, too.
        device.attach(Some(&program)).0?;
        assert_eq!(device.plan.made(), [0, 0]);
        device.set_mtu(max)?;
        user.unbind()
    }

    #[test]
    fn with_a_program_for_one_buffer_memory_is_for_one() -> Result {
        let (device, _program) = device(act)?;
        let user = User::with_parts(device.dev(), false)?;
        let max = MAX_MTU_OF_MEMORY as c_int;

        device.set_mtu(max + 1)?;
        assert_eq!(user.bind(), Err(EINVAL));
        device.set_mtu(max)?;
        user.bind()?;
        assert_eq!(device.set_mtu(max + 1), Err(EINVAL));
        device.attach(None).0?;
        device.set_mtu(max + 1)?;
        user.unbind()
    }

    #[test]
    fn short_rings_are_not_for_several_buffers() -> Result {
        let (device, _program) = device_with(Program::for_fragments(act)?)?;
        let user = User::with_parts(device.dev(), false)?;

        device.plan.is_short.store(true, Relaxed);
        assert_eq!(user.bind(), Err(EINVAL));
        device.plan.is_short.store(false, Relaxed);
        user.bind()?;
        user.unbind()
    }
}
