// SPDX-License-Identifier: GPL-2.0

//! Tests of frames in several buffers.

use super::{
    formats::{
        MAX_LEN,
        MAX_PARTS, //
    },
    nic::{
        Wide,
        DONE,
        MORE, //
    },
    program::{
        act_on_all,
        program_acts,
        PARTS,
        RESULT,
        RUNS, //
    },
    transmit::{
        allocated,
        transmit_all, //
    },
    *, //
};

use crate::net::{
    rx_list::{
        Protocol,
        RxList,
        RxOffloads, //
    },
    xdp::XdpReceived, //
};

/// The number of bytes in a full buffer.
const FULL: u16 = 3072;

/// A device with a program that can do with several buffers.
fn several(function: Function) -> Result<(XdpDevice, Program)> {
    RUNS.store(0, Relaxed);
    device_with(Program::for_fragments(function)?)
}

/// Completes descriptors, one for each length, without the end of the frame if `more` is set.
pub(super) fn complete(
    ring: &XdpRing<Wide>,
    first: usize,
    lens: &[u16],
    more: bool,
    cx: &Poll<'_>,
) {
    for (number, len) in lens.iter().enumerate() {
        let goes_on = more || number + 1 != lens.len();
        let flag = if goes_on { MORE } else { 0 };

        ring.write_back(
            cx,
            (first + number) % 16,
            [number as u64, done(*len) | flag],
        );
    }
}

/// Takes what is next.
fn next<'p>(ring: &mut XdpRing<Wide>, cx: &'p Poll<'_>) -> Result<Option<XdpReceived<'p, Wide>>> {
    Ok(ring.poll(cx)?.next())
}

/// Completes a frame, and takes it.
fn frame<'p>(
    ring: &mut XdpRing<Wide>,
    first: usize,
    lens: &[u16],
    cx: &'p Poll<'_>,
) -> Result<XdpBuff<'p, Wide>> {
    complete(ring, first, lens, false, cx);
    next(ring, cx)?.ok_or(ENODATA)?.buff.ok_or(EMSGSIZE)
}

/// As [`frame`], and has the program decide on it.
fn run_on<'p>(
    ring: &mut XdpRing<Wide>,
    program: &Attachment,
    first: usize,
    lens: &[u16],
    cx: &'p Poll<'_>,
) -> Result<Verdict<'p, Wide>> {
    let buff = frame(ring, first, lens, cx)?;

    run(&mut ring.poll(cx)?, program, buff, cx)
}

fn parts() -> [u32; 4] {
    PARTS.each_ref().map(|part| part.load(Relaxed))
}

#[macros::kunit_tests(rust_net_xdp_several)]
mod cases {
    use super::*;

    #[test]
    fn programs_see_all_of_a_frame() -> Result {
        let (device, _program) = several(act_on_all)?;

        program_acts(bindings::xdp_action_XDP_PASS, [0; 3]);
        device.run(|ring, _, program, cx| {
            let buff = frame(ring, 0, &[FULL, FULL, 100], cx)?;

            check((buff.len(), buff.head_len()) == (2 * 3072 + 100, FULL))?;
            let Verdict::Pass(buff) = run(&mut ring.poll(cx)?, program, buff, cx)? else {
                return Err(EACCES);
            };
            let flag = bindings::xdp_buff_flags_XDP_FLAGS_HAS_FRAGS;
            check(parts() == [3072, flag, 2, 3172])?;
            check((buff.len(), buff.head_len()) == (2 * 3072 + 100, FULL))?;
            // Those after it are as they were.
            let buff = receive(ring, 3, cx)?;
            pass(ring, program, buff, cx)?;
            check(parts() == [60, 0, 0, 0])
        })
    }

    #[test]
    fn frames_wait_for_their_end() -> Result {
        let (device, _program) = several(act_on_all)?;

        device.run(|ring, _, _, cx| {
            for _ in 0..2 {
                for count in 1..3 {
                    complete(ring, 0, &[FULL; 2][..count], true, cx);
                    check(next(ring, cx)?.is_none())?;
                    check((ring.in_use(), ring.missing()) == (15, 0))?;
                }
            }
            ring.write_back(cx, 2, [7, done(100)]);
            let received = next(ring, cx)?.ok_or(ENODATA)?;

            check((received.info, received.status) == (7, done(100)))?;
            check(received.buff.ok_or(EMSGSIZE)?.len() == 2 * 3072 + 100)?;
            check(next(ring, cx)?.is_none())
        })
    }

    #[test]
    fn buffers_of_dropped_frames_stay_in_the_ring() -> Result {
        let (device, _program) = several(drop_it)?;

        device.run(|ring, _, program, cx| {
            let before = allocated(ring);

            for round in 0..50 {
                let verdict = run_on(ring, program, round * 3, &[FULL, FULL, 100], cx)?;

                check(matches!(verdict, Verdict::Dropped))?;
                check((ring.in_use(), ring.recycled()) == (15, 3))?;
                check(ring.refill(cx)? == 3)?;
            }
            check(allocated(ring) == before)
        })
    }

    #[test]
    fn buffers_of_forgotten_frames_return_to_their_pool() -> Result {
        let (device, _program) = several(act_on_all)?;

        device.run(|ring, _, program, cx| {
            program_acts(bindings::xdp_action_XDP_PASS, [0; 3]);
            let before = allocated(ring);

            for round in 0..50 {
                let buff = frame(ring, round * 6, &[FULL, FULL, 100], cx)?;
                drop(buff);
                let verdict = run_on(ring, program, round * 6 + 3, &[FULL, FULL, 100], cx)?;
                drop(verdict);
                check(ring.refill(cx)? == 6)?;
            }
            check(allocated(ring) == before)
        })
    }

    #[test]
    fn programs_may_free_buffers() -> Result {
        let (device, _program) = several(act_on_all)?;

        device.run(|ring, _, program, cx| {
            let before = allocated(ring);
            let cut = |by| program_acts(bindings::xdp_action_XDP_DROP, [0, by, 0]);

            // Part of the last one; that, and part of another one; all but the first; a part of
            // that, too.
            for (round, (by, left)) in [(-50, 3), (-150, 2), (-3172, 1), (-4000, 1)]
                .into_iter()
                .cycle()
                .take(60)
                .enumerate()
            {
                cut(by);
                let verdict = run_on(ring, program, round * 3, &[FULL, FULL, 100], cx)?;

                check(matches!(verdict, Verdict::Dropped))?;
                check(ring.recycled() == left)?;
                check(RESULT.load(Relaxed) == 0)?;
                check(ring.refill(cx)? == 3)?;
            }
            check(allocated(ring) == before)
        })
    }

    #[test]
    fn frames_pass_as_programs_have_left_them() -> Result {
        let (device, _program) = several(act_on_all)?;

        device.run(|ring, _, program, cx| {
            let pass = |moves| program_acts(bindings::xdp_action_XDP_PASS, moves);

            for (round, (moves, len)) in [
                ([0, 0, 0], [3072, 3172, 2]),
                ([-32, 700, -8], [3104, 3872, 2]),
                ([64, -150, 0], [3008, 3022, 1]),
                ([0, -3200, -4], [3044, 0, 0]),
            ]
            .into_iter()
            .enumerate()
            {
                pass(moves);
                let Verdict::Pass(buff) = run_on(ring, program, round * 3, &[FULL, FULL, 100], cx)?
                else {
                    return Err(EACCES);
                };
                check(RESULT.load(Relaxed) == 0)?;
                check(buff.len() == len[0] + len[1])?;
                let skb = buff.into_skb().ok_or(ENOMEM)?;
                check(skb.len() == len[0] + len[1])?;
                check(skb.head_len() == len[0])?;
                check(skb.nr_frags() == len[2] as usize)?;
                // SAFETY: The SKB is ours.
                let metadata = unsafe { (*skb.shared_info()).meta_len };
                check(i32::from(metadata) == -moves[2])?;
                ring.refill(cx)?;
            }
            Ok(())
        })
    }

    #[test]
    fn the_last_buffer_grows_to_the_end_of_its_page() -> Result {
        let (device, _program) = several(act_on_all)?;

        device.run(|ring, _, program, cx| {
            let room = bindings::PAGE_SIZE as i32 - 256 - 100;

            for (index, (by, is_there)) in [(room, true), (room + 1, false)].into_iter().enumerate()
            {
                program_acts(bindings::xdp_action_XDP_PASS, [0, by, 0]);
                let Verdict::Pass(buff) = run_on(ring, program, index * 2, &[FULL, 100], cx)?
                else {
                    return Err(EACCES);
                };
                check((RESULT.load(Relaxed) == 0) == is_there)?;
                let more = if is_there { room as u32 } else { 0 };
                check(buff.len() == 3172 + more)?;
            }
            Ok(())
        })
    }

    #[test]
    fn buffers_of_packets_return_to_their_pool() -> Result {
        let (device, _program) = several(act_on_all)?;

        program_acts(bindings::xdp_action_XDP_PASS, [0; 3]);
        device.run(|ring, _, program, cx| {
            let before = allocated(ring);

            for round in 0..50 {
                let Verdict::Pass(buff) = run_on(ring, program, round * 3, &[FULL, FULL, 100], cx)?
                else {
                    return Err(EACCES);
                };
                let mut list = RxList::new(cx);
                list.push_xdp(buff, Protocol::Other, false, RxOffloads::default());
                drop(list);
                check(ring.refill(cx)? == 3)?;
            }
            // GRO may have some of them.
            check(allocated(ring) - before < 100)
        })
    }

    #[test]
    fn a_frame_with_a_bad_part_is_lost() -> Result {
        let (device, _program) = several(act_on_all)?;

        device.run(|ring, _, _, cx| {
            let before = allocated(ring);

            for round in 0..60 {
                let lens = [[FULL, 0, 100], [FULL, FULL + 1, 100], [FULL, FULL, 0]][round % 3];
                complete(ring, round * 3, &lens, false, cx);
                let received = next(ring, cx)?.ok_or(ENODATA)?;

                // It is at its end.
                check(received.buff.is_none() && received.status & MORE == 0)?;
                check(ring.in_use() == 12)?;
                check(ring.refill(cx)? == 3)?;
            }
            check(allocated(ring) == before)
        })
    }

    #[test]
    fn a_frame_whose_first_part_is_bad_goes_on() -> Result {
        let (device, _program) = several(act_on_all)?;

        device.run(|ring, _, _, cx| {
            complete(ring, 0, &[0, FULL, 100], false, cx);
            let received = next(ring, cx)?.ok_or(ENODATA)?;
            check(received.buff.is_none() && received.status & MORE != 0)?;
            // Drivers drop this.
            let received = next(ring, cx)?.ok_or(ENODATA)?;
            check(received.buff.is_some() && received.status & MORE == 0)
        })
    }

    #[test]
    fn frames_without_end_are_lost() -> Result {
        let (device, _program) = several(act_on_all)?;

        device.run(|ring, _, _, cx| {
            let before = allocated(ring);

            complete(ring, 0, &[FULL; 15], true, cx);
            for index in 15..100 {
                let received = next(ring, cx)?.ok_or(ENODATA)?;

                check(received.buff.is_none() && received.status & MORE != 0)?;
                check(next(ring, cx)?.is_none())?;
                check((ring.in_use(), ring.refill(cx)?) == (14, 1))?;
                complete(ring, index, &[FULL], true, cx);
            }
            check(allocated(ring) == before)
        })
    }

    #[test]
    fn others_do_not_see_them() -> Result {
        let (device, _program) = device(act_on_all)?;

        program_acts(bindings::xdp_action_XDP_PASS, [0; 3]);
        RUNS.store(0, Relaxed);
        device.run(|ring, _, program, cx| {
            let verdict = run_on(ring, program, 0, &[FULL, FULL, 100], cx)?;

            check(matches!(verdict, Verdict::Aborted))?;
            check((ring.in_use(), ring.recycled()) == (15, 3))?;
            check(RUNS.load(Relaxed) == 0)
        })
    }

    #[test]
    fn frames_leave_in_several_buffers() -> Result {
        let (device, _program) = several(act_on_all)?;

        program_acts(bindings::xdp_action_XDP_TX, [16, 0, 0]);
        device.run(|ring, _, program, cx| {
            let mut addresses = [0; 3];
            for (index, address) in addresses.iter_mut().enumerate() {
                *address = ring.write_buffer(cx, index, 7).ok_or(ENOENT)?;
            }
            let verdict = run_on(ring, program, 0, &[1000, 2000, 100], cx)?;

            check(matches!(verdict, Verdict::Transmitted(3084)))?;
            check((ring.in_use(), ring.recycled(), ring.tx_in_use()) == (12, 0, 3))?;
            check(ring.take_tx_tail() == Some(3))?;
            for (index, (len, flag)) in [(984, MORE), (2000, MORE), (100, 0)]
                .into_iter()
                .enumerate()
            {
                let (words, _) = ring.tx().frame(ring, cx, index).ok_or(ENOENT)?;
                let skipped = if index == 0 { 16 } else { 0 };

                check(words[0] == addresses[index] + skipped)?;
                check(words[1] == len << 32 | (3084 - len) << 16 | flag)?;
            }
            Ok(())
        })
    }

    #[test]
    fn their_pages_return_with_the_last() -> Result {
        let (device, _program) = several(act_on_all)?;

        program_acts(bindings::xdp_action_XDP_TX, [0; 3]);
        device.run(|ring, _, program, cx| {
            let before = allocated(ring);

            for round in 0..40 {
                let first = round * 6;
                for number in 0..2 {
                    let first = first + number * 3;
                    let verdict = run_on(ring, program, first, &[1000, 2000, 100], cx)?;
                    check(matches!(verdict, Verdict::Transmitted(3100)))?;
                }
                check(ring.refill(cx)? == 6)?;
                // The NIC has sent the second frame, but not the first, then both.
                ring.poll(cx)?.write_back_tx((first + 5) % 16, DONE);
                ring.poll(cx)?;
                check(ring.tx_in_use() == 6)?;
                ring.poll(cx)?.write_back_tx((first + 2) % 16, DONE);
                ring.poll(cx)?;
                check(ring.tx_in_use() == 0)?;
            }
            check(allocated(ring) == before)
        })
    }

    #[test]
    fn all_that_was_sent_returns() -> Result {
        let (device, _program) = several(act_on_all)?;

        program_acts(bindings::xdp_action_XDP_TX, [0; 3]);
        device.run(|ring, _, program, cx| {
            for round in 0..5 {
                run_on(ring, program, round * 3, &[1000, 2000, 100], cx).map(drop)?;
            }
            check(ring.tx_in_use() == 15)?;
            for round in 0..5 {
                ring.poll(cx)?.write_back_tx(round * 3 + 2, DONE);
            }
            ring.poll(cx)?;
            check(ring.tx_in_use() == 0)
        })
    }

    #[test]
    fn frames_that_the_nic_cannot_send_are_dropped() -> Result {
        let (device, _program) = several(act_on_all)?;

        program_acts(bindings::xdp_action_XDP_TX, [0; 3]);
        device.run(|ring, _, program, cx| {
            let mut first = 0;
            // In too many buffers; too long; just right; too short.
            let frames: [(&[u16], _); 5] = [
                (&[20; MAX_PARTS + 1], false),
                (&[1600, 1500, MAX_LEN - 3099], false),
                (&[1600, 1500, MAX_LEN - 3100], true),
                (&[14, 1, 1], false),
                (&[14, 1, 2], true),
            ];

            for (lens, is_sent) in frames {
                let verdict = run_on(ring, program, first, lens, cx)?;

                check(matches!(verdict, Verdict::Transmitted(_)) == is_sent)?;
                check(ring.recycled() == if is_sent { 0 } else { lens.len() })?;
                check(ring.refill(cx)? == lens.len())?;
                first += lens.len();
            }
            check(ring.tx_in_use() == 6)?;
            Ok(())
        })
    }

    #[test]
    fn a_ring_takes_all_of_a_frame_or_nothing() -> Result {
        let (device, _program) = several(act_on_all)?;

        program_acts(bindings::xdp_action_XDP_TX, [0; 3]);
        device.run(|ring, _, program, cx| {
            transmit_all(ring, program, 0, 13, cx)?;
            check((ring.refill(cx)?, ring.tx_in_use()) == (13, 13))?;
            let verdict = run_on(ring, program, 13, &[1000, 1000, 100], cx)?;
            check(matches!(verdict, Verdict::Aborted))?;
            check((ring.in_use(), ring.recycled(), ring.tx_in_use()) == (15, 3, 13))?;
            let verdict = run_on(ring, program, 16, &[FULL, 100], cx)?;
            check(matches!(verdict, Verdict::Transmitted(3172)))?;
            check(ring.tx_in_use() == 15)
        })
    }

    #[test]
    fn redirected_frames_take_all_buffers_along() -> Result {
        let _target = Target::new()?;
        let (device, _program) = several(redirect)?;

        device.run(|ring, _, program, cx| {
            for index in 0..4 {
                let verdict = run_on(ring, program, index * 3, &[FULL, FULL, 100], cx)?;

                check(matches!(verdict, Verdict::Redirected))?;
            }
            check((ring.in_use(), ring.recycled()) == (3, 0))?;
            Ok(())
        })?;
        assert_eq!(TAKEN.load(Relaxed), 4);
        device.run(|ring, _, program, cx| {
            let before = allocated(ring);

            check(ring.refill(cx)? == 12)?;
            check(allocated(ring) == before)?;
            // No such device.
            TARGET.store(i32::MAX as u32, Relaxed);
            let verdict = run_on(ring, program, 12, &[FULL, FULL, 100], cx)?;
            check(matches!(verdict, Verdict::Aborted))?;
            check((ring.in_use(), ring.recycled()) == (15, 3))
        })?;
        device.down();
        assert!(!device.has_pools());
        Ok(())
    }
}
