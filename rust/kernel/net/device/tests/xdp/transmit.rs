// SPDX-License-Identifier: GPL-2.0

//! Tests of frames that programs send back.

use super::{
    device,
    formats::MAX_LEN,
    nic::{
        Wide,
        DONE, //
    },
    program::{
        act,
        program_acts, //
    },
    *, //
};

/// The status of a descriptor whose frame the NIC has sent.
const SENT: u64 = DONE;

/// Has a program send a frame back.
fn transmit<'p>(
    ring: &mut XdpRing<Wide>,
    program: &Attachment,
    index: usize,
    cx: &'p Poll<'_>,
) -> Result<Verdict<'p, Wide>> {
    let buff = receive(ring, index, cx)?;

    run(&mut ring.poll(cx)?, program, buff, cx)
}

/// As [`transmit`], of frames that have to be sent.
pub(super) fn transmit_all(
    ring: &mut XdpRing<Wide>,
    program: &Attachment,
    first: usize,
    count: usize,
    cx: &Poll<'_>,
) -> Result {
    for index in first..first + count {
        let verdict = transmit(ring, program, index, cx)?;

        check(matches!(verdict, Verdict::Transmitted(60)))?;
    }
    Ok(())
}

/// Completes frames.
fn sent(ring: &mut XdpRing<Wide>, first: usize, count: usize, cx: &Poll<'_>) -> Result {
    let polling = ring.poll(cx)?;

    for index in first..first + count {
        polling.write_back_tx(index, SENT);
    }
    Ok(())
}

/// The number of pages that a pool has allocated.
pub(super) fn allocated(ring: &XdpRing<Wide>) -> u32 {
    // SAFETY: The ring is in use.
    unsafe { (*ring.pool().as_ptr()).pages_state_hold_cnt }
}

#[macros::kunit_tests(rust_net_xdp_tx)]
mod cases {
    use super::*;

    #[test]
    fn frames_leave_as_programs_have_left_them() -> Result {
        let (device, _program) = device(act)?;

        program_acts(bindings::xdp_action_XDP_TX, [-32, 10, 0]);
        device.run(|ring, _, program, cx| {
            let address = ring.write_buffer(cx, 0, 7).ok_or(ENOENT)?;
            let verdict = transmit(ring, program, 0, cx)?;

            check(matches!(verdict, Verdict::Transmitted(102)))?;
            check((ring.in_use(), ring.recycled(), ring.tx_in_use()) == (14, 0, 1))?;
            let (words, page) = ring.tx().frame(ring, cx, 0).ok_or(ENOENT)?;
            check(words == [address - 32, 102 << 32])?;
            check(page[256..].iter().all(|byte| *byte == 7))?;
            // The NIC is told once.
            check(ring.take_tx_tail() == Some(1))?;
            check(ring.take_tx_tail().is_none())
        })
    }

    #[test]
    fn short_frames_are_padded() -> Result {
        let (device, _program) = device(act)?;

        program_acts(bindings::xdp_action_XDP_TX, [0, 14 - 60, 0]);
        device.run(|ring, _, program, cx| {
            ring.write_buffer(cx, 0, 7).ok_or(ENOENT)?;
            let verdict = transmit(ring, program, 0, cx)?;

            check(matches!(verdict, Verdict::Transmitted(17)))?;
            let (words, page) = ring.tx().frame(ring, cx, 0).ok_or(ENOENT)?;
            check(words[1] == 17 << 32)?;
            check(page[256..256 + 18] == [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 7])
        })
    }

    #[test]
    fn frames_that_a_program_has_made_too_long_are_dropped() -> Result {
        let (device, _program) = device(act)?;

        device.run(|ring, _, program, cx| {
            for (index, len, is_sent) in [(0, MAX_LEN + 1, false), (1, MAX_LEN, true)] {
                let moved = 3072 - i32::from(len);

                program_acts(bindings::xdp_action_XDP_TX, [moved, 0, 0]);
                ring.write_back(cx, index, [0, done(3072)]);
                let mut polling = ring.poll(cx)?;
                let received = polling.next().and_then(|received| received.buff);
                let verdict = run(&mut polling, program, received.ok_or(ENOENT)?, cx)?;

                let sent = u32::from(MAX_LEN);
                check(matches!(verdict, Verdict::Transmitted(len) if len == sent) == is_sent)?;
            }
            check((ring.recycled(), ring.tx_in_use()) == (1, 1))
        })
    }

    #[test]
    fn pages_return_to_their_pool() -> Result {
        let (device, _program) = device(act)?;

        program_acts(bindings::xdp_action_XDP_TX, [0; 3]);
        device.run(|ring, _, program, cx| {
            let before = allocated(ring);

            for first in (0..40 * 15).step_by(15) {
                transmit_all(ring, program, first, 15, cx)?;
                check((ring.in_use(), ring.tx_in_use()) == (0, 15))?;
                check(ring.refill(cx)? == 15)?;
                sent(ring, first, 15, cx)?;
                // The next poll takes them back, with a program or without one.
                if first % 2 == 0 {
                    ring.poll(cx)?;
                } else {
                    drop(ring.poll_without(cx)?);
                }
                check(ring.tx_in_use() == 0)?;
            }
            check(allocated(ring) == before)
        })
    }

    #[test]
    fn frames_that_are_not_sent_stay() -> Result {
        let (device, _program) = device(act)?;

        program_acts(bindings::xdp_action_XDP_TX, [0; 3]);
        device.run(|ring, _, program, cx| {
            transmit_all(ring, program, 0, 4, cx)?;
            sent(ring, 0, 2, cx)?;
            // Not in its turn.
            sent(ring, 3, 1, cx)?;
            ring.poll(cx)?;
            check(ring.tx_in_use() == 2)?;
            check(ring.tx().frame(ring, cx, 1).is_none())?;
            check(ring.tx().frame(ring, cx, 2).is_some())?;
            sent(ring, 2, 1, cx)?;
            ring.poll(cx)?;
            check(ring.tx_in_use() == 0)
        })
    }

    #[test]
    fn a_full_ring_drops_the_frame() -> Result {
        let (device, _program) = device(act)?;

        program_acts(bindings::xdp_action_XDP_TX, [0; 3]);
        device.run(|ring, _, program, cx| {
            transmit_all(ring, program, 0, 15, cx)?;
            check(ring.refill(cx)? == 15)?;
            let verdict = transmit(ring, program, 15, cx)?;

            check(matches!(verdict, Verdict::Aborted))?;
            check((ring.tx_in_use(), ring.in_use(), ring.recycled()) == (15, 15, 1))?;
            // Room is found when it is needed, too.
            let buff = receive(ring, 16, cx)?;
            let mut polling = ring.poll(cx)?;
            polling.write_back_tx(0, SENT);
            let verdict = run(&mut polling, program, buff, cx)?;
            check(matches!(verdict, Verdict::Transmitted(60)))?;
            check(ring.tx_in_use() == 15)
        })
    }

    #[test]
    fn a_ring_sends_no_buffer_of_another_one() -> Result {
        let (device, _program) = device(act)?;

        program_acts(bindings::xdp_action_XDP_TX, [0; 3]);
        device.run(|ring, other, program, cx| {
            let buff = receive(other, 0, cx)?;
            let verdict = run(&mut ring.poll(cx)?, program, buff, cx)?;

            check(matches!(verdict, Verdict::Aborted))?;
            check((ring.tx_in_use(), ring.take_tx_tail()) == (0, None))
        })
    }

    #[test]
    fn pools_go_with_frames_that_are_not_sent() -> Result {
        let (device, _program) = device(act)?;

        program_acts(bindings::xdp_action_XDP_TX, [0; 3]);
        device.run(|ring, _, program, cx| transmit_all(ring, program, 0, 3, cx))?;
        device.down();
        assert!(!device.has_pools());
        assert_eq!(device.plan.unsent.load(Relaxed), 3);
        Ok(())
    }

    #[test]
    fn a_queue_with_other_memory_begins_anew() -> Result {
        let (device, _program) = device(act)?;

        program_acts(bindings::xdp_action_XDP_TX, [0; 3]);
        device.run(|ring, _, program, cx| {
            transmit_all(ring, program, 0, 3, cx)?;
            // The driver has not noticed yet.
            sent(ring, 0, 1, cx)
        })?;
        device.restart_rx(0)?;
        assert_eq!(device.plan.unsent.load(Relaxed), 2);
        device.run(|ring, _, program, cx| {
            check((ring.tx_in_use(), ring.take_tx_tail()) == (0, None))?;
            transmit_all(ring, program, 0, 1, cx)?;
            check(ring.take_tx_tail() == Some(1))
        })?;
        device.down();
        assert!(!device.has_pools());
        Ok(())
    }

    #[test]
    fn so_does_one_with_the_memory_that_it_had() -> Result {
        let (device, _program) = device(act)?;

        program_acts(bindings::xdp_action_XDP_TX, [0; 3]);
        device.run(|ring, _, program, cx| transmit_all(ring, program, 0, 3, cx))?;
        device.plan.fails_to_start.store(0, Relaxed);
        assert_eq!(device.restart_rx(0), Err(EIO));
        assert_eq!(device.plan.unsent.load(Relaxed), 3);
        device.run(|ring, _, program, cx| {
            check((ring.tx_in_use(), ring.take_tx_tail()) == (0, None))?;
            check(ring.tx().frame(ring, cx, 0).is_none())?;
            ring.refill(cx)?;
            transmit_all(ring, program, 0, 1, cx)?;
            check(ring.take_tx_tail() == Some(1))
        })
    }
}
