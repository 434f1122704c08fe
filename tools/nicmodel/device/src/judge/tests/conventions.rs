// SPDX-License-Identifier: GPL-2.0
//! Drivers that have not been made after `ixgbe`.

use std::collections::BTreeSet;

use super::Driver;
use crate::function::PciFunction;
use crate::regs::bits::{CtrlExt, Gpie};
use crate::regs::offset;

/// A driver that tells the firmware nothing.
fn stranger(conventions: bool) -> Driver {
    let driver = Driver::judged(3, None, conventions);
    driver.start();
    driver.set(CtrlExt::ZERO);
    driver.write(offset::EIMS_EX, 1);
    driver
}

#[test]
fn other_drivers_need_not_do_as_ixgbe() {
    assert_eq!(stranger(false).broken(), BTreeSet::new());
    let broken = stranger(true).broken();
    assert_eq!(broken, BTreeSet::from(["driver-loaded", "unload-live"]));
}

#[test]
fn interrupts_need_not_be_messages() {
    let driver = Driver::new();
    driver.start();
    driver.set(Gpie::ZERO);
    driver.write(offset::EIMS, 1);
    assert_eq!(driver.broken(), BTreeSet::new());
    driver.card.device.config_write(0x72, &[0, 0x80]);
    driver.write(offset::EIMS, 1);
    assert_eq!(driver.broken(), BTreeSet::from(["gpie-msix"]));
}
