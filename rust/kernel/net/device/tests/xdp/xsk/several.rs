// SPDX-License-Identifier: GPL-2.0

//! Tests of frames in several buffers of a user.

use super::{
    super::{
        formats::MAX_PARTS,
        nic::MORE,
        program::{
            act_on_all,
            PARTS,
            RESULT,
            RUNS, //
        }, //
    },
    *, //
};

use crate::net::xdp::xsk::{
    XskCopy,
    XskOther,
    XskRoom, //
};

/// The number of bytes in a full buffer.
const FULL: u16 = 1408;

/// As [`bound`], of a user that takes frames in several buffers, of which it has given some.
fn several(function: Function, chunks: usize) -> Result<(XdpDevice, Program, User)> {
    RUNS.store(0, Relaxed);
    several_with(Program::for_fragments(function)?, chunks)
}

fn several_with(program: Program, chunks: usize) -> Result<(XdpDevice, Program, User)> {
    let (device, program) = device_with(program)?;
    let user = User::with_parts(device.dev(), false)?;

    user.fill(0..chunks);
    user.bind()?;
    device.run_xsk(|ring, _, cx| ring.refill(cx).map(drop))?;
    Ok((device, program, user))
}

/// Completes descriptors, one for each length, without the end of the frame if `more` is set.
fn complete(ring: &mut XskRing<Wide>, first: usize, lens: &[u16], more: bool, cx: &Poll<'_>) {
    for (number, len) in lens.iter().enumerate() {
        let goes_on = more || number + 1 != lens.len();
        let flag = if goes_on { MORE } else { 0 };

        ring.write_back(cx, first + number, [number as u64, done(*len) | flag]);
    }
}

/// Has the program decide on what is next.
fn other(
    ring: &mut XskRing<Wide>,
    program: &Attachment,
    cx: &Poll<'_>,
) -> Result<Option<XskOther>> {
    let program = program.program(cx).and_then(xdp::Program::as_bpf);
    let mut ring = ring.poll(cx)?;

    if matches!(ring.next(), Some(XskNext::One(_))) {
        return Err(EMSGSIZE);
    }
    Ok(ring.take_other(program))
}

/// Completes a frame, and has the program decide on it.
fn run_on(
    ring: &mut XskRing<Wide>,
    program: &Attachment,
    first: usize,
    lens: &[u16],
    cx: &Poll<'_>,
) -> Result<XskVerdict<XskCopy>> {
    complete(ring, first, lens, false, cx);
    let other = other(ring, program, cx)?.ok_or(ENODATA)?;

    check(other.info == lens.len() as u64 - 1)?;
    check(other.len == lens.iter().map(|len| u32::from(*len)).sum::<u32>())?;
    other.verdict.ok_or(EPERM)
}

/// Whether nothing is left of a frame.
fn is_refused(ring: &mut XskRing<Wide>, program: &Attachment, cx: &Poll<'_>) -> Result {
    let other = other(ring, program, cx)?.ok_or(ENODATA)?;

    check(other.verdict.is_none() && other.len == 0)
}

/// # Safety
///
/// It must be run as a program of XDP, for a frame.
unsafe extern "C" fn forget(context: *const c_void, _: *const bindings::bpf_insn) -> c_uint {
    // SAFETY: It is run for a frame, which is exclusively its own.
    let buff = unsafe { &mut *context.cast_mut().cast::<bindings::xdp_buff>() };

    // The user has changed the list of C, which has found it empty.
    buff.__bindgen_anon_1.__bindgen_anon_1.flags = 0;
    bindings::xdp_action_XDP_DROP
}

#[macros::kunit_tests(rust_net_xsk_several)]
mod cases {
    use super::*;

    #[test]
    fn they_are_copied_if_they_pass() -> Result {
        let (device, _program, user) = several(act_on_all, CHUNKS)?;
        let job: XskJob = |ring, program, cx| {
            program_acts(bindings::xdp_action_XDP_PASS, [-16, -50, -8]);
            let verdict = run_on(ring, program, 0, &[FULL, FULL, 100], cx)?;
            let XskVerdict::Pass(copy) = verdict else {
                return Err(EACCES);
            };
            let skb = copy.skb().ok_or(ENOMEM)?;
            let total = 16 + 2 * u32::from(FULL) + 50;

            check((skb.len(), skb.head_len()) == (total, 16 + u32::from(FULL)))?;
            for (at, byte) in [(15, 9), (16, 0), (15 + 1408, 0), (16 + 1408, 1), (2832, 2)] {
                let mut found = [0_u8];

                // SAFETY: The SKB is valid, and there is room for that byte.
                let result = unsafe {
                    bindings::skb_copy_bits(skb.as_raw(), at, found.as_mut_ptr().cast(), 1)
                };
                check((result, found) == (0, [byte]))?;
            }
            Ok(())
        };

        for chunk in 0..3 {
            user.write(chunk * CHUNK + HEADROOM, &[chunk as u8; 1408]);
        }
        user.write(HEADROOM - 16, &[9; 16]);
        device.run_xsk(job)?;
        let seen = PARTS.each_ref().map(|part| part.load(Relaxed));
        assert_eq!((seen[0], seen[2], seen[3]), (1408, 2, 1508));
        assert_eq!((user.given_back(), RESULT.load(Relaxed)), (3, 0));
        user.unbind()
    }

    #[test]
    fn all_buffers_go_back() -> Result {
        let (device, _program, user) = several(act_on_all, CHUNKS)?;

        device.run_xsk(|ring, program, cx| {
            program_acts(bindings::xdp_action_XDP_DROP, [0; 3]);
            let verdict = run_on(ring, program, 0, &[FULL, FULL, FULL, 1], cx)?;
            check(matches!(verdict, XskVerdict::Dropped))?;
            // The program frees two.
            program_acts(77, [0, -1500, 0]);
            let verdict = run_on(ring, program, 4, &[FULL, FULL, 200], cx)?;
            check(matches!(verdict, XskVerdict::Aborted))?;
            // There is no socket.
            program_acts(bindings::xdp_action_XDP_REDIRECT, [0; 3]);
            let verdict = run_on(ring, program, 7, &[FULL, 60], cx)?;
            check(matches!(verdict, XskVerdict::Aborted))
        })?;
        assert_eq!((user.given_back(), RESULT.load(Relaxed)), (9, 0));
        assert_eq!(RUNS.load(Relaxed), 3);
        user.unbind()
    }

    #[test]
    fn all_go_back_whatever_is_known_of_them() -> Result {
        let (device, _program, user) = several(forget, CHUNKS)?;

        device.run_xsk(|ring, program, cx| {
            let verdict = run_on(ring, program, 0, &[FULL, FULL, 60], cx)?;
            check(matches!(verdict, XskVerdict::Dropped))?;
            let verdict = run_on(ring, program, 3, &[FULL, 60], cx)?;
            check(matches!(verdict, XskVerdict::Dropped))
        })?;
        assert_eq!(user.given_back(), 5);
        user.unbind()
    }

    #[test]
    fn they_are_taken_when_they_are_whole() -> Result {
        let (device, _program, user) = several(act_on_all, CHUNKS)?;

        program_acts(bindings::xdp_action_XDP_DROP, [0; 3]);
        device.run_xsk(|ring, program, cx| {
            complete(ring, 0, &[FULL, FULL], true, cx);
            check(other(ring, program, cx)?.is_none() && ring.in_use() == 16)?;
            complete(ring, 2, &[60], false, cx);
            let verdict = other(ring, program, cx)?.ok_or(ENODATA)?.verdict;
            check(matches!(verdict, Some(XskVerdict::Dropped)) && ring.in_use() == 13)?;
            // One in one buffer comes after it.
            drop(receive(ring, 3, cx)?);
            check(ring.in_use() == 12)
        })?;
        assert_eq!(user.given_back(), 4);
        user.unbind()
    }

    /// A frame may need more memory than there is: the kernel looks for it.
    #[test]
    fn a_frame_that_waits_is_no_memory() -> Result {
        let (device, _program, user) = several(act_on_all, 2)?;

        program_acts(bindings::xdp_action_XDP_DROP, [0; 3]);
        device.run_xsk(|ring, program, cx| {
            check(!ring.refill(cx)?.has_to_poll)?;
            complete(ring, 0, &[FULL], true, cx);
            check(other(ring, program, cx)?.is_none() && !ring.refill(cx)?.has_to_poll)?;
            complete(ring, 1, &[FULL], true, cx);
            check(other(ring, program, cx)?.is_none() && ring.refill(cx)?.has_to_poll)
        })?;
        user.fill(2..3);
        device.run_xsk(|ring, program, cx| {
            let refilled = ring.refill(cx)?;
            check((refilled.added, refilled.has_to_poll) == (1, false))?;
            complete(ring, 2, &[60], false, cx);
            check(other(ring, program, cx)?.is_some_and(|other| other.verdict.is_some()))
        })?;
        assert_eq!(user.given_back(), 3);
        user.unbind()
    }

    #[test]
    fn some_programs_do_not_see_them() -> Result {
        RUNS.store(0, Relaxed);
        let (device, _program, user) = several_with(Program::new(act_on_all)?, CHUNKS)?;

        device.run_xsk(|ring, program, cx| {
            complete(ring, 0, &[FULL, 60], false, cx);
            // The ring is not for them.
            is_refused(ring, program, cx)
        })?;
        assert_eq!((user.given_back(), RUNS.load(Relaxed)), (2, 0));
        let other = Program::for_fragments(act_on_all)?;
        device.attach(Some(&other)).0?;
        device.restart_rx(0)?;
        device.run_xsk(|ring, _, cx| ring.refill(cx).map(drop))?;
        program_acts(bindings::xdp_action_XDP_PASS, [0; 3]);
        device.run_xsk(|ring, program, cx| {
            let verdict = run_on(ring, program, 0, &[FULL, 60], cx)?;
            check(matches!(verdict, XskVerdict::Pass(_)))
        })?;
        assert_eq!(RUNS.load(Relaxed), 1);
        user.unbind()
    }

    #[test]
    fn lengths_are_not_trusted() -> Result {
        let (device, _program, user) = several(act_on_all, CHUNKS)?;

        device.run_xsk(|ring, program, cx| {
            let mut first = 0;

            // There is no room behind the first one for the list, and no header in it.
            for lens in [
                [FULL + 1, 60],
                [0, 60],
                [13, 60],
                [FULL, 0],
                [FULL, FULL + 1],
                [FULL, u16::MAX],
            ] {
                complete(ring, first, &lens, false, cx);
                is_refused(ring, program, cx)?;
                first += lens.len();
            }
            check(ring.in_use() == 4)
        })?;
        assert_eq!((user.given_back(), RUNS.load(Relaxed)), (12, 0));
        user.unbind()
    }

    #[test]
    fn the_rest_of_one_that_is_too_long_is_dropped() -> Result {
        let (device, _program, user) = several(act_on_all, CHUNKS)?;

        program_acts(bindings::xdp_action_XDP_DROP, [0; 3]);
        device.run_xsk(|ring, program, cx| {
            // There is room in the ring for more of them than a frame can have.
            complete(ring, 0, &[60; 16], true, cx);
            check(other(ring, program, cx)?.is_none())
        })?;
        user.fill(CHUNKS..2 * CHUNKS - 1);
        device.run_xsk(|ring, program, cx| {
            check(ring.refill(cx)?.added == 15)?;
            complete(ring, 16, &[60; 4], true, cx);
            is_refused(ring, program, cx)?;
            check(ring.in_use() == 31 - XskRoom::PARTS as usize)?;
            complete(ring, 20, &[60; 2], false, cx);
            is_refused(ring, program, cx)?;
            check(ring.in_use() == 31 - 22)?;
            // The next one is whole.
            drop(receive(ring, 22, cx)?);
            Ok(())
        })?;
        assert_eq!((user.given_back(), RUNS.load(Relaxed)), (23, 0));
        user.unbind()
    }

    #[test]
    fn memory_that_is_given_twice_is_not_a_frame() -> Result {
        let (device, _program) = device_with(Program::for_fragments(act_on_all)?)?;
        let user = User::with_parts(device.dev(), false)?;

        RUNS.store(0, Relaxed);
        for chunk in [0, 0, 1, 2, 2, 1, 1, 3, 4, 5] {
            user.fill(chunk..chunk + 1);
        }
        user.bind()?;
        device.run_xsk(|ring, program, cx| {
            ring.refill(cx)?;
            program_acts(bindings::xdp_action_XDP_DROP, [0; 3]);
            // The first one goes on in itself; the second one comes twice; the third one was given
            // back before.
            for (first, count) in [(0, 2), (2, 3), (5, 2)] {
                complete(ring, first, &[60, 60, 60][..count], false, cx);
                is_refused(ring, program, cx)?;
            }
            let verdict = run_on(ring, program, 7, &[60, 60, 60], cx)?;
            check(matches!(verdict, XskVerdict::Dropped))
        })?;
        assert_eq!((user.given_back(), RUNS.load(Relaxed)), (6, 1));
        user.unbind()
    }

    #[test]
    fn they_leave_as_programs_have_left_them() -> Result {
        let (device, _program, user) = several(act_on_all, CHUNKS)?;

        device.run_xsk(|ring, program, cx| {
            program_acts(bindings::xdp_action_XDP_TX, [-32, -20, 0]);
            let verdict = run_on(ring, program, 0, &[FULL, FULL, 100], cx)?;
            let total = 32 + 2 * u32::from(FULL) + 80;
            check(matches!(verdict, XskVerdict::Transmitted(len) if len == total))?;
            // One buffer is left.
            program_acts(bindings::xdp_action_XDP_TX, [0, -1400, 0]);
            let verdict = run_on(ring, program, 3, &[FULL, 60], cx)?;
            check(matches!(verdict, XskVerdict::Transmitted(68)))?;
            check((ring.take_tx_tail(), ring.tx_in_use()) == (Some(4), 4))?;

            let base = ring.words(cx, 5)[0] - 5 * CHUNK as u64;
            for (index, (at, len, more)) in [
                (0_u64.wrapping_sub(32), FULL + 32, MORE),
                (CHUNK as u64, FULL, MORE),
                (2 * CHUNK as u64, 80, 0),
                (3 * CHUNK as u64, 68, 0),
            ]
            .into_iter()
            .enumerate()
            {
                let [address, word] = ring.tx_words(cx, index);

                check(address == base.wrapping_add(at))?;
                check(word >> 32 == len.into() && word & 0xffff == more)?;
            }
            // All of it, or nothing.
            ring.write_back_tx(cx, 0, DONE);
            ring.write_back_tx(cx, 3, DONE);
            ring.poll(cx).map(drop)?;
            check(ring.tx_in_use() == 4)?;
            ring.write_back_tx(cx, 2, DONE);
            ring.poll(cx).map(drop)?;
            check(ring.tx_in_use() == 0)
        })?;
        // One was freed by the program.
        assert_eq!((user.given_back(), RESULT.load(Relaxed)), (5, 0));
        // All that the card has.
        device.run_xsk(|ring, program, cx| {
            program_acts(bindings::xdp_action_XDP_TX, [0; 3]);
            run_on(ring, program, 5, &[FULL, FULL, 100], cx).map(drop)
        })?;
        user.unbind()?;
        assert_eq!(user.given_back(), 16);
        Ok(())
    }

    #[test]
    fn no_longer_ones_leave_than_the_nic_sends() -> Result {
        let (device, _program, user) = several(act_on_all, CHUNKS)?;

        device.run_xsk(|ring, program, cx| {
            program_acts(bindings::xdp_action_XDP_TX, [0; 3]);
            let verdict = run_on(ring, program, 0, &[FULL; 3], cx)?;

            check(matches!(verdict, XskVerdict::Aborted) && ring.tx_in_use() == 0)?;
            let verdict = run_on(ring, program, 3, &[60; MAX_PARTS + 1], cx)?;
            check(matches!(verdict, XskVerdict::Aborted) && ring.tx_in_use() == 0)?;
            // All of them are there again.
            check(ring.refill(cx)?.added == 16)?;
            let verdict = run_on(ring, program, 16, &[60; MAX_PARTS], cx)?;
            check(matches!(verdict, XskVerdict::Transmitted(720)))?;
            check(ring.tx_in_use() == MAX_PARTS)
        })?;
        user.unbind()
    }

    #[test]
    fn users_send_them() -> Result {
        let (device, _program, user) = several(act_on_all, CHUNKS)?;
        let first = (CHUNKS * CHUNK) as u64;
        let more = bindings::XDP_PKT_CONTD;

        for (number, (len, options)) in [
            (60, 0),
            (1000, more),
            (1, more),
            (24, 0),
            (70, 0),
            // Too short, and too long.
            (8, more),
            (8, 0),
            (2048, more),
            (2048, more),
            (2048, more),
            (2048, more),
            (1000, 0),
            (80, 0),
        ]
        .into_iter()
        .enumerate()
        {
            user.send_with(first + (number % 8 * CHUNK) as u64, len, options);
        }
        device.run_xsk(|ring, _, cx| {
            let sent = XskSent {
                frames: 4,
                bytes: 60 + 1025 + 70 + 80,
                refused: 2,
                has_more: false,
            };

            check(ring.transmit(cx, 64)? == sent)?;
            check((ring.tx_in_use(), ring.take_tx_tail()) == (6, Some(6)))?;
            let base = ring.tx_words(cx, 0)[0];
            for (index, (at, word)) in [
                (0, 60 << 32),
                (1, 1000 << 32 | 25 << 16 | MORE),
                (2, 1 << 32 | 1024 << 16 | MORE),
                (3, 24 << 32 | 1001 << 16),
                (4, 70 << 32),
                (12 % 8, 80 << 32),
            ]
            .into_iter()
            .enumerate()
            {
                let expected = [base + at * CHUNK as u64, word];
                check(ring.tx_words(cx, index) == expected)?;
            }
            ring.write_back_tx(cx, 0, DONE);
            ring.write_back_tx(cx, 1, DONE);
            ring.poll(cx).map(drop)?;
            check(ring.tx_in_use() == 5)?;
            ring.write_back_tx(cx, 3, DONE);
            ring.write_back_tx(cx, 4, DONE);
            ring.poll(cx).map(drop)?;
            check(ring.tx_in_use() == 1)
        })?;
        // Those that were refused go with the ones before them.
        for number in 0..12 {
            assert_eq!(user.sent(), Some(first + number % 8 * CHUNK as u64));
        }
        assert_eq!(user.sent(), None);
        user.unbind()?;
        assert_eq!(user.sent(), Some(first + 12 % 8 * CHUNK as u64));
        Ok(())
    }

    #[test]
    fn they_are_not_cut() -> Result {
        let (device, _program, user) = several(act_on_all, CHUNKS)?;
        let first = (CHUNKS * CHUNK) as u64;
        let more = bindings::XDP_PKT_CONTD;

        // The end is missing.
        for number in 0..3 {
            user.send_with(first + number, 60, more);
        }
        device.run_xsk(|ring, _, cx| check(ring.transmit(cx, 64)? == XskSent::default()))?;
        user.send_with(first + 3, 60, 0);
        device.run_xsk(|ring, _, cx| {
            check(ring.transmit(cx, 64)?.bytes == 240)?;
            check(ring.tx_in_use() == 4)
        })?;
        user.send(first, 60);
        device.run_xsk(|ring, program, cx| {
            program_acts(bindings::xdp_action_XDP_TX, [0; 3]);
            for index in 0..16 {
                drop(run(ring, program, index, cx)?);
            }
            // There has to be room for the longest one, since C gives no part of a frame.
            check(ring.tx_in_use() == 20 && ring.transmit(cx, 64)? == XskSent::default())?;
            ring.write_back_tx(cx, 3, DONE);
            ring.poll(cx).map(drop)?;
            check(ring.tx_in_use() == 16 && ring.transmit(cx, 1)?.frames == 1)
        })?;
        user.unbind()
    }
}
