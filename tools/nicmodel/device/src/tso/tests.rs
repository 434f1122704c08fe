// SPDX-License-Identifier: GPL-2.0
use super::*;
use crate::checksum::{pseudo, verify};
use crate::packet::{TCP, UDP, parse};
use crate::testing::{tcp_send, udp_frame};

const MASKS: FlagMasks = FlagMasks {
    first: 0xff6,
    middle: 0xf76,
    last: 0xf7f,
};

fn context(transport: Transport, l4_len: usize, mss: usize) -> Context {
    Context {
        vlan: 0,
        mac_len: 14,
        ip_len: 20,
        l4_len,
        mss,
        ipv4: true,
        transport,
    }
}

#[test]
fn udp_checksum_from_a_seeded_field() {
    let good = udp_frame(101);
    let mut frame = good.clone();
    let parsed = parse(&frame);
    let seed = pseudo(&frame, &parsed, UDP) + (frame.len() - parsed.l4) as u32;
    put_be16(&mut frame, parsed.l4 + 6, !finish(seed));
    put_be16(&mut frame, parsed.l3 + 10, 0);
    checksums(&mut frame, &context(Transport::Udp, 8, 0), true, true).expect("fits");
    assert_eq!(frame, good);
}

#[test]
fn segments_carry_everything_once_and_are_well_formed() {
    let payload: Vec<u8> = (0..3001_u32).map(|i| i as u8).collect();
    let send = tcp_send(&payload);
    let (mut joined, mut flags, mut sequences) = (Vec::new(), Vec::new(), Vec::new());
    segment(
        &send,
        &context(Transport::Tcp, 20, 1000),
        MASKS,
        &mut Vec::new(),
        |frame| {
            let parsed = parse(frame);
            assert_eq!(parsed.protocol, Some(TCP));
            let verdict = verify(frame, &parsed);
            assert!(verdict.l4_checked && !verdict.l4_bad && !verdict.ip_bad);
            joined.extend_from_slice(&frame[54..]);
            flags.push(frame[47]);
            sequences.push(be16(frame, 40));
        },
    )
    .expect("fits");
    assert_eq!(joined, payload);
    // PSH and FIN only at the end, CWR only at the start.
    assert_eq!(flags, [0x90, 0x10, 0x10, 0x19]);
    assert_eq!(sequences, [0, 1000, 2000, 3000]);
}

#[test]
fn a_tunnel_has_an_outer_header_of_its_own() {
    let payload = [7_u8; 2500];
    let inner = tcp_send(&payload);
    // VXLAN: all between the outer header and the inner TCP is the same in each segment.
    let mut send = inner[..34].to_vec();
    send[23] = UDP;
    send.extend_from_slice(&[0x30, 1, 0x12, 0xb5, 4, 30, 0, 0, 8, 0, 0, 0, 0, 0, 7, 0]);
    send.extend_from_slice(&inner);
    let l4 = 34 + 16 + 34;
    let cancels = finish(sum(&send[34..l4], 0));
    put_be16(&mut send, 24, cancels);
    let mut context = context(Transport::Tcp, 20, 1000);
    context.ip_len = l4 - 14;
    let mut lengths = Vec::new();
    segment(&send, &context, MASKS, &mut Vec::new(), |frame| {
        assert_eq!(finish(sum(&frame[14..34], 0)), 0, "the outer checksum");
        assert_eq!(frame[34..l4 - 20], send[34..l4 - 20]);
        lengths.push((frame.len(), usize::from(be16(frame, 16)), be16(frame, 18)));
    })
    .expect("fits");
    let id = be16(&send, 18);
    let long = l4 + 20 + 1000;
    let short = l4 + 20 + 500;
    assert_eq!(
        lengths,
        [
            (long, long - 14, id),
            (long, long - 14, id + 1),
            (short, short - 14, id + 2)
        ]
    );
}

#[test]
fn nonsense_is_refused() {
    let send = tcp_send(&[0; 100]);
    let run = |context: Context| segment(&send, &context, MASKS, &mut Vec::new(), |_| {});
    assert_eq!(run(context(Transport::Tcp, 20, MIN_MSS - 1)), Err(Nonsense));
    assert_eq!(run(context(Transport::Tcp, 20, MIN_MSS)), Ok(()));
    assert_eq!(run(context(Transport::Sctp, 20, 100)), Err(Nonsense));
    assert_eq!(run(context(Transport::Tcp, 200, 100)), Err(Nonsense));
    assert_eq!(
        run(Context {
            ip_len: 0,
            ..context(Transport::Tcp, 20, 9)
        }),
        Err(Nonsense)
    );
    let mut short = [0_u8; 20];
    assert_eq!(
        checksums(&mut short, &context(Transport::Tcp, 20, 0), false, true),
        Err(Nonsense)
    );
}
