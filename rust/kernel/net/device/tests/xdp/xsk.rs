// SPDX-License-Identifier: GPL-2.0

//! Tests of memory of users, see [`xsk`](crate::net::xdp::xsk).

mod binding;
mod limits;
mod metadata;
mod several;
mod user;

use self::user::{
    User,
    CHUNK,
    CHUNKS, //
};

use super::{
    formats::UNREPORTED,
    nic::{
        XskJob,
        DONE, //
    },
    *, //
};

use crate::net::{
    rx_list::{
        LostFrames,
        Protocol,
        RxList,
        RxOffloads, //
    },
    xdp::{
        self,
        xsk::{
            XskFrame,
            XskNext,
            XskReceived,
            XskRefilled,
            XskRing,
            XskSent,
            XskVerdict, //
        }, //
    }, //
};

use core::ptr::NonNull;

/// Where a NIC writes in a chunk.
const HEADROOM: usize = 256;

/// A device that is up, whose first queue has memory of a user, and which has a program. The first
/// poll was there.
fn bound(function: Function, wakes: bool) -> Result<(XdpDevice, Program, User)> {
    let (device, program) = device(function)?;
    let user = User::new(device.dev(), 0, wakes)?;

    user.fill(0..CHUNKS);
    user.bind()?;
    device.run_xsk(|ring, _, cx| ring.refill(cx).map(drop))?;
    Ok((device, program, user))
}

/// The page that is allocated next on this CPU.
fn next_page() -> Result<NonNull<bindings::page>> {
    // SAFETY: There are no requirements.
    let page = unsafe { bindings::alloc_pages(GFP_ATOMIC.as_raw(), 0) };
    let page = NonNull::new(page).ok_or(ENOMEM)?;

    // SAFETY: It is ours.
    unsafe { bindings::__free_pages(page.as_ptr(), 0) };
    Ok(page)
}

/// Completes a descriptor, and takes its frame.
fn receive<'p>(ring: &mut XskRing<Wide>, index: usize, cx: &'p Poll<'_>) -> Result<XskFrame<'p>> {
    ring.write_back(cx, index, [0, done(60)]);
    next(ring, cx)?.ok_or(ENODATA)?.frame.ok_or(EMSGSIZE)
}

/// Takes the next descriptor, if that is a frame in one buffer.
fn next<'p>(ring: &mut XskRing<Wide>, cx: &'p Poll<'_>) -> Result<Option<XskReceived<'p>>> {
    match ring.poll(cx)?.next() {
        Some(XskNext::One(received)) => Ok(Some(received)),
        Some(XskNext::Other) => Err(EMSGSIZE),
        None => Ok(None),
    }
}

fn run<'p>(
    ring: &mut XskRing<Wide>,
    program: &Attachment,
    index: usize,
    cx: &'p Poll<'_>,
) -> Result<XskVerdict<XskFrame<'p>>> {
    let frame = receive(ring, index, cx)?;

    let program = program.program(cx).and_then(xdp::Program::as_bpf);

    Ok(ring.poll(cx)?.run(program.ok_or(ENOENT)?, frame))
}

#[macros::kunit_tests(rust_net_xsk)]
mod cases {
    use super::*;

    #[test]
    fn frames_that_pass_are_copied() -> Result {
        let (device, _program, user) = bound(act, false)?;
        let job: XskJob = |ring, program, cx| {
            for (index, moves) in [[0; 3], [-16, 5, -8]].into_iter().enumerate() {
                program_acts(bindings::xdp_action_XDP_PASS, moves);
                let XskVerdict::Pass(frame) = run(ring, program, index, cx)? else {
                    return Err(EACCES);
                };
                let len = 60 - moves[0] + moves[1];

                check(frame.len() == len as u32)?;
                let skb = frame.into_skb(cx).ok_or(ENOMEM)?;
                check(skb.len() == len as u32)?;
                let of_frame = &skb.data()[-moves[0] as usize..][..60];
                check(of_frame.iter().all(|byte| *byte == 7))?;
            }
            Ok(())
        };

        for chunk in 0..CHUNKS {
            user.write(chunk * CHUNK + HEADROOM, &[7; 60]);
        }
        device.run_xsk(job)?;
        // Programs know what the memory is.
        let memory = bindings::xdp_mem_type_MEM_TYPE_XSK_BUFF_POOL;
        assert_eq!(SEEN[4].load(Relaxed), 0);
        assert_eq!(SEEN[5].load(Relaxed), memory);
        // Both are there again.
        assert_eq!(user.given_back(), 2);
        user.unbind()
    }

    #[test]
    fn frames_go_back_to_their_pool() -> Result {
        let (device, _program, user) = bound(act, false)?;

        device.run_xsk(|ring, program, cx| {
            check((ring.in_use(), ring.missing()) == (15, 0))?;
            for (index, action) in [
                bindings::xdp_action_XDP_DROP,
                bindings::xdp_action_XDP_ABORTED,
                77,
            ]
            .into_iter()
            .enumerate()
            {
                program_acts(action, [0; 3]);
                drop(run(ring, program, index, cx)?);
            }
            drop(receive(ring, 3, cx)?);
            check(ring.in_use() == 11)
        })?;
        assert_eq!(user.given_back(), 4);
        // They are taken before those of the user.
        device.run_xsk(|ring, _, cx| {
            let refilled = ring.refill(cx)?;
            let expected = XskRefilled {
                added: 4,
                has_to_poll: false,
            };

            check(refilled == expected && ring.tail() == 3)
        })?;
        assert_eq!(user.given_back(), 0);
        user.unbind()
    }

    #[test]
    fn a_frame_that_cannot_be_redirected_goes_back_once() -> Result {
        let (device, _program, user) = bound(redirect, false)?;

        TARGET.store(i32::MAX as u32, Relaxed);
        device.run_xsk(|ring, program, cx| {
            let verdict = run(ring, program, 0, cx)?;

            check(matches!(verdict, XskVerdict::Aborted))
        })?;
        assert_eq!(user.given_back(), 1);
        // A device gets a copy, when the poll function has run.
        let _target = Target::new()?;
        device.run_xsk(|ring, program, cx| {
            let verdict = run(ring, program, 1, cx)?;

            check(matches!(verdict, XskVerdict::Redirected))?;
            check(TAKEN.load(Relaxed) == 0)
        })?;
        assert_eq!((user.given_back(), TAKEN.load(Relaxed)), (2, 1));
        user.unbind()
    }

    /// The copy of one that cannot be redirected is freed: the next page is the same one. Others
    /// take pages, too, but not each time.
    #[test]
    fn a_copy_that_cannot_be_redirected_is_freed() -> Result {
        let (device, _program, user) = bound(redirect, false)?;

        TARGET.store(i32::MAX as u32, Relaxed);
        device.run_xsk(|ring, program, cx| {
            for index in 0..15 {
                let before = next_page()?;
                let verdict = run(ring, program, index, cx)?;

                check(matches!(verdict, XskVerdict::Aborted))?;
                if next_page()? == before {
                    return Ok(());
                }
            }
            Err(ENOMEM)
        })?;
        user.unbind()
    }

    #[test]
    fn a_frame_that_cannot_be_copied_is_lost() -> Result {
        let (device, _program, user) = bound(act, false)?;

        device.run_xsk(|ring, program, cx| {
            let mut list = RxList::new(cx);

            // No SKB is as long as that.
            for (index, longer) in [0, 1 << 29].into_iter().enumerate() {
                program_acts(bindings::xdp_action_XDP_PASS, [0, longer, 0]);
                let XskVerdict::Pass(frame) = run(ring, program, index, cx)? else {
                    return Err(EACCES);
                };
                let offloads = RxOffloads::default();
                list.push_xsk(frame, None, Protocol::Other, index == 0, offloads);
            }
            let lost = LostFrames {
                frames: 1,
                bytes: 60 + (1 << 29),
                unverified: 1,
            };

            check(list.build() == lost)
        })?;
        assert_eq!(user.given_back(), 2);
        user.unbind()
    }

    #[test]
    fn lengths_are_not_trusted() -> Result {
        let (device, _program, user) = bound(act, false)?;

        device.run_xsk(|ring, _, cx| {
            for (index, len) in [0, 1793, 13].into_iter().enumerate() {
                ring.write_back(cx, index, [0, done(len)]);
                let received = next(ring, cx)?.ok_or(ENODATA)?;

                check(received.frame.is_none())?;
            }
            ring.write_back(cx, 3, [0, done(1792)]);
            let received = next(ring, cx)?.ok_or(ENODATA)?;
            check(received.frame.is_some_and(|frame| frame.len() == 1792))?;
            // An old done bit, of a descriptor without a frame.
            for index in 4..15 {
                drop(receive(ring, index, cx)?);
            }
            ring.write_back(cx, 15, [0, done(60)]);
            check(next(ring, cx)?.is_none())
        })?;
        assert_eq!(user.given_back(), 15);
        user.unbind()
    }

    #[test]
    fn users_send_in_their_order() -> Result {
        let (device, _program, user) = bound(act, false)?;
        let first = (CHUNKS * CHUNK) as u64;

        // The second and the third one are too short.
        for (number, len) in [60, 16, 1, 1500].into_iter().enumerate() {
            user.send(first + number as u64, len);
        }
        device.run_xsk(|ring, _, cx| {
            let sent = XskSent {
                frames: 2,
                bytes: 1560,
                refused: 2,
                has_more: false,
            };

            check(ring.transmit(cx, 64)? == sent)?;
            check((ring.tx_in_use(), ring.take_tx_tail()) == (2, Some(2)))?;
            check(ring.take_tx_tail().is_none())?;
            check(ring.transmit(cx, 64)? == XskSent::default())
        })?;
        assert_eq!(user.sent(), None);
        device.run_xsk(|ring, _, cx| {
            // The last one of them is reported.
            let words = [ring.tx_words(cx, 0), ring.tx_words(cx, 1)];
            check(words[0][1] == 60 << 32 | UNREPORTED && words[1][1] == 1500 << 32)?;
            ring.write_back_tx(cx, 0, DONE);
            ring.poll(cx).map(|_| ())?;
            check(ring.tx_in_use() == 2)
        })?;
        assert_eq!(user.sent(), None);
        device.run_xsk(|ring, _, cx| {
            ring.write_back_tx(cx, 1, DONE);
            ring.poll(cx).map(|_| ())?;
            check(ring.tx_in_use() == 0)
        })?;
        for number in 0..4 {
            assert_eq!(user.sent(), Some(first + number));
        }
        // Nothing is on its way: it comes back at once.
        user.send(first, 16);
        device.run_xsk(|ring, _, cx| check(ring.transmit(cx, 64)?.refused == 1))?;
        assert_eq!(user.sent(), Some(first));
        user.unbind()
    }

    #[test]
    fn those_behind_what_is_no_frame_are_sent() -> Result {
        let (device, _program, user) = bound(act, false)?;
        let (first, nowhere) = ((CHUNKS * CHUNK) as u64, u64::from(u32::MAX));

        for addr in [nowhere, first, nowhere] {
            user.send(addr, 60);
        }
        device.run_xsk(|ring, _, cx| {
            for expected in [(0, true), (1, true), (0, false)] {
                let sent = ring.transmit(cx, 64)?;

                check((sent.frames, sent.has_more) == expected)?;
            }
            ring.write_back_tx(cx, 0, DONE);
            ring.complete(cx)
        })?;
        for addr in [nowhere, first, nowhere] {
            assert_eq!(user.sent(), Some(addr));
        }
        user.unbind()
    }

    #[test]
    fn no_more_are_sent_than_there_is_room_for() -> Result {
        let (device, _program, user) = bound(act, false)?;
        let first = (CHUNKS * CHUNK) as u64;

        for number in 0..16 {
            user.send(first + number, 60);
        }
        device.run_xsk(|ring, _, cx| {
            let sent = ring.transmit(cx, 10)?;
            check((sent.frames, sent.has_more) == (10, true))?;
            let sent = ring.transmit(cx, 10)?;
            // The card tells when there is room.
            check((sent.frames, sent.has_more) == (5, false))?;
            check(ring.transmit(cx, 10)? == XskSent::default())
        })?;
        // They come back when the ring goes.
        user.unbind()?;
        for number in 0..15 {
            assert_eq!(user.sent(), Some(first + number));
        }
        assert_eq!(user.sent(), None);
        Ok(())
    }

    #[test]
    fn frames_leave_as_programs_have_left_them() -> Result {
        let (device, _program, user) = bound(act, false)?;

        device.run_xsk(|ring, program, cx| {
            program_acts(bindings::xdp_action_XDP_TX, [-32, 10, 0]);
            let verdict = run(ring, program, 0, cx)?;
            check(matches!(verdict, XskVerdict::Transmitted(102)))?;
            program_acts(bindings::xdp_action_XDP_TX, [0, 14 - 60, 0]);
            let verdict = run(ring, program, 1, cx)?;
            check(matches!(verdict, XskVerdict::Transmitted(17)))?;
            // There is no room behind it to pad it.
            program_acts(bindings::xdp_action_XDP_TX, [1792 - 14, 1792 - 60, 0]);
            let verdict = run(ring, program, 2, cx)?;
            check(matches!(verdict, XskVerdict::Aborted))?;
            check((ring.take_tx_tail(), ring.in_use()) == (Some(2), 12))?;
            let (received, sent) = (
                ring.words(cx, 3),
                [ring.tx_words(cx, 0), ring.tx_words(cx, 1)],
            );
            check(sent[0][1] == 102 << 32 && sent[1][1] == 17 << 32)?;
            // Chunks are taken in the order in which the user gives them.
            let base = received[0] - 3 * CHUNK as u64;
            check(sent[0][0] == base - 32 && sent[1][0] == base + CHUNK as u64)?;
            ring.write_back_tx(cx, 0, DONE);
            ring.poll(cx).map(|_| ())?;
            check(ring.tx_in_use() == 1)
        })?;
        assert_eq!(user.given_back(), 2);
        user.unbind()?;
        // All that the card had.
        assert_eq!(user.given_back(), 15);
        Ok(())
    }

    #[test]
    fn the_kernel_tells_that_it_waits() -> Result {
        let (device, _program, user) = bound(act, true)?;
        let first = (CHUNKS * CHUNK) as u64;
        let job: XskJob = |ring, _, cx| {
            check(!ring.refill(cx)?.has_to_poll)?;
            ring.transmit(cx, 4).map(drop)
        };

        device.run_xsk(job)?;
        assert_eq!(user.is_waited_for(), [false, true]);
        device.run_xsk(|ring, program, cx| {
            program_acts(bindings::xdp_action_XDP_TX, [0; 3]);
            for index in 0..2 {
                drop(run(ring, program, index, cx)?);
            }
            ring.refill(cx).map(drop)
        })?;
        // There was one left.
        assert_eq!(user.is_waited_for(), [true, true]);
        user.fill(0..1);
        for number in 0..6 {
            user.send(first + number, 60);
        }
        device.run_xsk(job)?;
        // Those that are there are taken by the next poll.
        assert_eq!(user.is_waited_for(), [false, false]);
        device.run_xsk(job)?;
        assert_eq!(user.is_waited_for(), [false, true]);
        user.unbind()
    }

    #[test]
    fn without_that_it_polls() -> Result {
        let (device, program) = device(act)?;
        let user = User::new(device.dev(), 0, false)?;

        user.bind()?;
        device.run_xsk(|ring, _, cx| {
            let nothing = XskRefilled {
                added: 0,
                has_to_poll: true,
            };

            check(ring.refill(cx)? == nothing)
        })?;
        assert_eq!(user.is_waited_for(), [false; 2]);
        drop(program);
        user.unbind()
    }
}
