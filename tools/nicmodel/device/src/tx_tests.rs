// SPDX-License-Identifier: GPL-2.0
//! Tests of the transmit rings.

use arbitrary_int::{u7, u9, u18, u30};

use crate::card::{COUNT, Card, TX_DATA, part, whole};
use crate::checksum::{finish, pseudo, verify};
use crate::descriptor::{SIZE, Transport, TxContextHigh, TxContextLow, TxData, TxLegacy, TxType};
use crate::packet::{UDP, parse, put_be16};
use crate::port::{Arrival, Loss, MAX_SEND, NOTICE};
use crate::regs::bits::{Ctrl, Dmatxctl, Tdwbal};
use crate::regs::offset;
use crate::testing::{MEMORY, map_page, tcp_send, udp_frame};

/// Context 0 for IPv4 in an untagged frame, in descriptor 0.
fn context(card: &Card, vlan: u16, l4t: Transport, l4len: u8, mss: u16) {
    let low = TxContextLow::ZERO
        .with_vlan(vlan)
        .with_maclen(u7::new(14))
        .with_iplen(u9::new(20));
    let high = TxContextHigh::ZERO
        .with_dext(true)
        .with_dtyp(TxType::Context)
        .with_ipv4(true)
        .with_l4t(l4t)
        .with_l4len(l4len)
        .with_mss(mss);
    card.quadwords(0, low.raw_value(), high.raw_value());
}

#[test]
fn a_packet_of_several_buffers_leaves_as_one_frame() {
    let mut card = Card::new();
    card.transmit_ring();
    let frame = udp_frame(200);
    card.data(TX_DATA, &frame[..50]);
    card.data(TX_DATA + 0x1001, &frame[50..]);
    card.descriptor(0, TX_DATA, part(50));
    card.descriptor(1, TX_DATA + 0x1001, whole(150));
    card.write(offset::TDT, 1);
    assert_eq!(
        card.transmit(),
        Vec::<Vec<u8>>::new(),
        "not before the end of the packet"
    );
    card.write(offset::TDT, 2);
    assert_eq!(card.transmit(), [frame]);
    assert!(!card.done(0), "did not ask");
    assert!(card.done(1));
    assert_eq!(card.device.register_read(offset::TDH), 2);
    assert_eq!(card.device.register_read(offset::GPTC), 1);
    assert_eq!(card.device.register_read(offset::QPTC), 1);
}

#[test]
fn a_packet_that_is_mapped_during_a_turn_is_found() {
    let mut card = Card::new();
    card.transmit_ring();
    let frame = udp_frame(100);
    assert!(card.path.begin());
    let at = map_page(&card.device);
    card.data(at, &frame);
    card.descriptor(0, at, whole(100));
    card.write(offset::TDT, 1);
    let mut frames = Vec::new();
    card.path
        .transmit(1 << 20, |frame, _| frames.push(frame.to_vec()));
    card.path.end();
    assert_eq!(frames, [frame]);
    assert_eq!(card.total("dma_errors"), 0);
}

#[test]
fn a_queue_that_is_enabled_later_is_noticed_soon() {
    let mut card = Card::new();
    card.descriptor(0, TX_DATA, whole(60));
    assert_eq!(card.transmit_at(0).len(), 0);
    card.transmit_ring();
    card.write(offset::TDT, 1);
    assert_eq!(card.transmit_at(NOTICE).len(), 1);
}

#[test]
fn short_frames_are_padded_and_the_transmit_ring_wraps_around() {
    let mut card = Card::new();
    card.transmit_ring();
    card.data(TX_DATA, &[1; 20]);
    for i in 0..3 * COUNT {
        card.descriptor(i % COUNT, TX_DATA, whole(20));
        card.write(offset::TDT, (i + 1) % COUNT);
        let frames = card.transmit();
        assert_eq!((frames.len(), frames[0].len()), (1, 60));
    }
}

#[test]
fn head_write_back() {
    let mut card = Card::new();
    card.transmit_ring();
    card.set(
        Tdwbal::ZERO
            .with_headwb_low(u30::new(0x3_0000 >> 2))
            .with_head_wb_en(true),
    );
    card.descriptor(0, TX_DATA, part(60).with_eop(true));
    card.write(offset::TDT, 1);
    card.transmit();
    assert_eq!(
        card.device
            .memory
            .view()
            .load64(0x3_0000)
            .expect("in memory"),
        1
    );
}

#[test]
fn tag_insertion_and_checksums_by_context() {
    let mut card = Card::new();
    card.transmit_ring();
    let good = udp_frame(100);
    let mut frame = good.clone();
    let parsed = parse(&frame);
    let seed = !finish(pseudo(&frame, &parsed, UDP) + 66);
    put_be16(&mut frame, 40, seed);
    card.data(TX_DATA, &frame);
    context(&card, 7, Transport::Udp, 0, 0);
    card.descriptor(1, TX_DATA, whole(100).with_vle(true).with_txsm(true));
    card.write(offset::TDT, 2);
    let frames = card.transmit();
    assert_eq!(frames[0][12..16], [0x81, 0, 0, 7]);
    let untagged = [&frames[0][..12], &frames[0][16..]].concat();
    assert_eq!(untagged, good);
}

#[test]
fn a_large_send_is_cut() {
    let mut card = Card::new();
    card.transmit_ring();
    let send = tcp_send(&[0x5a; 4000]);
    card.data(TX_DATA, &send);
    context(&card, 0, Transport::Tcp, 20, 1448);
    let high = whole(send.len()).with_tse(true);
    let high = high.with_ixsm(true).with_txsm(true);
    card.descriptor(1, TX_DATA, high.with_paylen(u18::new(4000)));
    card.write(offset::TDT, 2);
    let frames = card.transmit();
    let lengths: Vec<usize> = frames.iter().map(Vec::len).collect();
    assert_eq!(lengths, [1502, 1502, 1158]);
    for frame in &frames {
        let verdict = verify(frame, &parse(frame));
        assert!(verdict.l4_checked && !verdict.l4_bad && !verdict.ip_bad);
    }
    assert!(card.done(1));
}

#[test]
fn legacy_transmit_descriptors() {
    let mut card = Card::new();
    card.transmit_ring();
    let good = udp_frame(100);
    let mut frame = good.clone();
    let parsed = parse(&frame);
    let seed = !finish(pseudo(&frame, &parsed, UDP) + 66);
    put_be16(&mut frame, 40, seed);
    card.data(TX_DATA, &frame);
    // Insert the checksum from offset 34 on at offset 40.
    let common = TxData::ZERO.with_dtalen(100).with_eop(true).with_rs(true);
    let high = TxLegacy::new_with_raw_value(common.raw_value())
        .with_ic(true)
        .with_css(34)
        .with_cso(40);
    card.quadwords(0, TX_DATA, high.raw_value());
    card.write(offset::TDT, 1);
    assert_eq!(card.transmit(), [good]);
    assert!(card.done(0));
}

#[test]
fn without_a_link_frames_are_lost_but_descriptors_come_back() {
    let mut card = Card::new();
    card.transmit_ring();
    card.device.set_link(false);
    card.descriptor(0, TX_DATA, whole(60));
    card.write(offset::TDT, 1);
    assert!(card.path.begin());
    let mut links = Vec::new();
    assert!(card.path.transmit(1 << 20, |_, link| links.push(link)));
    card.path.end();
    assert_eq!(links, [false]);
    assert!(card.done(0));
    assert_eq!(card.total("tx_link_down"), 1);
}

#[test]
fn rings_that_make_no_sense_are_left_alone() {
    let mut card = Card::new();
    card.receive_ring();
    card.transmit_ring();
    card.descriptor(0, TX_DATA, whole(60));
    // Tail past the end; then no length; then base outside of memory, and at its very end.
    card.write(offset::TDT, COUNT + 1);
    assert!(card.transmit().is_empty());
    card.write(offset::TDT, 1);
    card.write(offset::TDLEN, 0);
    assert!(card.transmit().is_empty());
    assert!(card.total("malformed") >= 2);
    card.write(offset::TDLEN, COUNT * SIZE);
    for base in [
        MEMORY as u64,
        MEMORY as u64 - 0x80,
        0xffff_ffff_ffff_ff80,
        1 << 63,
    ] {
        card.write(offset::TDBAL, base as u32);
        card.write(offset::TDBAH, (base >> 32) as u32);
        card.write(offset::TDH, 0);
        card.write(offset::TDT, COUNT - 1);
        card.transmit();
        card.write(offset::RDBAL, base as u32);
        card.write(offset::RDBAH, (base >> 32) as u32);
        card.receive(&udp_frame(60));
    }
    assert!(card.total("dma_errors") > 0);
    card.write(offset::RDLEN, 0);
    assert_eq!(card.receive(&udp_frame(60)), Arrival::Lost(Loss::Disabled));
}

#[test]
fn data_outside_of_memory_is_not_sent_but_reported() {
    let mut card = Card::new();
    card.transmit_ring();
    card.descriptor(0, MEMORY as u64 - 10, whole(60));
    card.write(offset::TDT, 1);
    assert!(card.transmit().is_empty());
    assert!(card.done(0), "the driver gets its buffer back");
    assert!(card.total("dma_errors") > 0);
}

#[test]
fn a_chain_without_end_stays_bounded() {
    let mut card = Card::new();
    card.transmit_ring();
    for i in 0..COUNT {
        card.descriptor(i, 0, part(0xffff));
    }
    for turn in 0..100 {
        let head = card.device.register_read(offset::TDH);
        card.write(offset::TDT, (head + COUNT - 1) % COUNT);
        assert!(card.transmit().is_empty(), "turn {turn}");
        assert!(card.path.gathered(0) <= MAX_SEND, "turn {turn}");
    }
    // The end comes after all: the packet is too long, the next one is fine again.
    let head = card.device.register_read(offset::TDH);
    card.descriptor(head, TX_DATA, whole(60));
    card.descriptor((head + 1) % COUNT, TX_DATA, whole(60));
    card.write(offset::TDT, (head + 2) % COUNT);
    assert_eq!(card.transmit().len(), 1);
    assert_eq!(card.total("malformed"), 1);
}

#[test]
fn a_queue_that_is_set_up_anew_forgets_half_a_packet() {
    let mut card = Card::new();
    card.transmit_ring();
    card.descriptor(0, TX_DATA, part(30));
    card.write(offset::TDT, 1);
    card.transmit();
    card.write(offset::TDH, 0);
    card.data(TX_DATA, &[7; 64]);
    card.descriptor(0, TX_DATA, whole(64));
    card.write(offset::TDT, 1);
    assert_eq!(card.transmit(), [vec![7; 64]]);
}

#[test]
fn descriptors_of_the_next_turn_are_read_in_it() {
    let mut card = Card::new();
    card.transmit_ring();
    let frames = [udp_frame(60), udp_frame(70), udp_frame(80)];
    for (i, frame) in (0..).zip(&frames) {
        card.data(TX_DATA + 0x1000 * i, frame);
    }
    card.descriptor(0, TX_DATA, whole(60));
    card.descriptor(1, TX_DATA + 0x1000, whole(70));
    card.write(offset::TDT, 2);
    let mut sent = Vec::new();
    for budget in [1, usize::MAX] {
        assert!(card.path.begin());
        card.path
            .transmit(budget, |frame, _| sent.push(frame.to_vec()));
        card.path.end();
        // As after another set-up of the ring, with its head where it was.
        card.descriptor(1, TX_DATA + 0x2000, whole(80));
    }
    assert_eq!(sent, [udp_frame(60), udp_frame(80)]);
}

#[test]
fn disabled_transmit_moves_nothing() {
    let mut card = Card::new();
    card.transmit_ring();
    card.descriptor(0, TX_DATA, whole(60));
    card.set(Dmatxctl::ZERO);
    card.write(offset::TDT, 1);
    assert!(card.transmit().is_empty());
    card.set(Dmatxctl::ZERO.with_te(true));
    card.set(Ctrl::ZERO.with_gio_dis(true));
    assert!(card.transmit().is_empty(), "nor with GIO master disable");
    card.set(Ctrl::ZERO);
    assert_eq!(card.transmit().len(), 1);
}
