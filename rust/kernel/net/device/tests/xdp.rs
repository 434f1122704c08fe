// SPDX-License-Identifier: GPL-2.0

//! Tests of programs that see received frames. Functions take the place of the programs, and tests
//! that of the NIC.

mod formats;
mod handler;
mod hints;
mod nic;
mod program;
mod several;
mod transmit;
mod xmit;
#[cfg(CONFIG_XDP_SOCKETS)]
mod xsk;

use self::{
    nic::{
        done,
        Wide,
        XdpDevice,
        MAX_MTU, //
    },
    program::{
        act,
        drop_it,
        program_acts,
        redirect,
        Function,
        Program,
        Target,
        SEEN,
        TAKEN,
        TARGET, //
    }, //
};

use super::super::Feature;

use crate::{
    bindings,
    net::{
        napi::Poll,
        page_pool::{
            AnyRxRing,
            CpuBuffer, //
        },
        xdp::{
            Attachment,
            Verdict,
            XdpBuff,
            XdpPolling,
            XdpRing, //
        }, //
    },
    prelude::*,
    sync::atomic::Relaxed, //
};

/// A device that is up, with a program.
fn device(function: Function) -> Result<(XdpDevice, Program)> {
    device_with(Program::new(function)?)
}

fn device_with(program: Program) -> Result<(XdpDevice, Program)> {
    let device = XdpDevice::new()?;

    device.up()?;
    device.attach(Some(&program)).0?;
    device.plan.made();
    Ok((device, program))
}

/// Completes a descriptor, and takes its frame.
fn receive<'p>(
    ring: &mut XdpRing<Wide>,
    index: usize,
    cx: &'p Poll<'_>,
) -> Result<XdpBuff<'p, Wide>> {
    ring.write_back(cx, index, [0, done(60)]);
    ring.poll(cx)?.next().ok_or(ENODATA)?.buff.ok_or(EMSGSIZE)
}

/// Runs the program on a frame, which has no hints.
fn run<'p>(
    polling: &mut XdpPolling<'_, 'p, Wide>,
    program: &Attachment,
    buff: XdpBuff<'p, Wide>,
    cx: &'p Poll<'_>,
) -> Result<Verdict<'p, Wide>> {
    Ok(polling.run(program.program(cx).ok_or(ENOENT)?, buff, [0; 2]))
}

/// A frame that passes.
fn pass<'p>(
    ring: &mut XdpRing<Wide>,
    program: &Attachment,
    buff: XdpBuff<'p, Wide>,
    cx: &'p Poll<'_>,
) -> Result<XdpBuff<'p, Wide>> {
    match run(&mut ring.poll(cx)?, program, buff, cx)? {
        Verdict::Pass(buff) => Ok(buff),
        _ => Err(EACCES),
    }
}

/// For poll functions, in which no test runs.
fn check(is_right: bool) -> Result {
    is_right.then_some(()).ok_or(EDOM)
}

#[macros::kunit_tests(rust_net_xdp)]
mod cases {
    use super::*;

    #[test]
    fn programs_see_frames_as_they_were_received() -> Result {
        let (device, _program) = device(act)?;

        program_acts(bindings::xdp_action_XDP_PASS, [0; 3]);
        device.run(|ring, _, program, cx| {
            let buff = receive(ring, 0, cx)?;
            let buff = pass(ring, program, buff, cx)?;

            check(buff.len() == 60)?;
            Ok(())
        })?;
        let info =
            size_of::<bindings::skb_shared_info>().next_multiple_of(1 << bindings::L1_CACHE_SHIFT);
        let tailroom = bindings::PAGE_SIZE - info - 256 - 60;
        let memory = bindings::xdp_mem_type_MEM_TYPE_PAGE_POOL;
        assert_eq!(
            SEEN.each_ref().map(|seen| seen.load(Relaxed)),
            [256, 60, 0, tailroom as u32, 0, memory]
        );
        Ok(())
    }

    #[test]
    fn rings_tell_whether_there_may_be_something() -> Result {
        let (device, _program) = device(drop_it)?;

        device.run(|ring, _, _, cx| {
            check(!ring.may_have_completed(cx))?;
            ring.write_back(cx, 0, [0, done(60)]);
            check(ring.may_have_completed(cx))?;
            drop(ring.poll(cx)?.next());
            check(!ring.may_have_completed(cx))
        })
    }

    #[test]
    fn frames_pass_where_programs_have_left_them() -> Result {
        let (device, _program) = device(act)?;

        program_acts(bindings::xdp_action_XDP_PASS, [-32, 10, -8]);
        device.run(|ring, _, program, cx| {
            let buff = receive(ring, 0, cx)?;
            let buff = pass(ring, program, buff, cx)?;
            // Another program would see that.
            program_acts(bindings::xdp_action_XDP_PASS, [4, 0, -12]);
            let frame = pass(ring, program, buff, cx)?.into_frame();

            check((frame.headroom, frame.len) == (256 - 28, 60 + 28 + 10))?;
            check(frame.metasize == 12)?;
            check(u32::from(frame.flags) == bindings::NAPI_BUILD_METADATA)?;
            // SAFETY: It has been given up.
            drop(unsafe { CpuBuffer::device_buffer_of(&frame) });
            Ok(())
        })?;
        let seen = SEEN.each_ref().map(|seen| seen.load(Relaxed));
        assert_eq!(seen[..3], [256 - 32, 60 + 32 + 10, 8]);
        Ok(())
    }

    #[test]
    fn buffers_of_dropped_frames_stay_in_the_ring() -> Result {
        let (device, _program) = device(drop_it)?;

        device.run(|ring, _, program, cx| {
            for round in 0..3 {
                for number in 0..15 {
                    let index = (round * 15 + number) % 16;
                    let address = ring.write_buffer(cx, index, 0).ok_or(ENOENT)?;
                    let buff = receive(ring, index, cx)?;
                    let verdict = run(&mut ring.poll(cx)?, program, buff, cx)?;

                    check(matches!(verdict, Verdict::Dropped))?;
                    check(ring.write_buffer(cx, index + 15, 0) == Some(address))?;
                    check((ring.in_use(), ring.missing()) == (15, 0))?;
                    check(ring.recycled() == number + 1)?;
                }
                // The NIC is told of them, once.
                check(ring.refill(cx)? == 15)?;
                check(ring.refill(cx)? == 0)?;
            }
            Ok(())
        })
    }

    #[test]
    fn programs_that_fail_drop_the_frame() -> Result {
        let (device, _program) = device(act)?;

        device.run(|ring, _, program, cx| {
            for (index, action) in [bindings::xdp_action_XDP_ABORTED, 77, u32::MAX]
                .into_iter()
                .enumerate()
            {
                program_acts(action, [0; 3]);
                let buff = receive(ring, index, cx)?;
                let verdict = run(&mut ring.poll(cx)?, program, buff, cx)?;

                check(matches!(verdict, Verdict::Aborted))?;
                check((ring.in_use(), ring.recycled()) == (15, index + 1))?;
            }
            Ok(())
        })
    }

    #[test]
    fn redirected_frames_are_flushed() -> Result {
        let _target = Target::new()?;
        let (device, _program) = device(redirect)?;

        device.run(|ring, _, program, cx| {
            for index in 0..3 {
                let buff = receive(ring, index, cx)?;
                let verdict = run(&mut ring.poll(cx)?, program, buff, cx)?;

                check(matches!(verdict, Verdict::Redirected))?;
            }
            // The driver does nothing for them.
            check((TAKEN.load(Relaxed), ring.in_use(), ring.recycled()) == (0, 12, 0))?;
            Ok(())
        })?;
        assert_eq!(TAKEN.load(Relaxed), 3);
        // The core takes as many at a time.
        device.run(|ring, _, program, cx| {
            check(ring.refill(cx)? == 3)?;
            for index in 3..23 {
                let buff = receive(ring, index % 16, cx)?;
                let verdict = run(&mut ring.poll(cx)?, program, buff, cx)?;

                check(matches!(verdict, Verdict::Redirected))?;
                ring.refill(cx)?;
            }
            check(TAKEN.load(Relaxed) == 3 + 16)?;
            Ok(())
        })?;
        assert_eq!(TAKEN.load(Relaxed), 3 + 20);
        device.down();
        assert!(!device.has_pools());
        Ok(())
    }

    #[test]
    fn a_frame_that_cannot_be_redirected_is_dropped() -> Result {
        let (device, _program) = device(redirect)?;

        TARGET.store(i32::MAX as u32, Relaxed);
        device.run(|ring, _, program, cx| {
            let buff = receive(ring, 0, cx)?;
            let verdict = run(&mut ring.poll(cx)?, program, buff, cx)?;

            check(matches!(verdict, Verdict::Aborted))?;
            check((ring.in_use(), ring.recycled()) == (15, 1))?;
            Ok(())
        })
    }

    #[test]
    fn a_ring_takes_no_buffer_of_another_one() -> Result {
        let (device, _program) = device(drop_it)?;

        device.run(|ring, other, program, cx| {
            receive(ring, 0, cx)?;
            let buff = receive(other, 0, cx)?;
            let verdict = run(&mut ring.poll(cx)?, program, buff, cx)?;

            check(matches!(verdict, Verdict::Dropped))?;
            check((ring.in_use(), ring.recycled()) == (14, 0))?;
            Ok(())
        })
    }

    #[test]
    fn a_full_ring_takes_no_buffer() -> Result {
        let (device, _program) = device(drop_it)?;

        device.run(|ring, _, program, cx| {
            let buff = receive(ring, 0, cx)?;
            check(ring.refill(cx)? == 1)?;
            let verdict = run(&mut ring.poll(cx)?, program, buff, cx)?;

            check(matches!(verdict, Verdict::Dropped))?;
            check((ring.in_use(), ring.recycled()) == (15, 0))?;
            Ok(())
        })
    }

    #[test]
    fn queues_are_restarted_once() -> Result {
        let (device, first) = (XdpDevice::new()?, Program::new(act)?);
        let second = Program::new(drop_it)?;

        device.up()?;
        assert_eq!(device.plan.made(), [1, 1]);
        device.attach(Some(&first)).0?;
        assert_eq!(device.plan.made(), [1, 1]);
        assert_eq!((first.references(), second.references()), (2, 1));

        // A pointer is all that changes.
        device.attach(Some(&second)).0?;
        assert_eq!((first.references(), second.references()), (1, 2));
        device.attach(None).0?;
        assert_eq!(second.references(), 1);
        device.run(|_, _, program, cx| {
            check(program.program(cx).is_none())?;
            Ok(())
        })?;
        device.attach(Some(&first)).0?;
        assert_eq!(device.plan.made(), [0, 0]);
        device.run(|_, _, program, cx| program.program(cx).map(|_| ()).ok_or(ENOENT))
    }

    #[test]
    fn without_memory_there_is_no_program() -> Result {
        let (device, program) = (XdpDevice::new()?, Program::new(act)?);

        device.up()?;
        device.plan.made();
        device.plan.fails.store(1, Relaxed);
        assert_eq!(device.attach(Some(&program)), (Err(ENOMEM), true));
        assert_eq!((program.references(), device.plan.made()), (1, [1, 0]));
        // The first queue goes on with its buffers, and needs no others.
        device.run(|_, _, program, cx| {
            check(!program.is_in_use() && program.program(cx).is_none())?;
            Ok(())
        })?;
        device.plan.fails.store(usize::MAX, Relaxed);
        device.attach(Some(&program)).0?;
        assert_eq!((program.references(), device.plan.made()), (2, [0, 1]));
        Ok(())
    }

    #[test]
    fn what_excludes_programs_is_a_reason() -> Result {
        let (device, program) = (XdpDevice::new()?, Program::new(act)?);

        device.set_mtu(MAX_MTU as c_int + 1)?;
        assert_eq!(device.attach(Some(&program)), (Err(EINVAL), true));
        device.set_mtu(MAX_MTU as c_int)?;
        device.with_rtnl(|dev| {
            // SAFETY: The device is registered, and tests alone change this.
            unsafe { (*dev).features |= 1 << Feature::Lro as u32 };
        });
        assert_eq!(device.attach(Some(&program)), (Err(EINVAL), true));
        device.with_rtnl(|dev| {
            // SAFETY: As above.
            unsafe { (*dev).features &= !(1 << Feature::Lro as u32) };
        });
        assert_eq!(program.references(), 1);
        device.attach(Some(&program)).0?;
        assert_eq!(program.references(), 2);
        Ok(())
    }

    #[test]
    fn some_programs_do_not_limit_the_mtu() -> Result {
        let (device, program) = (XdpDevice::new()?, Program::for_fragments(act)?);
        let other = Program::new(act)?;

        assert!(!device.is_for_one_buffer()?);
        device.attach(Some(&other)).0?;
        assert!(device.is_for_one_buffer()?);
        assert_eq!(device.set_mtu(MAX_MTU as c_int + 1), Err(EINVAL));
        device.attach(Some(&program)).0?;
        assert!(!device.is_for_one_buffer()?);
        device.set_mtu(MAX_MTU as c_int + 1)?;
        device.attach(Some(&program)).0?;
        assert_eq!(device.attach(Some(&other)), (Err(EINVAL), true));
        assert_eq!((program.references(), other.references()), (2, 1));
        assert!(!device.is_for_one_buffer()?);
        device.attach(None).0?;
        assert!(!device.is_for_one_buffer()?);
        Ok(())
    }

    #[test]
    fn a_device_goes_up_with_its_program() -> Result {
        let (device, program) = (XdpDevice::new()?, Program::new(act)?);

        device.attach(Some(&program)).0?;
        assert_eq!(device.plan.made(), [0, 0]);
        for _ in 0..2 {
            device.up()?;
            assert_eq!(device.plan.made(), [1, 1]);
            device.run(|_, _, program, cx| program.program(cx).map(|_| ()).ok_or(ENOENT))?;
            device.down();
        }
        Ok(())
    }

    #[test]
    fn pools_go_with_their_rings() -> Result {
        let (device, _program) = device(act)?;

        assert!(device.has_pools());
        device.down();
        assert!(!device.has_pools());
        Ok(())
    }

    #[test]
    fn a_device_goes_away_with_its_program() -> Result {
        let (mut device, program) = device(act)?;

        device.device.registration = None;
        assert_eq!(program.references(), 1);
        Ok(())
    }
}
