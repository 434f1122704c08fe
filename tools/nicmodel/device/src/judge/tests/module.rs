// SPDX-License-Identifier: GPL-2.0
//! Breaches of the rules about modules, the laser, and what is shared with firmware.

use std::collections::BTreeSet;

use arbitrary_int::traits::Integer;
use arbitrary_int::{u2, u5, u14};

use super::Driver;
use crate::fault::Kind as Fault;
use crate::module::{Kind, Module};
use crate::regs::bits::{Autoc, Autoc2, Eec, Eerd, Esdp, Gssr, I2cctl, Swsm};
use crate::regs::offset;

/// Milliseconds in nanoseconds.
const MS: u64 = 1_000_000;

impl Driver {
    /// Writes SW_FW_SYNC as the owner of the semaphores around it.
    fn share(&self, gssr: Gssr) {
        assert!(!self.read::<Swsm>().smbi());
        self.set(Swsm::ZERO.with_smbi(true).with_swesmbi(true));
        assert!(self.read::<Swsm>().swesmbi());
        self.set(gssr);
        self.set(Swsm::ZERO);
    }

    fn owns_mac(&self, owns: bool) {
        self.share(Gssr::ZERO.with_sw_mac(owns));
    }

    /// Writes the settings for the module.
    pub(super) fn set_up_module(&self) {
        self.owns_mac(true);
        self.write(offset::CORECTL, 1);
        self.owns_mac(false);
    }

    /// Addresses the module. Returns whether it answers.
    fn address_module(&self) -> bool {
        const ADDRESS: u8 = 0xa0;
        let lines = |clock, data| {
            let lines = I2cctl::ZERO.with_clk_out(clock).with_data_out(data);
            self.set(lines);
        };
        self.share(Gssr::ZERO.with_sw_phy(u2::new(1)));
        lines(true, true);
        lines(true, false);
        for bit in (0..8).rev() {
            let data = ADDRESS >> bit & 1 != 0;
            lines(false, data);
            lines(true, data);
        }
        lines(false, true);
        lines(true, true);
        let answers = !self.read::<I2cctl>().data_in();
        lines(false, false);
        lines(true, false);
        lines(true, true);
        self.share(Gssr::ZERO);
        answers
    }

    fn restart_link(&self) {
        self.set(Autoc2::ZERO);
        self.set(self.read::<Autoc>().with_restart_an(true));
    }
}

/// A way to break such a rule, if it is one.
pub(super) fn breach(rule: &str) -> Option<BTreeSet<&'static str>> {
    let driver = Driver::new();
    match rule {
        "i2c-semaphore" => driver.set(I2cctl::ZERO.with_clk_out(true)),
        "corectl-semaphore" => driver.write(offset::CORECTL, 1),
        "eeprom-busy" => {
            driver.poll::<Eec>(|eec| eec.auto_rd());
            for word in [1, 2] {
                driver.set(Eerd::ZERO.with_addr(u14::new(word)).with_start(true));
            }
        }
        "module-init" => driver.restart_link(),
        "laser-time" => {
            driver.set_up_module();
            driver.set(Esdp::ZERO.with_sdp3_data(true));
            driver.set(Esdp::ZERO);
            driver.clock.advance(90 * MS);
            driver.restart_link();
        }
        "link-veto" => {
            driver.card.device.fault(Fault::Veto, 1, 0);
            driver.set(Esdp::ZERO.with_sdp3_data(true));
        }
        "autoc-semaphore" => {
            driver.card.device.fault(Fault::Lesm, 1, 0);
            driver.set(Autoc::ZERO);
        }
        _ => return None,
    }
    Some(driver.broken())
}

#[test]
fn each_breach_is_one_rule() {
    for rule in [
        "i2c-semaphore",
        "corectl-semaphore",
        "eeprom-busy",
        "module-init",
        "laser-time",
        "link-veto",
        "autoc-semaphore",
    ] {
        assert_eq!(breach(rule), Some(BTreeSet::from([rule])));
    }
}

#[test]
fn kept_rules() {
    let driver = Driver::new();
    let device = &driver.card.device;
    driver.share(Gssr::ZERO.with_sw_phy(u2::new(1)));
    driver.set(I2cctl::ZERO.with_clk_out(true));
    driver.share(Gssr::ZERO);
    driver.set_up_module();
    driver.set(Esdp::ZERO.with_sdp3_data(true));
    driver.set(Esdp::ZERO);
    driver.clock.advance(100 * MS);
    driver.restart_link();
    // The laser may go on whatever the firmware says.
    driver.set(Esdp::ZERO.with_sdp3_data(true));
    device.fault(Fault::Veto, 1, 0);
    driver.set(Esdp::ZERO);
    device.faults.clear();
    driver.clock.advance(100 * MS);
    // A cage that is empty, or holds what cannot be used or has no settings, needs none.
    let mut cable = Module::new(Kind::Passive);
    cable.id[8] = 0x08;
    for module in [None, Some(Module::new(Kind::Qsfp)), Some(cable)] {
        let is_there = module.is_some();
        device.set_module(module);
        assert_eq!(driver.address_module(), is_there);
        driver.restart_link();
    }
    device.fault(Fault::Lesm, 1, 0);
    driver.owns_mac(true);
    driver.restart_link();
    assert!(driver.poll::<Eec>(|eec| eec.auto_rd()));
    for word in [1, 2] {
        driver.set(Eerd::ZERO.with_addr(u14::new(word)).with_start(true));
        assert!(driver.read::<Eerd>().done());
    }
    assert_eq!(driver.broken(), BTreeSet::new());
}

#[test]
fn another_module_needs_its_settings_once_it_has_answered() {
    let driver = Driver::new();
    driver.set_up_module();
    driver.restart_link();
    let device = &driver.card.device;
    device.set_module(Some(Module::new(Kind::Passive)));
    // No driver can know of it yet, and a reset of the card does not tell.
    driver.restart_link();
    device.slow().sfp.release();
    driver.restart_link();
    assert_eq!(driver.broken(), BTreeSet::new());
    assert!(driver.address_module());
    device.slow().sfp.release();
    driver.restart_link();
    assert_eq!(driver.broken(), BTreeSet::from(["module-init"]));
}

#[test]
fn dead_firmware_holds_what_it_has_until_it_is_taken() {
    let driver = Driver::new();
    driver.card.device.fault(Fault::FirmwareDead, 1, 0);
    assert_eq!(driver.read::<Gssr>().firmware(), u5::new(0x1e));
    assert_eq!(driver.read::<Gssr>().firmware(), u5::new(0x1e));
    driver.share(driver.read::<Gssr>().with_firmware(u5::ZERO));
    driver.owns_mac(true);
    assert_eq!(driver.broken(), BTreeSet::new());
    driver.card.device.fault(Fault::FirmwareDead, 1, 0);
    driver.card.device.fault(Fault::Clear, 1, 0);
    assert_eq!(driver.read::<Gssr>().firmware(), u5::ZERO);
}

#[test]
fn a_late_semaphore_is_taken_when_its_time_has_come() {
    let driver = Driver::new();
    driver.card.device.fault(Fault::LateSemaphore, 1, 90);
    for _ in 0..2 {
        assert!(driver.read::<Swsm>().smbi());
        driver.card.clock.advance(89 * MS);
        assert!(driver.read::<Swsm>().smbi());
        driver.card.clock.advance(MS);
        assert!(!driver.read::<Swsm>().smbi());
        assert!(driver.read::<Swsm>().smbi());
        driver.set(Swsm::ZERO);
    }
    assert_eq!(driver.broken(), BTreeSet::new());
}

#[test]
fn a_word_of_a_slow_eeprom_comes_late() {
    let driver = Driver::new();
    driver.card.device.fault(Fault::SlowEeprom, 1, 90);
    driver.set(Eerd::ZERO.with_start(true));
    driver.card.clock.advance(89 * MS);
    assert!(!driver.read::<Eerd>().done());
    driver.card.clock.advance(MS);
    assert!(driver.read::<Eerd>().done());
    driver.card.device.fault(Fault::Clear, 1, 0);
    driver.set(Eerd::ZERO.with_start(true));
    assert!(driver.read::<Eerd>().done());
}

#[test]
fn busy_firmware_holds_all_and_lets_go() {
    let driver = Driver::new();
    let device = &driver.card.device;
    device.faults.arm(Fault::FirmwareBusy, 2, 0);
    for busy in [true, true, false, false] {
        let all = if busy { u5::MAX } else { u5::ZERO };
        assert_eq!(driver.read::<Gssr>().firmware(), all);
    }
}
