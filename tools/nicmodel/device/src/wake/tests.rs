// SPDX-License-Identifier: GPL-2.0
use super::*;
use crate::card::Card;
use crate::fault::Kind;
use crate::port::{Arrival, Loss};
use crate::regs::bits::{Ctrl, Fctrl, Mcstctrl, Vlnctrl};
use crate::regs::offset;
use crate::testing::MAC;

const PMCSR: u64 = 0x44;
const GROUP: [u8; 6] = [0x01, 0, 0x5e, 0, 0, 0x01];
const STRANGER: [u8; 6] = [2, 9, 9, 9, 9, 9];
const ALL: Wufc = Wufc::ZERO
    .with_lnkc(true)
    .with_mag(true)
    .with_ex(true)
    .with_mc(true)
    .with_bc(true);
const MAG: Wufc = Wufc::ZERO.with_mag(true);

fn write_pmcsr(card: &Card, value: u16) {
    card.device.config_write(PMCSR, &value.to_le_bytes());
}

fn pmcsr(card: &Card) -> u16 {
    let mut data = [0; 2];
    card.device.config_read(PMCSR, &mut data);
    u16::from_le_bytes(data)
}

fn wus(card: &Card) -> Wus {
    Wus::from_raw(card.device.register_read(offset::WUS))
}

/// A card that sleeps with these filters, and may wake the machine.
fn asleep(filters: Wufc) -> Card {
    let card = Card::new();
    card.set(filters);
    write_pmcsr(&card, 0x0103);
    card
}

/// A frame to `to` with the pattern for `own` at offset `at` of the payload.
fn magic(to: [u8; 6], own: [u8; 6], at: usize) -> Vec<u8> {
    let mut frame = plain(to);
    frame.resize(ETH_HEADER + at, 0x11);
    frame.extend_from_slice(&BROADCAST);
    for _ in 0..16 {
        frame.extend_from_slice(&own);
    }
    frame
}

fn plain(to: [u8; 6]) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&[0x08, 0x42]);
    frame
}

/// Receives a frame, which is lost, and returns how often the card has asked for power.
fn receive(card: &mut Card, frame: &[u8]) -> u64 {
    assert_eq!(card.receive(frame), Arrival::Lost(Loss::Disabled));
    card.total("wake_ups")
}

/// The reasons for which a frame wakes the card, 0 if it does not.
fn reason(mut card: Card, frame: &[u8]) -> u32 {
    let woken = receive(&mut card, frame) != 0;
    assert_eq!(pmcsr(&card), if woken { 0x8103 } else { 0x0103 });
    write_pmcsr(&card, 0);
    assert_eq!(woken, wus(&card).raw() != 0);
    wus(&card).raw()
}

#[test]
fn a_magic_packet_wakes_wherever_its_pattern_is() {
    for at in [0, 1, 5, 28, 300, 1500 - PATTERN] {
        let frame = magic(MAC, MAC, at);
        assert_eq!(reason(asleep(MAG), &frame), 2, "at {at}");
    }
    // The pattern may follow further ones, and something may follow it.
    let mut frame = magic(MAC, MAC, 20);
    frame[ETH_HEADER + 17..ETH_HEADER + 20].fill(0xff);
    frame.extend_from_slice(&[1, 2, 3]);
    assert_eq!(reason(asleep(MAG), &frame), 2);
}

#[test]
fn a_magic_packet_needs_all_of_the_own_pattern() {
    let good = magic(MAC, MAC, 20);
    assert_eq!(reason(asleep(MAG), &magic(MAC, STRANGER, 20)), 0);
    assert_eq!(reason(asleep(MAG), &good[..good.len() - 1]), 0);
    for at in [0, 5, 6, PATTERN - 1] {
        let mut bad = good.clone();
        bad[ETH_HEADER + 20 + at] ^= 1;
        assert_eq!(reason(asleep(MAG), &bad), 0, "byte {at}");
    }
    assert_eq!(reason(asleep(Wufc::ZERO), &good), 0);
}

#[test]
fn a_magic_packet_passes_the_filter_of_addresses() {
    let woken = |fctrl: Fctrl, to| {
        let card = Card::new();
        card.set(MAG);
        card.set(fctrl);
        write_pmcsr(&card, 0x0103);
        reason(card, &magic(to, MAC, 0)) == 2
    };
    for (to, fctrl) in [
        (STRANGER, Fctrl::ZERO.with_upe(true)),
        (GROUP, Fctrl::ZERO.with_mpe(true)),
        (BROADCAST, Fctrl::ZERO.with_bam(true)),
    ] {
        assert!(!woken(Fctrl::ZERO, to), "{to:x?}");
        assert!(woken(fctrl, to), "{to:x?}");
    }
}

#[test]
fn the_own_address_wakes() {
    assert_eq!(reason(asleep(ALL), &plain(MAC)), 4);
    assert_eq!(reason(asleep(ALL.with_ex(false)), &plain(MAC)), 0);
    assert_eq!(reason(asleep(ALL), &plain(STRANGER)), 0);
    // Promiscuous mode makes no address one's own.
    let card = Card::new();
    card.set(ALL);
    card.set(Fctrl::ZERO.with_upe(true));
    write_pmcsr(&card, 0x0103);
    assert_eq!(reason(card, &plain(STRANGER)), 0);
}

#[test]
fn a_group_wakes_if_the_port_is_in_it() {
    let card = Card::new();
    card.set(ALL);
    card.set(Mcstctrl::ZERO.with_mfe(true));
    card.write(offset::MTA, 1 << 16);
    write_pmcsr(&card, 0x0103);
    assert_eq!(reason(card, &plain(GROUP)), 8);
    assert_eq!(reason(asleep(ALL), &plain(GROUP)), 0);
    for (filters, expected) in [(ALL, 8), (ALL.with_mc(false), 0)] {
        let card = Card::new();
        card.set(filters);
        card.set(Fctrl::ZERO.with_mpe(true));
        write_pmcsr(&card, 0x0103);
        assert_eq!(reason(card, &plain(GROUP)), expected);
    }
}

#[test]
fn a_broadcast_wakes_also_if_the_receiver_takes_none() {
    assert_eq!(reason(asleep(ALL), &plain(BROADCAST)), 16);
    let filters = ALL.with_bc(false);
    assert_eq!(reason(asleep(filters), &plain(BROADCAST)), 0);
}

#[test]
fn all_filters_that_a_frame_passes_are_reported() {
    assert_eq!(reason(asleep(ALL), &magic(MAC, MAC, 0)), 2 | 4);
}

#[test]
fn length_and_vlan_count() {
    assert_eq!(reason(asleep(ALL), &magic(MAC, MAC, 1500)), 0);
    assert_eq!(reason(asleep(ALL), &MAC), 0);
    let card = Card::new();
    card.set(ALL);
    card.set(Vlnctrl::ZERO.with_vfe(true).with_vet(0x8100));
    write_pmcsr(&card, 0x0103);
    let mut frame = plain(BROADCAST);
    frame[12..16].copy_from_slice(&[0x81, 0x00, 0x00, 0x2a]);
    assert_eq!(reason(card, &frame), 0);
}

#[test]
fn a_change_of_the_link_wakes() {
    for (filters, expected) in [(ALL, 1), (ALL.with_lnkc(false), 0)] {
        let card = asleep(filters);
        card.device.set_link(false);
        assert_eq!(card.total("wake_ups"), expected);
        // The driver knows, and the next one is ignored.
        write_pmcsr(&card, 0x8103);
        card.device.set_link(true);
        assert_eq!(card.total("wake_ups"), expected);
        write_pmcsr(&card, 0);
        assert_eq!(u64::from(wus(&card).raw()), expected);
    }
}

#[test]
fn without_a_link_no_frame_wakes() {
    let mut card = asleep(MAG);
    card.device.set_link(false);
    let frame = magic(MAC, MAC, 0);
    assert_eq!(card.receive(&frame), Arrival::Lost(Loss::LinkDown));
    assert_eq!(card.total("wake_ups"), 0);
    card.device.set_link(true);
    assert_eq!(receive(&mut card, &frame), 1);

    let mut card = Card::new();
    card.set(ALL);
    card.device.regs.store(offset::AUTOC2, 5 << 28);
    write_pmcsr(&card, 0x0103);
    assert_eq!(receive(&mut card, &frame), 0);
    card.device.set_link(false);
    assert_eq!(card.total("wake_ups"), 0);
}

#[test]
fn without_permission_the_card_knows_but_does_not_ask() {
    let mut card = Card::new();
    card.set(MAG);
    write_pmcsr(&card, 0x0003);
    assert_eq!(receive(&mut card, &magic(MAC, MAC, 0)), 0);
    assert_eq!(pmcsr(&card), 0x0003);
    write_pmcsr(&card, 0);
    assert!(wus(&card).mag());
}

#[test]
fn a_card_that_is_awake_is_not_woken() {
    let mut card = Card::new();
    card.receive_ring();
    card.set(ALL);
    write_pmcsr(&card, 0x0100);
    let mut frame = magic(MAC, MAC, 0);
    assert_eq!(card.receive(&frame), Arrival::Taken);
    card.device.set_link(false);
    card.device.set_link(true);
    assert_eq!((card.total("wake_ups"), wus(&card).raw()), (0, 0));
    assert_eq!(pmcsr(&card), 0x0100);
    // The receiver is still enabled, but a function that sleeps has no DMA.
    write_pmcsr(&card, 0x0103);
    frame.push(0);
    assert_eq!(receive(&mut card, &frame), 1);
    assert!(!card.result(1).status().dd());
}

#[test]
fn frames_in_the_packet_buffer_stay_there() {
    let mut card = Card::new();
    card.receive_ring();
    card.write(offset::RDT, 0);
    assert_eq!(card.receive(&plain(MAC)), Arrival::Taken);
    card.device.regs.store(offset::RDT, 7);
    write_pmcsr(&card, 0x0003);
    assert!(card.path.begin());
    assert!(!card.path.drain(usize::MAX));
    card.path.end();
    assert!(card.path.waiting() && !card.result(0).status().dd());
}

#[test]
fn the_status_is_cleared_by_writing_ones() {
    let mut card = asleep(ALL);
    let frame = magic(MAC, MAC, 0);
    assert_eq!(receive(&mut card, &frame), 1);
    assert_eq!(receive(&mut card, &frame), 1, "it asks already");
    write_pmcsr(&card, 0x0103);
    assert_eq!(pmcsr(&card), 0x8103, "zeroes do not clear it");
    write_pmcsr(&card, 0x8103);
    assert_eq!(pmcsr(&card), 0x0103);
    assert_eq!(
        receive(&mut card, &frame),
        1,
        "the driver knows nothing yet"
    );

    write_pmcsr(&card, 0x0100);
    assert_eq!(wus(&card).raw(), 2 | 4);
    card.set(Wus::ZERO.with_mag(true));
    assert_eq!(wus(&card).raw(), 4);
    card.set(Wus::from_raw(u32::MAX));
    assert_eq!(wus(&card).raw(), 0);
    card.set(ALL);
    write_pmcsr(&card, 0x0103);
    assert_eq!(receive(&mut card, &frame), 2);
}

#[test]
fn status_and_permission_outlive_sleep_and_reset_but_filters_do_not() {
    let mut card = asleep(ALL);
    assert_eq!(receive(&mut card, &plain(MAC)), 1);
    write_pmcsr(&card, 0x0100);
    assert_eq!(card.device.register_read(offset::WUFC), 0);
    card.set(Ctrl::ZERO.with_rst(true));
    assert!(wus(&card).ex());
    assert_eq!(pmcsr(&card), 0x8100);
}

#[test]
fn a_reset_of_the_bus_clears_all() {
    let mut card = asleep(ALL);
    assert_eq!(receive(&mut card, &plain(MAC)), 1);
    card.device.reset();
    assert_eq!((pmcsr(&card), wus(&card).raw()), (0, 0));
    assert_eq!(card.device.register_read(offset::WUC), 0x11);
    card.set(ALL);
    write_pmcsr(&card, 0x0103);
    assert_eq!(receive(&mut card, &plain(MAC)), 2);
}

#[test]
fn wuc_has_the_bits_of_configuration_space() {
    let mut card = asleep(ALL);
    assert_eq!(receive(&mut card, &plain(MAC)), 1);
    write_pmcsr(&card, 0x0100);
    let wuc = || Wuc::from_raw(card.device.register_read(offset::WUC));
    assert_eq!(wuc().raw(), 0x17);
    card.set(Wuc::ZERO);
    assert_eq!((wuc().raw(), pmcsr(&card)), (4, 0x8000));
    card.set(Wuc::ZERO.with_pme_en(true).with_pme_status(true));
    assert_eq!((wuc().raw(), pmcsr(&card)), (2, 0x0100));
}

#[test]
fn a_card_that_was_pulled_out_does_not_ask() {
    let card = asleep(ALL);
    card.device.fault(Kind::Remove, 1, 0);
    card.device.set_link(false);
    assert_eq!(card.total("wake_ups"), 0);
}
