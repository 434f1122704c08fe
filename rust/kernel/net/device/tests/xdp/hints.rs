// SPDX-License-Identifier: GPL-2.0

//! Tests of hints for programs.

use super::{
    nic::XdpDevice,
    program::Function,
    *, //
};

use crate::{
    net::xdp::Hints,
    sync::atomic::Atomic, //
};

/// The answers to a program: the result, the hash and its kind; the result, the protocol and the
/// tag.
static ANSWERS: [Atomic<u32>; 6] = [const { Atomic::new(0) }; 6];

const OFFERED: Hints = Hints {
    hash: true,
    vlan_tag: true,
};
const FULL: [u64; 2] = [0x89ab_cdef, done(60) | 0x6123 << 48];

/// # Safety
///
/// It must be run as a program of XDP, for a frame of a device with hints.
unsafe extern "C" fn ask(context: *const c_void, _: *const bindings::bpf_insn) -> c_uint {
    let frame = context.cast::<bindings::xdp_md>();
    // Programs may have unaligned places for the answers.
    let mut places = [0_u32; 5];
    let first = (&raw mut places).cast::<u8>();
    let at = |offset| first.wrapping_add(offset);
    let (hash, kind) = (at(1).cast::<u32>(), at(5).cast::<u32>());
    let (protocol, tag) = (at(9).cast::<u16>(), at(11).cast::<u16>());

    // SAFETY: It is run for a frame of a device that is registered, whose functions are called with
    // that frame.
    let results = unsafe {
        let ops = &*(*(*(*context.cast::<bindings::xdp_buff>()).rxq).dev).xdp_metadata_ops;

        [
            ops.xmo_rx_hash.map_or(0, |ask| ask(frame, hash, kind)),
            ops.xmo_rx_vlan_tag
                .map_or(0, |ask| ask(frame, protocol, tag)),
        ]
    };
    // SAFETY: They are places in an array.
    let (hash, kind, protocol, tag) = unsafe {
        (
            hash.read_unaligned(),
            kind.read_unaligned(),
            protocol.read_unaligned(),
            tag.read_unaligned(),
        )
    };
    let answers = [
        results[0] as u32,
        hash,
        kind,
        results[1] as u32,
        u16::from_be(protocol).into(),
        tag.into(),
    ];

    for (place, answer) in ANSWERS.iter().zip(answers) {
        place.store(answer, Relaxed);
    }
    bindings::xdp_action_XDP_PASS
}

fn no_data() -> u32 {
    ENODATA.to_errno() as u32
}

fn answers() -> [u32; 6] {
    ANSWERS.each_ref().map(|answer| answer.load(Relaxed))
}

/// A device that is up, with a program that asks for hints.
fn asking() -> Result<(XdpDevice, super::Program)> {
    device(ask as Function)
}

/// Has a program ask for the hints of a frame whose descriptor has these words.
fn ask_for(
    ring: &mut XdpRing<Wide>,
    index: usize,
    words: [u64; 2],
    offered: Hints,
    program: &Attachment,
    cx: &Poll<'_>,
) -> Result {
    ring.write_back(cx, index, words);
    let mut polling = ring.poll(cx)?;

    polling.offer(offered);
    let (buff, words) = next(&mut polling)?;
    ask_about(&mut polling, buff, words, program, cx).map(drop)
}

/// Takes a frame, with the words of its descriptor.
fn next<'p>(polling: &mut XdpPolling<'_, 'p, Wide>) -> Result<(XdpBuff<'p, Wide>, [u64; 2])> {
    let next = polling.next().ok_or(ENODATA)?;

    Ok((next.buff.ok_or(EMSGSIZE)?, [next.info, next.status]))
}

/// Has a program ask for the hints of a frame, and let it pass.
fn ask_about<'p>(
    polling: &mut XdpPolling<'_, 'p, Wide>,
    buff: XdpBuff<'p, Wide>,
    words: [u64; 2],
    program: &Attachment,
    cx: &'p Poll<'_>,
) -> Result<XdpBuff<'p, Wide>> {
    match polling.run(program.program(cx).ok_or(ENOENT)?, buff, words) {
        Verdict::Pass(buff) => Ok(buff),
        _ => Err(EACCES),
    }
}

#[macros::kunit_tests(rust_net_xdp_hints)]
mod cases {
    use super::*;

    #[test]
    fn programs_ask_for_hints() -> Result {
        let (device, _program) = asking()?;

        device.run(|ring, _, program, cx| ask_for(ring, 0, FULL, OFFERED, program, cx))?;
        let kind = bindings::xdp_rss_hash_type_XDP_RSS_TYPE_L4_IPV6_TCP;
        assert_eq!(answers(), [0, 0x89ab_cdef, kind, 0, 0x8100, 0x6123]);
        Ok(())
    }

    #[test]
    fn a_frame_may_have_none() -> Result {
        let (device, _program) = asking()?;

        device.run(|ring, _, program, cx| {
            ask_for(ring, 0, [0, done(60)], OFFERED, program, cx)?;
            check(answers() == [no_data(), 0, 0, no_data(), 0, 0])
        })
    }

    #[test]
    fn there_are_none_that_are_not_offered() -> Result {
        let (device, _program) = asking()?;

        device.run(|ring, _, program, cx| {
            ask_for(ring, 0, FULL, Hints::default(), program, cx)?;
            check(answers() == [no_data(), 0, 0, no_data(), 0, 0])?;
            let hash = Hints {
                hash: true,
                ..Hints::default()
            };
            ask_for(ring, 1, FULL, hash, program, cx)?;
            check((answers()[0], answers()[3]) == (0, no_data()))?;
            let vlan_tag = Hints {
                vlan_tag: true,
                ..Hints::default()
            };
            ask_for(ring, 2, FULL, vlan_tag, program, cx)?;
            check((answers()[0], answers()[3]) == (no_data(), 0))
        })
    }

    #[test]
    fn hints_are_those_of_the_frame() -> Result {
        let (device, _program) = asking()?;

        device.run(|ring, _, program, cx| {
            for index in 0..3 {
                ring.write_back(cx, index, [7 + index as u64, done(60)]);
            }
            let mut polling = ring.poll(cx)?;
            polling.offer(OFFERED);
            let frames = [
                next(&mut polling)?,
                next(&mut polling)?,
                next(&mut polling)?,
            ];

            for ((buff, words), hash) in frames.into_iter().zip(7..) {
                let buff = ask_about(&mut polling, buff, words, program, cx)?;
                check(answers()[1] == hash)?;
                // Another program is told the same.
                ANSWERS[1].store(0, Relaxed);
                ask_about(&mut polling, buff, words, program, cx)?;
                check(answers()[1] == hash)?;
            }
            Ok(())
        })
    }
}
