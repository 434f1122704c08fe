// SPDX-License-Identifier: GPL-2.0
//! Breaches of the rules about the flow director.

use std::collections::BTreeSet;

use arbitrary_int::{u2, u10};

use super::Driver;
use crate::regs::bits::{Fdircmd, Fdirctrl, Rxpbsize};
use crate::regs::offset;

const TABLE: Fdirctrl = Fdirctrl::ZERO
    .with_pballoc(u2::new(1))
    .with_perfect_match(true);
const ADD: Fdircmd = Fdircmd::ZERO.with_command(Fdircmd::ADD);

impl Driver {
    /// A driver that has set up the table, and does not receive yet.
    fn directs() -> Self {
        Self::directs_by(TABLE)
    }

    fn directs_by(table: Fdirctrl) -> Self {
        let driver = Self::new();
        driver.reset();
        driver.initialise();
        driver.set(Rxpbsize::ZERO.with_size(u10::new(448)));
        driver.set(table);
        driver
    }

    fn table_is_ready(&self) -> bool {
        self.poll::<Fdirctrl>(|control| control.init_done())
    }

    fn add_filter(&self) {
        self.write(offset::FDIRHASH, 0x0005_0123);
        self.set(ADD);
    }

    fn command_is_done(&self) -> bool {
        self.poll::<Fdircmd>(|command| command.command() == Fdircmd::NONE)
    }
}

/// A way to break such a rule, if it is one.
pub(super) fn breach(rule: &str) -> Option<BTreeSet<&'static str>> {
    let driver = Driver::directs();
    match rule {
        "fdir-receiver" => {
            assert!(driver.table_is_ready());
            driver.receiver();
            driver.set(Fdirctrl::ZERO);
        }
        "fdir-init" => driver.add_filter(),
        "fdir-command" => {
            assert!(driver.table_is_ready());
            driver.add_filter();
            driver.write(offset::FDIRIP + 12, 1);
        }
        "fdir-masks" => {
            assert!(driver.table_is_ready());
            driver.add_filter();
            assert!(driver.command_is_done());
            driver.write(offset::FDIRSIP4M, 1);
        }
        _ => return None,
    }
    Some(driver.broken())
}

#[test]
fn kept_rules() {
    let driver = Driver::directs();
    assert!(driver.table_is_ready());
    driver.write(offset::FDIRSIP4M, 1);
    driver.add_filter();
    assert!(driver.command_is_done());
    driver.add_filter();
    assert!(driver.command_is_done());
    // The same masks, and the same table once more.
    driver.write(offset::FDIRSIP4M, 1);
    driver.receiver();
    driver.set(TABLE);
    assert!(driver.table_is_ready());
    driver.write(offset::FDIRSIP4M, 2);
    driver.add_filter();
    assert_eq!(driver.broken(), BTreeSet::new());
}

#[test]
fn signatures_have_no_answer() {
    let table = TABLE.with_perfect_match(false);
    let driver = Driver::directs_by(table);
    assert!(driver.table_is_ready());
    driver.receiver();
    driver.add_filter();
    driver.add_filter();
    // The table is emptied while frames are received.
    assert!(driver.command_is_done());
    driver.set(Fdircmd::ZERO.with_clear_table(true));
    driver.set(Fdircmd::ZERO);
    driver.set(table);
    assert!(driver.table_is_ready());
    driver.add_filter();
    assert_eq!(driver.broken(), BTreeSet::new());
    // A filter that is added meanwhile gets lost.
    driver.set(table);
    driver.add_filter();
    assert_eq!(driver.broken(), BTreeSet::from(["fdir-init"]));
}

#[test]
fn filters_take_memory_from_packets() {
    let driver = Driver::directs();
    assert!(driver.table_is_ready());
    driver.set(Rxpbsize::ZERO.with_size(u10::new(449)));
    driver.receiver();
    assert_eq!(driver.broken(), BTreeSet::from(["packet-buffers"]));
}
