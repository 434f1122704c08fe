// SPDX-License-Identifier: GPL-2.0
//! Tests of the receive rings.

use crate::card::{COUNT, Card, DONE, EOP, RS, RX_BUFFERS, RX_RING, TX_DATA, TX_RING, data};
use crate::fault::Kind;
use crate::function::PciFunction;
use crate::port::{Arrival, Loss};
use crate::regs::offset;
use crate::testing::udp_frame;

#[test]
fn a_frame_is_written_back_with_length_and_status() {
    let mut card = Card::new();
    card.receive_ring();
    let frame = udp_frame(100);
    assert_eq!(card.receive(&frame), Arrival::Taken);
    let high = card.high(RX_RING, 0);
    assert_eq!(high >> 32 & 0xffff, 100);
    assert_eq!(high & 0x3, 0x3, "DD and EOP");
    assert_eq!(high & 0x60, 0x60, "both checksums were looked at");
    assert_eq!(high >> 20 & 0xfff, 0, "no error");
    let mut bytes = vec![0; 100];
    card.device
        .memory
        .view()
        .read(RX_BUFFERS, &mut bytes)
        .expect("in memory");
    assert_eq!(bytes, frame);
    assert_eq!(card.device.register_read(offset::RDH), 1);
    assert_eq!(card.device.register_read(offset::GPRC), 1);
    assert_eq!(card.device.register_read(offset::GORCL), 104);
    assert_eq!(card.device.register_read(offset::QPRC), 1);
}

#[test]
fn bad_checksums_are_flagged() {
    let mut card = Card::new();
    card.receive_ring();
    let mut frame = udp_frame(100);
    frame[60] ^= 1;
    card.receive(&frame);
    assert_eq!(card.high(RX_RING, 0) >> 30 & 3, 1, "transport");
    frame[60] ^= 1;
    frame[22] ^= 1;
    card.receive(&frame);
    assert_eq!(card.high(RX_RING, 1) >> 30 & 2, 2, "IP header");
}

#[test]
fn the_receive_ring_wraps_around() {
    let mut card = Card::new();
    card.receive_ring();
    for i in 0..3 * COUNT {
        assert_eq!(card.receive(&udp_frame(60 + i as usize)), Arrival::Taken);
        let at = i % COUNT;
        assert_eq!(card.high(RX_RING, at) >> 32 & 0xffff, u64::from(60 + i));
        card.free(u64::from(at));
        card.write(offset::RDT, at);
    }
    assert_eq!(card.device.register_read(offset::RDH), 0);
}

#[test]
fn without_descriptors_frames_wait_and_then_are_lost() {
    let mut card = Card::new();
    card.receive_ring();
    card.write(offset::RXPBSIZE, 1 << 10);
    let frame = udp_frame(234);
    // Seven go to the ring, four of 250 bytes with overhead into 1 KiB of packet buffer.
    for _ in 0..11 {
        assert_eq!(card.receive(&frame), Arrival::Taken);
    }
    assert_eq!(card.receive(&frame), Arrival::Lost(Loss::NoDescriptor));
    assert_eq!(card.device.register_read(offset::MPC), 1);
    for i in 0..5 {
        card.free(i);
    }
    card.write(offset::RDT, 4);
    assert!(card.path.begin());
    assert!(card.path.drain());
    card.path.end();
    assert!(!card.path.waiting());
    assert_eq!(
        card.device.register_read(offset::RDH),
        3,
        "11 frames in a ring of 8"
    );
}

#[test]
fn a_queue_set_to_drop_does_not_wait() {
    let mut card = Card::new();
    card.receive_ring();
    card.write(offset::SRRCTL, 1 | 1 << 25 | 1 << 28);
    for _ in 0..COUNT - 1 {
        card.receive(&udp_frame(60));
    }
    assert_eq!(
        card.receive(&udp_frame(60)),
        Arrival::Lost(Loss::NoDescriptor)
    );
    assert_eq!(card.device.register_read(offset::QPRDC), 1);
}

#[test]
fn a_large_frame_takes_several_descriptors() {
    let mut card = Card::new();
    card.receive_ring();
    card.write(offset::HLREG0, 0x407);
    card.write(offset::MAXFRS, 9018 << 16);
    card.receive(&udp_frame(2500));
    let lengths: Vec<u64> = (0..3)
        .map(|i| card.high(RX_RING, i) >> 32 & 0xffff)
        .collect();
    assert_eq!(lengths, [1024, 1024, 452]);
    let ends: Vec<u64> = (0..3).map(|i| card.high(RX_RING, i) & 3).collect();
    assert_eq!(ends, [1, 1, 3], "end of packet only in the last");
    // A frame that does not fit as a whole is not begun.
    card.receive(&udp_frame(5000));
    assert_eq!(card.device.register_read(offset::RDH), 3);
}

#[test]
fn legacy_receive_descriptors() {
    let mut card = Card::new();
    card.receive_ring();
    card.write(offset::SRRCTL, 1);
    card.receive(&udp_frame(100));
    let high = card.high(RX_RING, 0);
    assert_eq!(high & 0xffff, 100);
    assert_eq!(high >> 32 & 3, 3);
}

#[test]
fn the_tag_is_stripped_where_the_queue_asks() {
    let mut card = Card::new();
    card.receive_ring();
    let plain = udp_frame(100);
    let mut tagged = plain.clone();
    tagged.splice(12..12, [0x81, 0, 0x20, 0x05]);
    card.receive(&tagged);
    assert_eq!(card.high(RX_RING, 0) >> 32 & 0xffff, 104);
    card.write(offset::RXDCTL, 1 << 25 | 1 << 30);
    card.receive(&tagged);
    let high = card.high(RX_RING, 1);
    assert_eq!(
        (high >> 48, high >> 32 & 0xffff, high >> 3 & 1),
        (0x2005, 100, 1)
    );
    let mut bytes = vec![0; 100];
    card.device
        .memory
        .view()
        .read(RX_BUFFERS + 0x800, &mut bytes)
        .expect("in memory");
    assert_eq!(bytes, plain);
}

#[test]
fn frames_are_refused_by_reason() {
    let mut card = Card::new();
    assert_eq!(card.receive(&udp_frame(60)), Arrival::Lost(Loss::Disabled));
    card.receive_ring();
    card.write(offset::RXDCTL, 0);
    assert_eq!(card.receive(&udp_frame(60)), Arrival::Lost(Loss::Disabled));
    card.write(offset::RXDCTL, 1 << 25);
    let mut foreign = udp_frame(60);
    foreign[5] ^= 0xff;
    assert_eq!(card.receive(&foreign), Arrival::Lost(Loss::Filtered));
    assert_eq!(
        card.receive(&udp_frame(1600)),
        Arrival::Lost(Loss::Filtered)
    );
    assert_eq!(card.device.register_read(offset::ROC), 1);
    card.device.set_link(false);
    assert_eq!(card.receive(&udp_frame(60)), Arrival::Lost(Loss::LinkDown));
}

#[test]
fn reset_flushes_the_packet_buffer_and_says_so() {
    let mut card = Card::new();
    card.receive_ring();
    for _ in 0..COUNT {
        card.receive(&udp_frame(60));
    }
    assert!(card.path.waiting());
    card.device.reset();
    assert!(card.path.begin());
    card.path.end();
    assert!(!card.path.waiting());
    assert_eq!(card.path.take_flushed(), [(0, Loss::Disabled)]);
}

#[test]
fn faults_lie_in_the_write_back_only() {
    let mut card = Card::new();
    card.receive_ring();
    card.device.faults.arm(Kind::RxLength, 1, 0xffff);
    card.device.faults.arm(Kind::RxNoEop, 1, 0);
    card.receive(&udp_frame(60));
    assert_eq!(card.high(RX_RING, 0) >> 32 & 0xffff, 0xffff);
    assert_eq!(card.high(RX_RING, 0) & 3, 1);
    card.device.faults.arm(Kind::RxOnes, 1, 0);
    card.receive(&udp_frame(60));
    assert_eq!(card.high(RX_RING, 1), u64::MAX);
    card.receive(&udp_frame(60));
    assert_eq!(card.high(RX_RING, 2) >> 32 & 0xffff, 60, "the truth again");
    card.transmit_ring();
    card.device.faults.arm(Kind::TxNoDone, 1, 0);
    card.descriptor(0, TX_DATA, data(60, EOP | RS));
    card.write(offset::TDT, 1);
    card.transmit();
    assert_eq!(card.high(TX_RING, 0) >> 32 & DONE, 0);
}

#[test]
fn a_removed_card_moves_nothing() {
    let mut card = Card::new();
    card.receive_ring();
    card.device.surprise_remove();
    assert!(!card.path.begin());
    card.device.mend();
    assert!(card.path.begin());
    card.path.end();
}
