// SPDX-License-Identifier: GPL-2.0
//! Tests of the receive rings.

use std::sync::Arc;

use arbitrary_int::{u10, u12};

use crate::card::{COUNT, Card, RX_BUFFERS, RX_RING, SRRCTL, TX_DATA, whole};
use crate::fault::Kind;
use crate::function::PciFunction;
use crate::port::{Arrival, Loss};
use crate::regs::bits::{Autoc, Hlreg0, Maxfrs, Rxdctl, Rxpbsize, Srrctl};
use crate::regs::offset;
use crate::testing::{map_page, udp_frame};

#[test]
fn a_frame_is_written_back_with_length_and_status() {
    let mut card = Card::new();
    card.receive_ring();
    let frame = udp_frame(100);
    assert_eq!(card.receive(&frame), Arrival::Taken);
    let result = card.result(0);
    let status = result.status();
    assert_eq!(result.pkt_len(), 100);
    assert!(status.dd() && status.eop());
    assert!(status.l4cs() && status.udpcs() && status.ipcs());
    assert_eq!(status.errors(), u12::new(0));
    assert_eq!(result.raw_value(), 100 << 32 | 0x73, "and nothing else");
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
fn a_buffer_that_is_mapped_during_a_turn_is_found() {
    let mut card = Card::new();
    card.receive_ring();
    let frame = udp_frame(100);
    assert!(card.path.begin());
    let at = map_page(&card.device);
    let now = card.device.memory.view();
    now.store64(RX_RING, at).expect("in memory");
    assert_eq!(card.path.receive(0, &frame), Arrival::Taken);
    card.path.end();
    let mut bytes = vec![0; 100];
    now.read(at, &mut bytes).expect("in memory");
    assert_eq!(bytes, frame);
    assert_eq!(card.total("dma_errors"), 0);
}

#[test]
fn frames_of_one_queue_come_in_while_another_one_changes() {
    let mut card = Card::new();
    card.receive_ring();
    let other = Arc::clone(&card.device);
    std::thread::scope(|scope| {
        let changes = scope.spawn(move || {
            for _ in 0..300_000 {
                other.queue_changes(offset::RXDCTL + offset::QUEUE, 0);
            }
        });
        while !changes.is_finished() {
            assert_eq!(card.receive(&udp_frame(100)), Arrival::Taken);
            let next = card.device.register_read(offset::RDH);
            card.write(offset::RDT, (next + COUNT - 1) % COUNT);
        }
    });
}

#[test]
fn bad_checksums_are_flagged() {
    let mut card = Card::new();
    card.receive_ring();
    let mut frame = udp_frame(100);
    frame[60] ^= 1;
    card.receive(&frame);
    let status = card.result(0).status();
    assert!(status.l4e() && !status.ipe());
    frame[60] ^= 1;
    frame[22] ^= 1;
    card.receive(&frame);
    assert!(card.result(1).status().ipe());
}

#[test]
fn a_receiver_in_loopback_listens_to_the_transmitter_alone() {
    let mut card = Card::new();
    card.receive_ring();
    card.set(card.device.regs.get::<Hlreg0>().with_lpbk(true));
    let mut frame = udp_frame(60);
    let down = Arrival::Lost(Loss::LinkDown);
    assert_eq!(card.receive(&frame), down);
    let come_back = |card: &mut Card, frame: &[u8]| {
        assert!(card.path.begin());
        let arrival = card.path.receive_looped(frame);
        card.path.end();
        arrival
    };
    assert_eq!(come_back(&mut card, &frame), Arrival::Taken);
    card.device.set_link(false);
    assert_eq!(come_back(&mut card, &frame), down);
    card.set(card.device.regs.get::<Autoc>().with_flu(true));
    assert_eq!(come_back(&mut card, &frame), Arrival::Taken);
    assert_eq!(card.receive(&frame), down);
    for (fault, arrival) in [
        (Kind::LoopedLost, down),
        (Kind::LoopedDamaged, Arrival::Taken),
    ] {
        card.device.faults.arm(fault, 1, 0);
        assert_eq!(come_back(&mut card, &frame), arrival);
        assert_eq!(come_back(&mut card, &frame), Arrival::Taken);
    }
    assert_eq!(card.result(5).pkt_len(), 0, "five frames");
    let mut bytes = vec![0; 60];
    let view = card.device.memory.view();
    view.read(RX_BUFFERS + 3 * 0x800, &mut bytes)
        .expect("in memory");
    frame[59] ^= 1;
    assert_eq!(bytes, frame);
    card.set(card.device.regs.get::<Hlreg0>().with_lpbk(false));
    assert_eq!(card.receive(&frame), down);
    card.device.set_link(true);
    assert_eq!(card.receive(&frame), Arrival::Taken);
}

#[test]
fn the_receive_ring_wraps_around() {
    let mut card = Card::new();
    card.receive_ring();
    for i in 0..3 * COUNT {
        assert_eq!(card.receive(&udp_frame(60 + i as usize)), Arrival::Taken);
        let at = i % COUNT;
        assert_eq!(u32::from(card.result(at).pkt_len()), 60 + i);
        card.free(u64::from(at));
        card.write(offset::RDT, at);
    }
    assert_eq!(card.device.register_read(offset::RDH), 0);
}

#[test]
fn without_descriptors_frames_wait_and_then_are_lost() {
    let mut card = Card::new();
    card.receive_ring();
    card.set(Rxpbsize::ZERO.with_size(u10::new(1)));
    let frame = udp_frame(234);
    // Seven go to the ring, four of 250 bytes with overhead into 1 KiB of packet buffer.
    for _ in 0..11 {
        assert_eq!(card.receive(&frame), Arrival::Taken);
    }
    assert_eq!(card.receive(&frame), Arrival::Lost(Loss::NoDescriptor));
    assert_eq!(card.device.register_read(offset::MPC), 1);
    // Those in the ring, and the one that is lost.
    assert_eq!(card.device.register_read(offset::GPRC), 8);
    for i in 0..5 {
        card.free(i);
    }
    card.write(offset::RDT, 4);
    assert!(card.path.begin());
    assert!(card.path.drain(1));
    assert!(card.path.waiting(), "one of four went on");
    assert!(card.path.drain(usize::MAX));
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
    card.set(SRRCTL.with_drop_en(true));
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
    card.set(card.device.regs.get::<Hlreg0>().with_jumboen(true));
    card.set(Maxfrs::ZERO.with_mfs(9018));
    card.receive(&udp_frame(2500));
    let lengths = [0, 1, 2].map(|i| card.result(i).pkt_len());
    assert_eq!(lengths, [1024, 1024, 452]);
    let statuses = [0, 1, 2].map(|i| card.result(i).status());
    assert!(statuses.iter().all(|status| status.dd()));
    assert_eq!(statuses.map(|status| status.eop()), [false, false, true]);
    // A frame that does not fit as a whole is not begun.
    card.receive(&udp_frame(5000));
    assert_eq!(card.device.register_read(offset::RDH), 3);
}

#[test]
fn legacy_receive_descriptors() {
    let mut card = Card::new();
    card.receive_ring();
    card.set(SRRCTL.with_desctype(Srrctl::LEGACY));
    card.receive(&udp_frame(100));
    assert_eq!(card.legacy(0).length(), 100);
    assert!(card.legacy(0).eop());
    assert_eq!(card.legacy(0).status() & 3, 3, "DD and EOP");
}

#[test]
fn the_tag_is_stripped_where_the_queue_asks() {
    let mut card = Card::new();
    card.receive_ring();
    let plain = udp_frame(100);
    let mut tagged = plain.clone();
    tagged.splice(12..12, [0x81, 0, 0x20, 0x05]);
    card.receive(&tagged);
    assert_eq!(card.result(0).pkt_len(), 104);
    card.set(Rxdctl::ZERO.with_enable(true).with_vme(true));
    card.receive(&tagged);
    let result = card.result(1);
    assert_eq!((result.vlan(), result.pkt_len()), (0x2005, 100));
    assert!(result.status().vp());
    let mut bytes = vec![0; 100];
    card.device
        .memory
        .view()
        .read(RX_BUFFERS + 0x800, &mut bytes)
        .expect("in memory");
    assert_eq!(bytes, plain);
}

#[test]
fn descriptors_that_come_during_a_turn_are_used_in_it() {
    let mut card = Card::new();
    card.receive_ring();
    assert!(card.path.begin());
    for _ in 1..COUNT {
        card.path.receive(0, &udp_frame(60));
    }
    card.free(0);
    card.write(offset::RDT, 0);
    card.path.receive(0, &udp_frame(60));
    assert!(!card.path.waiting());
    card.path.end();
    assert!(card.result(COUNT - 1).status().dd());
    assert_eq!(card.device.register_read(offset::RDH), 0);
}

#[test]
fn descriptors_are_read_anew_in_each_turn() {
    let mut card = Card::new();
    card.receive_ring();
    card.receive(&udp_frame(60));
    // As after another set-up of the ring, with its head where it was.
    let view = card.device.memory.view();
    view.store64(RX_RING + 16, RX_BUFFERS + 0x8000)
        .expect("in memory");
    card.receive(&udp_frame(60));
    let mut bytes = vec![0; 60];
    view.read(RX_BUFFERS + 0x8000, &mut bytes)
        .expect("in memory");
    assert_eq!(bytes, udp_frame(60));
}

#[test]
fn the_head_that_a_driver_sets_during_a_turn_stays() {
    let mut card = Card::new();
    card.receive_ring();
    assert!(card.path.begin());
    card.path.receive(0, &udp_frame(60));
    card.write(offset::RDH, 5);
    card.path.end();
    assert_eq!(card.device.register_read(offset::RDH), 5);
}

#[test]
fn a_frame_with_a_buffer_outside_of_memory_uses_no_descriptor() {
    let mut card = Card::new();
    card.set(Hlreg0::ZERO.with_jumboen(true));
    card.set(Maxfrs::ZERO.with_mfs(9018));
    card.receive_ring();
    let view = card.device.memory.view();
    view.store64(RX_RING + 16, u64::MAX - 4096)
        .expect("in memory");
    assert!(card.path.begin());
    let large = udp_frame(2000);
    assert_eq!(card.path.receive(0, &large), Arrival::Lost(Loss::Disabled));
    card.free(1);
    assert_eq!(card.path.receive(0, &large), Arrival::Taken);
    card.path.end();
    assert_eq!(card.total("dma_errors"), 1);
    assert_eq!(card.device.register_read(offset::RDH), 2);
    let mut bytes = vec![0; large.len() - 1024];
    view.read(RX_BUFFERS + 0x800, &mut bytes)
        .expect("in memory");
    assert_eq!(bytes, large[1024..]);
}

#[test]
fn frames_are_refused_by_reason() {
    let mut card = Card::new();
    assert_eq!(card.receive(&udp_frame(60)), Arrival::Lost(Loss::Disabled));
    card.receive_ring();
    card.set(Rxdctl::ZERO);
    assert_eq!(card.receive(&udp_frame(60)), Arrival::Lost(Loss::Disabled));
    card.set(Rxdctl::ZERO.with_enable(true));
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
    assert_eq!(card.result(0).pkt_len(), 0xffff);
    let status = card.result(0).status();
    assert!(status.dd() && !status.eop());
    card.device.faults.arm(Kind::RxOnes, 1, 0);
    card.receive(&udp_frame(60));
    assert_eq!(card.result(1).raw_value(), u64::MAX);
    card.receive(&udp_frame(60));
    assert_eq!(card.result(2).pkt_len(), 60, "the truth again");
    card.transmit_ring();
    card.device.faults.arm(Kind::TxNoDone, 1, 0);
    card.descriptor(0, TX_DATA, whole(60));
    card.write(offset::TDT, 1);
    card.transmit();
    assert!(!card.done(0));
}

#[test]
fn a_removed_card_moves_nothing() {
    let mut card = Card::new();
    card.receive_ring();
    card.device.fault(Kind::Remove, 1, 0);
    assert!(!card.path.begin());
    card.device.fault(Kind::Clear, 1, 0);
    assert!(card.path.begin());
    card.path.end();
}
