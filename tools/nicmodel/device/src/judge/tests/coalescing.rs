// SPDX-License-Identifier: GPL-2.0
//! Queues that coalesce.

use std::collections::BTreeSet;

use arbitrary_int::{u2, u5, u6, u9};

use super::{Driver, SRRCTL};
use crate::regs::bits::{Eitr, Ivar, Rdrxctl, Register, Rscctl, Rxdctl, Srrctl};
use crate::regs::offset;

/// Up to 16 buffers.
const JOINS: Rscctl = Rscctl::ZERO.with_rscen(true).with_maxdesc(u2::new(3));

/// Starts a queue that coalesces, with these buffers.
fn start(srrctl: Srrctl) -> Driver {
    let driver = Driver::new();
    driver.reset();
    driver.initialise();
    driver.set(JOINS);
    driver.set(Ivar::from_raw(0x80));
    driver.set(Eitr::ZERO.with_itr_interval(u9::new(5)));
    driver.receive_queue_with(srrctl);
    driver.receiver();
    driver
}

fn buffers(kib: u8) -> Srrctl {
    SRRCTL
        .with_bsizepacket(u5::new(kib))
        .with_bsizeheader(u6::new(2))
}

/// A way to break such a rule, if it is one.
pub(super) fn breach(rule: &str) -> Option<BTreeSet<&'static str>> {
    match rule {
        "rsc-buffers" => Some(start(buffers(4)).broken()),
        "rsc-crc" => {
            let driver = Driver::new();
            driver.reset();
            driver.initialise();
            driver.set(driver.read::<Rdrxctl>().with_crcstrip(false));
            driver.set(JOINS);
            driver.receive_queue_with(buffers(1));
            Some(driver.broken())
        }
        "rsc-moderation" => {
            let driver = start(buffers(3));
            driver.set(Eitr::ZERO);
            driver.write(offset::EIMS_EX, 1);
            Some(driver.broken())
        }
        _ => None,
    }
}

#[test]
fn coalescing_is_set_up_before_the_queue_is_enabled() {
    let driver = start(buffers(3));
    driver.write(offset::EIMS_EX, 1);
    assert_eq!(driver.broken(), BTreeSet::new());
    driver.set(Rscctl::ZERO);
    assert_eq!(driver.broken(), BTreeSet::from(["ring-enabled"]));
}

#[test]
fn short_headers_do_for_other_queues_only() {
    let short = SRRCTL.with_bsizeheader(u6::new(1));
    assert_eq!(start(short).broken(), BTreeSet::from(["rsc-buffers"]));
    let driver = Driver::new();
    driver.reset();
    driver.initialise();
    driver.receive_queue_with(short);
    assert!(driver.read::<Rxdctl>().enable());
    assert_eq!(driver.broken(), BTreeSet::new());
}
