// SPDX-License-Identifier: GPL-2.0
//! Tests of coalescing, at the ring.

use arbitrary_int::{u2, u6, u9};

use crate::card::{COUNT, Card, RX_BUFFERS, SRRCTL};
use crate::checksum::{finish, sum};
use crate::descriptor::RxInfo;
use crate::fault::Kind;
use crate::packet::be16;
use crate::port::Arrival;
use crate::regs::bits::{
    Eitr, Hlreg0, Ivar, Psrtype, Rdrxctl, Register, Rfctl, Rscctl, Rscdbu, Rxctrl, Rxdctl,
};
use crate::regs::offset;
use crate::testing::{seal, tcp_frame, udp_frame};

const HEADER: usize = 54;

/// A card whose queue 0 coalesces, into 1 KiB each of at most 16 buffers.
fn coalescing() -> Card {
    let card = Card::new();
    card.set(
        card.device
            .regs
            .get::<Rdrxctl>()
            .with_crcstrip(true)
            .with_rscackc(true),
    );
    card.set(Rscdbu::ZERO.with_rscackdis(true));
    card.set(Psrtype::ZERO.with_tcphdr(true));
    card.set(Rscctl::ZERO.with_rscen(true).with_maxdesc(u2::new(3)));
    card.receive_ring();
    card.set(SRRCTL.with_bsizeheader(u6::new(4)));
    card
}

/// Receives frames in one turn.
fn turn(card: &mut Card, frames: &[Vec<u8>]) -> Option<u64> {
    assert!(card.path.begin());
    for frame in frames {
        assert_eq!(card.path.receive(0, frame), Arrival::Taken);
    }
    card.path.end()
}

fn info(card: &Card, i: u32) -> RxInfo {
    let view = card.device.memory.view();
    let at = crate::card::RX_RING + u64::from(i) * 16;
    RxInfo::new_with_raw_value(view.load64(at).expect("in memory"))
}

fn buffer(card: &Card, i: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let view = card.device.memory.view();
    view.read(RX_BUFFERS + i * 0x800, &mut bytes)
        .expect("in memory");
    bytes
}

/// Of another connection.
fn other(seq: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = tcp_frame(seq, payload, false);
    frame[35] = 200;
    seal(&mut frame);
    frame
}

fn flagged(mut frame: Vec<u8>, flags: u8) -> Vec<u8> {
    frame[47] = flags;
    seal(&mut frame);
    frame
}

#[test]
fn segments_of_a_turn_become_one_packet() {
    let mut card = coalescing();
    let mut last = tcp_frame(300, &[3; 50], false);
    last[42..46].copy_from_slice(&[0, 0, 0, 77]);
    last[48] = 5;
    seal(&mut last);
    let first = tcp_frame(100, &[1; 100], false);
    turn(
        &mut card,
        &[first.clone(), tcp_frame(200, &[2; 100], false), last],
    );
    let length = HEADER + 250;
    let status = card.result(0).status();
    assert!(status.dd() && status.eop() && status.l4cs() && status.ipcs());
    assert_eq!(usize::from(card.result(0).pkt_len()), length);
    assert_eq!(info(&card, 0).rsccnt().value(), 4);
    assert!(info(&card, 0).ipv4() && info(&card, 0).tcp());
    let bytes = buffer(&card, 0, length);
    assert_eq!(usize::from(be16(&bytes, 16)), length - 14);
    assert_eq!(finish(sum(&bytes[14..34], 0)), 0, "a right checksum");
    assert_eq!(bytes[42..46], [0, 0, 0, 77]);
    assert_eq!(bytes[48], 5);
    assert_eq!(bytes[50..52], first[50..52], "the checksum is left alone");
    assert_eq!(bytes[HEADER..][..100], [1; 100]);
    assert_eq!(bytes[HEADER + 200..], [3; 50]);
    assert_eq!(card.device.register_read(offset::RDH), 1);
    assert_eq!(card.device.register_read(offset::GPRC), 3);
}

#[test]
fn without_a_look_at_headers_of_tcp_segments_stay_alone() {
    let mut card = coalescing();
    card.set(Psrtype::ZERO);
    turn(
        &mut card,
        &[
            tcp_frame(100, &[1; 100], false),
            tcp_frame(200, &[2; 100], false),
        ],
    );
    assert!(card.result(0).status().eop() && card.result(1).status().eop());
    assert_eq!(info(&card, 0).rsccnt().value(), 0);
}

#[test]
fn a_packet_goes_on_until_the_interrupt() {
    let mut card = coalescing();
    card.set(Ivar::from_raw(0x80));
    card.set(Eitr::ZERO.with_itr_interval(u9::new(10)));
    card.write(offset::EIMS_EX, 1);
    card.write(offset::EIAC, 1);
    card.clock.advance(1_000_000);
    let begin = 1_000_000;
    // The interrupt is due: the packet ends with the turn.
    assert_eq!(turn(&mut card, &[tcp_frame(100, &[1; 100], false)]), None);
    assert!(card.result(0).status().dd());
    // Now it keeps quiet for 20 us, and so does the packet.
    let held = Some(begin + 20_000);
    assert_eq!(turn(&mut card, &[tcp_frame(200, &[2; 100], false)]), held);
    assert_eq!(turn(&mut card, &[tcp_frame(300, &[3; 100], false)]), held);
    assert!(!card.result(1).status().dd());
    card.clock.advance(20_000);
    assert_eq!(turn(&mut card, &[]), None);
    assert_eq!(usize::from(card.result(1).pkt_len()), HEADER + 200);
}

#[test]
fn packets_of_several_connections_share_the_ring() {
    let mut card = coalescing();
    turn(
        &mut card,
        &[
            tcp_frame(0, &[1; 900], false),
            other(0, &[2; 900]),
            tcp_frame(900, &[1; 900], false),
            other(900, &[2; 900]),
            flagged(tcp_frame(1800, &[1; 10], false), 0x18),
        ],
    );
    // The first connection has descriptors 0 and 2, the second one 1 and 3.
    for (at, next) in [(0, 2), (1, 3)] {
        let status = card.result(at).status();
        assert!(status.dd() && !status.eop());
        assert_eq!(status.nextp(), next);
        assert_eq!(card.result(at).pkt_len(), 1024);
        assert_eq!(info(&card, at).rsccnt().value(), 3, "two begin here");
    }
    for (at, rest, begun) in [(2, 1810, 2), (3, 1800, 1)] {
        let status = card.result(at).status();
        assert!(status.dd() && status.eop());
        assert_eq!(usize::from(card.result(at).pkt_len()), HEADER + rest - 1024);
        assert_eq!(info(&card, at).rsccnt().value(), begun);
    }
    assert_eq!(usize::from(be16(&buffer(&card, 0, 20), 16)), 40 + 1810);
    assert_eq!(buffer(&card, 0, 48)[47], 0x18, "pushed");
    assert_eq!(usize::from(be16(&buffer(&card, 1, 20), 16)), 40 + 1800);
}

#[test]
fn a_segment_that_does_not_fit_ends_the_packet() {
    for (case, frame) in [
        ("gap", tcp_frame(201, &[2; 100], false)),
        ("again", tcp_frame(100, &[2; 100], false)),
        ("timestamp", tcp_frame(200, &[2; 100], true)),
        ("no payload", tcp_frame(200, &[], false)),
        ("FIN", flagged(tcp_frame(200, &[2; 100], false), 0x11)),
    ] {
        let mut card = coalescing();
        turn(
            &mut card,
            &[tcp_frame(100, &[1; 100], false), frame.clone()],
        );
        assert!(card.result(0).status().eop(), "{case}");
        assert_eq!(usize::from(card.result(0).pkt_len()), HEADER + 100);
        assert!(card.result(1).status().eop(), "{case}");
        assert_eq!(buffer(&card, 1, frame.len()), frame, "{case}");
    }
    // Frames of others do not.
    let mut card = coalescing();
    turn(
        &mut card,
        &[
            tcp_frame(100, &[1; 100], false),
            udp_frame(60),
            tcp_frame(200, &[1; 100], false),
        ],
    );
    assert_eq!(usize::from(card.result(0).pkt_len()), HEADER + 200);
    assert_eq!(card.result(1).pkt_len(), 60);
    assert_eq!(info(&card, 1).rsccnt().value(), 0);
}

#[test]
fn a_packet_has_no_more_descriptors_than_it_may() {
    let mut card = coalescing();
    card.set(Rscctl::ZERO.with_rscen(true).with_maxdesc(u2::new(1)));
    let frames: Vec<_> = (0..5)
        .map(|i| tcp_frame(900 * i, &[i as u8; 900], false))
        .collect();
    turn(&mut card, &frames);
    // Four KiB take four segments; the fifth one begins another packet.
    let ends = [0, 1, 2, 3, 4].map(|at| card.result(at).status().eop());
    assert_eq!(ends, [false, false, false, true, true]);
}

#[test]
fn without_descriptors_a_packet_ends() {
    let mut card = coalescing();
    let frames: Vec<_> = (0..9)
        .map(|i| tcp_frame(900 * i, &[i as u8; 900], false))
        .collect();
    turn(&mut card, &frames);
    // Seven descriptors: the ring has no more.
    assert!(card.result(COUNT - 2).status().eop());
    assert!(card.path.waiting());
}

#[test]
fn no_more_packets_begin_in_a_buffer_than_can_be_counted() {
    let mut card = coalescing();
    let frames: Vec<_> = (0..20)
        .map(|i| tcp_frame(10 * i, &[i as u8; 10], false))
        .collect();
    turn(&mut card, &frames);
    assert_eq!(info(&card, 0).rsccnt().value(), 15);
    assert_eq!(usize::from(card.result(0).pkt_len()), HEADER + 140);
    assert_eq!(usize::from(card.result(1).pkt_len()), HEADER + 60);
}

#[test]
fn nothing_is_joined_unless_all_is_set() {
    let segments = [
        tcp_frame(100, &[1; 100], false),
        tcp_frame(200, &[2; 100], false),
    ];
    let joins = |card: &mut Card| {
        turn(card, &segments);
        card.result(0).pkt_len() != card.result(1).pkt_len()
    };
    assert!(joins(&mut coalescing()));
    let mut card = coalescing();
    card.set(Rfctl::ZERO.with_rsc_dis(true));
    assert!(!joins(&mut card));
    let mut card = coalescing();
    card.set(Rscctl::ZERO);
    assert!(!joins(&mut card));
    let mut card = coalescing();
    card.set(Hlreg0::ZERO);
    assert!(!joins(&mut card), "with the frame check sequence");
}

#[test]
fn a_queue_that_is_disabled_forgets_its_packets() {
    for stop in [true, false] {
        let mut card = coalescing();
        card.set(Ivar::from_raw(0x80));
        card.set(Eitr::ZERO.with_itr_interval(u9::new(10)));
        card.write(offset::EIMS_EX, 1);
        card.clock.advance(1_000_000);
        turn(&mut card, &[udp_frame(60)]);
        turn(&mut card, &[tcp_frame(100, &[1; 100], false)]);
        assert!(!card.result(1).status().dd());
        if stop {
            card.set(Rxdctl::ZERO);
            card.set(Rxdctl::ZERO.with_enable(true));
        } else {
            card.set(Rxctrl::ZERO);
        }
        card.clock.advance(100_000);
        turn(&mut card, &[]);
        assert!(!card.result(1).status().dd());
    }
}

#[test]
fn faults_lie_about_coalesced_packets() {
    let mut card = coalescing();
    card.device.faults.arm(Kind::RxNext, 1, 77);
    card.device.faults.arm(Kind::RxCount, 1, 9);
    let frames = [
        tcp_frame(0, &[1; 900], false),
        tcp_frame(900, &[2; 900], false),
    ];
    turn(&mut card, &frames);
    assert_eq!(card.result(0).status().nextp(), 77);
    assert_eq!(info(&card, 0).rsccnt().value(), 9);
    assert!(card.result(1).status().eop());
}
