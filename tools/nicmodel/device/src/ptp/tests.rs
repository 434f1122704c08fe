// SPDX-License-Identifier: GPL-2.0
//! Tests of time stamps.

use arbitrary_int::u24;

use super::*;
use crate::card::{Card, TX_DATA, part, whole};
use crate::descriptor::TxData;
use crate::module::{self, Module};
use crate::packet::put_be16;
use crate::regs::bits::Register;
use crate::testing::udp_frame;

/// The increment of the C driver at 10 Gb/s: 6.4 ns, with 21 bits of fractions.
const INCREMENT: u32 = 0xcc_cccc;
const SHIFT: u32 = 21;
const SECOND: u64 = 1_000_000_000;

fn card() -> Card {
    let card = Card::new();
    card.device.set_link(true);
    card.set(
        Timinca::ZERO
            .with_incperiod(1)
            .with_incvalue(u24::new(INCREMENT)),
    );
    card.clock.advance(SECOND);
    card
}

fn read(card: &Card, low: u32, high: u32) -> u64 {
    let low = card.device.register_read(low);
    u64::from(card.device.register_read(high)) << 32 | u64::from(low)
}

fn systim(card: &Card) -> u64 {
    read(card, offset::SYSTIML, offset::SYSTIMH)
}

fn nanoseconds(systim: u64) -> u64 {
    systim >> SHIFT
}

/// An event of PTP in UDP.
fn event(kind: u8) -> Vec<u8> {
    let mut frame = udp_frame(86);
    put_be16(&mut frame, 36, 319);
    frame[42] = kind;
    frame[43] = 2;
    frame
}

/// The same right behind the Ethernet header.
fn l2_event(kind: u8) -> Vec<u8> {
    let mut frame = udp_frame(60);
    put_be16(&mut frame, 12, PTP);
    frame[14] = kind;
    frame[15] = 2;
    frame
}

fn receiver(card: &Card, kind: arbitrary_int::u3, message: u8) {
    card.receive_ring();
    card.set(Tsyncrxctl::ZERO.with_enable(true).with_kind(kind));
    card.set(
        Rxmtrl::ZERO
            .with_udpt(319)
            .with_msgt(message)
            .with_ctrlt(message),
    );
}

/// Whether a frame is stamped, and reads the latch then.
fn is_stamped(card: &mut Card, frame: &[u8]) -> bool {
    let _ = card.receive(frame);
    let stamped = card.device.regs.get::<Tsyncrxctl>().valid();
    card.device.register_read(offset::RXSTMPH);
    stamped
}

fn send(card: &mut Card, nth: u32, asked: bool) {
    let frame = udp_frame(100);
    card.data(TX_DATA, &frame);
    card.descriptor(nth, TX_DATA, whole(100).with_tstamp(asked));
    card.write(offset::TDT, nth + 1);
    assert_eq!(card.transmit().len(), 1);
}

#[test]
fn the_clock_stands_until_it_has_an_increment() {
    let card = Card::new();
    card.clock.advance(SECOND);
    assert_eq!(systim(&card), 0);
}

#[test]
fn the_clock_runs_as_its_increment_says() {
    let card = card();
    // The increment is a little less than 6.4 ns.
    let second = nanoseconds(systim(&card));
    assert!((SECOND - 100..=SECOND).contains(&second), "{second}");

    let half = u24::new(INCREMENT / 2);
    card.set(Timinca::ZERO.with_incperiod(1).with_incvalue(half));
    card.clock.advance(SECOND);
    let more = nanoseconds(systim(&card)) - second;
    assert!(more.abs_diff(SECOND / 2) < 100, "{more}");
}

#[test]
fn many_changes_of_the_increment_lose_nothing() {
    let card = card();
    let value = Timinca::ZERO
        .with_incperiod(1)
        .with_incvalue(u24::new(INCREMENT));
    let start = systim(&card);
    for _ in 0..10_000 {
        card.clock.advance(7);
        card.set(value);
    }
    assert_eq!(
        (systim(&card) - start) / u64::from(INCREMENT),
        70_000 * 10 / 64
    );
}

#[test]
fn the_high_half_is_of_the_read_of_the_low_one() {
    let card = card();
    let low = card.device.register_read(offset::SYSTIML);
    card.clock.advance(60 * SECOND);
    let high = card.device.register_read(offset::SYSTIMH);
    let value = u64::from(high) << 32 | u64::from(low);
    assert!(nanoseconds(value).abs_diff(SECOND) < 100);
}

#[test]
fn the_clock_is_slower_with_a_slow_link() {
    let card = card();
    let before = systim(&card);
    card.device.set_module(Some(Module::new(module::Kind::Sx)));
    assert_eq!(card.device.speed(), Some(Speed::One));
    card.clock.advance(SECOND);
    let passed = nanoseconds(systim(&card) - before);
    assert!(passed.abs_diff(SECOND / 10) < 100, "{passed}");
}

#[test]
fn a_clock_drifts() {
    let card = card();
    let before = systim(&card);
    card.device.fault(Kind::Drift, 1, -50_000_i32 as u32);
    card.clock.advance(SECOND);
    let passed = nanoseconds(systim(&card) - before);
    assert!(passed.abs_diff(SECOND - 50_000) < 100, "{passed}");
    card.device.fault(Kind::Clear, 1, 0);
    let before = systim(&card);
    card.clock.advance(SECOND);
    let passed = nanoseconds(systim(&card) - before);
    assert!(passed.abs_diff(SECOND) < 100, "{passed}");
}

#[test]
fn the_clock_is_set_and_reset() {
    let card = card();
    card.write(offset::SYSTIML, 5);
    card.write(offset::SYSTIMH, 7);
    assert_eq!(systim(&card), 7 << 32 | 5);
    card.device.reset_registers();
    card.clock.advance(SECOND);
    assert_eq!(systim(&card), 0);
}

#[test]
fn a_latch_keeps_its_stamp_until_it_is_read() {
    let mut card = card();
    receiver(&card, Tsyncrxctl::EVENTS_V2, 0);
    let at = systim(&card);
    let _ = card.receive(&event(0));
    assert!(card.result(0).status().ts());
    card.clock.advance(SECOND);
    let _ = card.receive(&event(0));
    assert!(!card.result(1).status().ts());
    assert_eq!(read(&card, offset::RXSTMPL, offset::RXSTMPH), at);
    assert!(!card.device.regs.get::<Tsyncrxctl>().valid());
    let _ = card.receive(&event(0));
    assert!(card.result(2).status().ts());
    assert!(card.device.regs.get::<Tsyncrxctl>().valid());
    // A write of the control leaves the latch alone.
    card.set(Tsyncrxctl::ZERO);
    assert!(card.device.regs.get::<Tsyncrxctl>().valid());
}

#[test]
fn a_frame_on_a_long_cable_arrives_later() {
    let mut card = card();
    receiver(&card, Tsyncrxctl::EVENTS_V2, 0);
    card.device.fault(Kind::CableDelay, 1, 5_000);
    let at = systim(&card);
    let _ = card.receive(&event(0));
    let stamp = read(&card, offset::RXSTMPL, offset::RXSTMPH);
    assert!(nanoseconds(stamp - at).abs_diff(5_000) < 10);
    // A frame that leaves does so at once.
    card.transmit_ring();
    card.set(Tsynctxctl::ZERO.with_enable(true));
    send(&mut card, 0, true);
    assert_eq!(read(&card, offset::TXSTMPL, offset::TXSTMPH), at);
}

#[test]
fn frames_are_stamped_by_their_kind() {
    for (kind, l2) in [
        (Tsyncrxctl::EVENTS_V2, true),
        (Tsyncrxctl::ANY_V2, true),
        (Tsyncrxctl::L2_V2, false),
    ] {
        let mut card = card();
        receiver(&card, kind, 1);
        assert_eq!(is_stamped(&mut card, &event(1)), kind != Tsyncrxctl::L2_V2);
        assert!(!is_stamped(&mut card, &l2_event(1)), "there is no filter");
        let filter = Etqf::ZERO
            .with_etype(PTP)
            .with_is_1588(true)
            .with_filter_en(true);
        card.write(Etqf::offset(3), filter.raw());
        assert!(is_stamped(&mut card, &l2_event(1)), "{l2}");
        // Neither an event, nor the type of the register.
        assert!(!is_stamped(&mut card, &event(8)));
        assert_eq!(
            is_stamped(&mut card, &l2_event(0)),
            kind == Tsyncrxctl::EVENTS_V2
        );
    }
}

#[test]
fn version_1_has_a_control_field() {
    let mut card = card();
    receiver(&card, Tsyncrxctl::L4_V1, 1);
    let mut frame = udp_frame(120);
    put_be16(&mut frame, 36, 319);
    put_be16(&mut frame, 42, 1);
    frame[42 + 32] = 1;
    assert!(is_stamped(&mut card, &frame));
    frame[42 + 32] = 0;
    assert!(!is_stamped(&mut card, &frame));
    frame[42 + 32] = 1;
    put_be16(&mut frame, 36, 320);
    assert!(!is_stamped(&mut card, &frame));
    assert!(!is_stamped(&mut card, &event(1)));
}

#[test]
fn a_frame_that_is_sent_is_stamped_if_its_descriptor_asks() {
    let mut card = card();
    card.transmit_ring();
    card.set(Tsynctxctl::ZERO.with_enable(true));
    send(&mut card, 0, false);
    assert!(!card.device.regs.get::<Tsynctxctl>().valid());
    let at = systim(&card);
    send(&mut card, 1, true);
    assert!(card.device.regs.get::<Tsynctxctl>().valid());
    card.clock.advance(SECOND);
    send(&mut card, 2, true);
    assert_eq!(read(&card, offset::TXSTMPL, offset::TXSTMPH), at);
    assert!(!card.device.regs.get::<Tsynctxctl>().valid());
    // Of several descriptors, the first one asks.
    card.descriptor(3, TX_DATA, part(50).with_tstamp(true));
    card.descriptor(
        4,
        TX_DATA + 50,
        TxData::new_with_raw_value(whole(50).raw_value()),
    );
    card.write(offset::TDT, 5);
    assert_eq!(card.transmit().len(), 1);
    assert!(card.device.regs.get::<Tsynctxctl>().valid());
}

#[test]
fn a_card_lies_about_stamps() {
    let mut card = card();
    receiver(&card, Tsyncrxctl::EVENTS_V2, 0);
    card.device.fault(Kind::NoStamp, 1, 0);
    assert!(!is_stamped(&mut card, &event(0)));

    card.device.fault(Kind::HiddenStamp, 1, 0);
    assert!(is_stamped(&mut card, &event(0)));
    assert!(!card.result(1).status().ts());

    card.clock.advance(10 * SECOND);
    card.device.fault(Kind::OldStamp, 1, 3_000);
    let now = systim(&card);
    let _ = card.receive(&event(0));
    let stamp = read(&card, offset::RXSTMPL, offset::RXSTMPH);
    assert!(nanoseconds(now - stamp).abs_diff(3 * SECOND) < 1_000);

    card.transmit_ring();
    card.set(Tsynctxctl::ZERO.with_enable(true));
    card.device.fault(Kind::UnaskedStamp, 1, 0);
    send(&mut card, 0, false);
    assert!(card.device.regs.get::<Tsynctxctl>().valid());
}
