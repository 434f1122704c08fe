// SPDX-License-Identifier: GPL-2.0
//! Tests of registers, reset and the bus side of a device.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arbitrary_int::u14;

use crate::device::Device;
use crate::fault::Kind;
use crate::function::{Kick, PciFunction};
use crate::irq::CAUSE_LSC;
use crate::regs::bits::{Autoc, Ctrl, Eerd, Links, Mmngc, Rah, Register, Rxctrl, Status, Swsm};
use crate::regs::offset;
use crate::testing::{MAC, device, set};

/// Reads a register as a driver does.
fn get<R: Register>(device: &Device) -> R {
    R::from_raw(device.register_read(R::offset(0)))
}

/// Reads a word of the EEPROM as a driver does.
fn eeprom(device: &Device, word: u16) -> u16 {
    set(
        device,
        Eerd::ZERO.with_addr(u14::new(word)).with_start(true),
    );
    let answer = get::<Eerd>(device);
    assert!(answer.done());
    answer.data()
}

#[test]
fn eeprom_words_come_through_eerd() {
    let device = device();
    assert_eq!(eeprom(&device, 0x11), u16::from_le_bytes([MAC[0], MAC[1]]));
}

#[test]
fn the_checksum_over_eerd_is_right() {
    let device = device();
    let sum = (0..=0x3f).fold(0_u16, |sum, word| sum.wrapping_add(eeprom(&device, word)));
    assert_eq!(sum, 0xbaba);
}

#[test]
fn the_semaphore_is_taken_by_reading() {
    let device = device();
    assert!(!get::<Swsm>(&device).smbi());
    assert!(get::<Swsm>(&device).smbi());
    set(&device, Swsm::ZERO);
    assert!(!get::<Swsm>(&device).smbi());
}

#[test]
fn reset_clears_itself_and_brings_the_defaults_back() {
    let device = device();
    device.register_write(offset::RAL, 0);
    set(&device, Rxctrl::ZERO.with_rxen(true));
    device.register_write(offset::TDT, 5);
    set(&device, Ctrl::ZERO.with_rst(true));
    assert!(!get::<Ctrl>(&device).rst());
    assert_eq!(device.register_read(offset::RXCTRL), 0);
    assert_eq!(device.register_read(offset::TDT), 0);
    let low = u32::from_le_bytes([MAC[0], MAC[1], MAC[2], MAC[3]]);
    assert_eq!(device.register_read(offset::RAL), low);
    assert!(get::<Rah>(&device).av());
}

#[test]
fn counters_clear_when_read_and_ignore_writes() {
    let device = device();
    device.regs.add(offset::GPRC, 3);
    device.register_write(offset::GPRC, 99);
    assert_eq!(device.register_read(offset::GPRC), 3);
    assert_eq!(device.register_read(offset::GPRC), 0);
}

#[test]
fn link_state_shows_in_links() {
    let device = device();
    assert_eq!(get::<Links>(&device).raw(), 0x7000_0080);
    device.set_link(false);
    assert!(!get::<Links>(&device).link_up());
}

#[test]
fn a_forced_link_is_one_for_the_mac_alone() {
    let device = device();
    device.set_link(false);
    device.irq.read_eicr();
    set(&device, get::<Autoc>(&device).with_flu(true));
    assert_eq!(get::<Links>(&device).raw(), 0x7000_0080);
    assert!(!device.link());
    assert_ne!(device.irq.causes() & CAUSE_LSC, 0);
    device.irq.read_eicr();
    device.set_link(true);
    assert_eq!(
        device.irq.causes() & CAUSE_LSC,
        CAUSE_LSC,
        "it has another reason"
    );
    device.set_link(false);
    set(&device, get::<Autoc>(&device).with_flu(false));
    assert!(!get::<Links>(&device).link_up());
}

#[test]
fn a_false_link_is_seen_as_often_as_it_was_armed() {
    let device = device();
    device.faults.arm(Kind::FalseLink, 1, 0);
    assert!(get::<Links>(&device).link_up(), "it is true");
    device.set_link(false);
    assert!(get::<Links>(&device).link_up() && !device.link());
    assert!(!get::<Links>(&device).link_up());
}

#[test]
fn firmware_shows_in_eeprom_and_registers_until_it_is_mended() {
    let device = device();
    let firmware = eeprom(&device, 0x0f);
    assert_eq!(eeprom(&device, firmware + 2), 0xffff);
    assert!(!get::<Mmngc>(&device).mng_veto());
    device.fault(Kind::Lesm, 1, 0);
    device.fault(Kind::OldFirmware, 1, 0);
    device.fault(Kind::Veto, 1, 0);
    let lesm = eeprom(&device, firmware + 2);
    assert_eq!(eeprom(&device, lesm + 1), 1 << 15);
    assert!(eeprom(&device, eeprom(&device, firmware + 4) + 7) < 6);
    assert!(get::<Mmngc>(&device).mng_veto());
    device.fault(Kind::Clear, 1, 0);
    assert_eq!(eeprom(&device, firmware + 2), 0xffff);
    assert!(!get::<Mmngc>(&device).mng_veto());
}

#[test]
fn a_card_that_fails_its_self_test_is_mended() {
    let device = device();
    let sum = || (0..=0x3f).fold(0_u16, |sum, word| sum.wrapping_add(eeprom(&device, word)));
    device.fault(Kind::DamagedEeprom, 1, 0);
    device.fault(Kind::DeadRegister, 1, offset::MTA + 4);
    for at in [offset::MTA, offset::MTA + 4] {
        device.register_write(at, 7);
    }
    let words = |at| device.register_read(at);
    assert_eq!((words(offset::MTA), words(offset::MTA + 4)), (7, 0));
    assert_ne!(sum(), 0xbaba);
    device.fault(Kind::Clear, 1, 0);
    device.register_write(offset::MTA + 4, 7);
    assert_eq!((words(offset::MTA + 4), sum()), (7, 0xbaba));
}

#[test]
fn negotiation_is_held_until_it_is_mended_or_reset() {
    let device = device();
    let begun = device.register_read(offset::ANLP1);
    assert_ne!(begun, 0);
    device.fault(Kind::NoNegotiation, 1, 0);
    assert_eq!(device.register_read(offset::ANLP1), 0);
    device.fault(Kind::Clear, 1, 0);
    assert_eq!(device.register_read(offset::ANLP1), begun);
    device.fault(Kind::NoNegotiation, 1, 0);
    device.reset_registers();
    assert_eq!(device.register_read(offset::ANLP1), begun);
}

#[test]
fn master_disable_is_confirmed_in_status() {
    let device = device();
    assert!(get::<Status>(&device).gio());
    set(&device, Ctrl::ZERO.with_gio_dis(true));
    assert!(get::<Ctrl>(&device).gio_dis());
    assert!(!get::<Status>(&device).gio());
}

#[test]
fn a_stuck_card_neither_resets_nor_lets_go_of_the_bus() {
    let device = device();
    device.fault(Kind::Stuck, 1, 0);
    set(&device, Ctrl::ZERO.with_gio_dis(true).with_rst(true));
    assert!(get::<Ctrl>(&device).rst());
    assert!(get::<Status>(&device).gio());

    device.fault(Kind::Clear, 1, 0);
    assert!(!get::<Ctrl>(&device).rst(), "as after power on");
    set(&device, Ctrl::ZERO.with_gio_dis(true));
    assert!(!get::<Status>(&device).gio());
}

#[test]
fn unknown_registers_are_memory() {
    let device = device();
    device.register_write(0x1f000, 7);
    assert_eq!(device.register_read(0x1f000), 7);
    assert_eq!(device.register_read(0x1f000), 7);
}

#[test]
fn accesses_of_any_size_and_place_are_survived() {
    let device = device();
    let mut data = [0; 8];
    for offset in [
        0,
        1,
        0x1fffe,
        0x1fffc,
        0x20000,
        u64::from(u32::MAX),
        u64::MAX - 3,
    ] {
        for length in 0..=8 {
            device.bar_write(0, offset, &[0xff; 8][..length]);
            device.bar_read(0, offset, &mut data[..length]);
            device.bar_read(7, offset, &mut data[..length]);
        }
    }
    device.bar_read(0, u64::from(offset::RAL + 1), &mut data[..2]);
    assert_eq!(data[..2], MAC[1..3]);
}

#[test]
fn a_card_that_was_pulled_out_reads_ones_until_it_is_back() {
    let device = device();
    device.fault(Kind::Remove, 1, 0);
    assert_eq!(device.register_read(offset::STATUS), u32::MAX);
    assert_eq!(device.regs.load(offset::TDT), u32::MAX, "mapped pages, too");
    let mut id = [0; 2];
    device.config_read(0, &mut id);
    assert_eq!(id, [0xff, 0xff]);
    device.fault(Kind::Clear, 1, 0);
    assert_ne!(device.register_read(offset::STATUS), u32::MAX);
    assert_eq!(device.regs.load(offset::TDT), 0);
}

#[test]
fn a_lost_read_has_no_effect() {
    let device = device();
    device.regs.add(offset::GPRC, 3);
    device.faults.arm(Kind::Ones, 1, offset::GPRC);
    assert_eq!(device.register_read(offset::GPTC), 0);
    assert_eq!(device.register_read(offset::GPRC), u32::MAX);
    assert_eq!(device.register_read(offset::GPRC), 3);
}

#[test]
fn a_card_whose_registers_are_hidden_goes_on() {
    let device = device();
    device.config_write(0x04, &[0x06]);
    device.fault(Kind::Unmapped, 1, 0);
    assert_eq!(device.register_read(offset::STATUS), u32::MAX);
    set(&device, Ctrl::ZERO.with_rst(true));
    assert_eq!(device.totals.resets.load(Ordering::SeqCst), 0);
    assert!(device.is_bus_master());
    let mut id = [0; 2];
    device.config_read(0, &mut id);
    assert_eq!(id, [0x86, 0x80]);
    device.fault(Kind::Clear, 1, 0);
    assert_ne!(device.register_read(offset::STATUS), u32::MAX);
}

#[test]
fn sleep_loses_the_registers_but_not_configuration() {
    let device = device();
    device.config_write(0x04, &[0x06]);
    device.register_write(offset::RXCSUM, 1 << 13);

    device.config_write(0x44, &[0x03]);
    assert_eq!(device.register_read(offset::STATUS), u32::MAX);
    device.register_write(offset::MAXFRS, 0x1234_0000);
    assert_eq!(device.totals.asleep_accesses.load(Ordering::SeqCst), 2);

    device.config_write(0x44, &[0x00]);
    assert_eq!(device.register_read(offset::RXCSUM), 0);
    assert_ne!(device.register_read(offset::MAXFRS), 0x1234_0000);
    let mut command = [0];
    device.config_read(0x04, &mut command);
    assert_eq!(command, [0x06]);
    assert_eq!(device.totals.asleep_accesses.load(Ordering::SeqCst), 2);
}

#[test]
fn doorbells_tell_the_engine() {
    #[derive(Default)]
    struct Count(AtomicU32);
    impl Kick for Count {
        fn kick(&self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let device = device();
    let count = Arc::new(Count::default());
    device.set_kick(Arc::clone(&count) as Arc<dyn Kick>);
    device.register_write(offset::RDT, 1);
    device.register_write(offset::RXCSUM, 1);
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
}

#[test]
fn disconnect_forgets_guest_memory() {
    let device = device();
    assert!(device.memory.view().write(0, &[1]).is_ok());
    device.disconnect();
    assert!(device.memory.view().write(0, &[1]).is_err());
}
