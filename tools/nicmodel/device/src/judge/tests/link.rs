// SPDX-License-Identifier: GPL-2.0
//! Frames while there is no link.

use std::collections::BTreeSet;

use super::{Driver, good};
use crate::card::TX_DATA;
use crate::fault::Kind;
use crate::judge::rules;
use crate::regs::bits::{Autoc, Hlreg0, Txdctl};
use crate::regs::offset;
use crate::testing::udp_frame;

/// Packets wait while the link is away; returns the rules that are broken when it comes back after
/// so many check-ups.
fn link_loss(resets: bool, check_ups: u32) -> BTreeSet<&'static str> {
    let mut driver = Driver::started(&udp_frame(100));
    driver.card.device.set_link(false);
    driver.send(&[(TX_DATA, good(100).raw_value())]);
    assert!(!driver.card.done(0), "nothing is sent without a link");
    driver.clock.advance(4_000_000_000);
    for _ in 0..check_ups {
        driver.card.device.register_read(offset::BPRC);
    }
    if resets {
        driver.start();
    }
    driver.card.device.set_link(true);
    driver.broken()
}

/// A frame is sent in loopback without a link; returns the rules that this breaks.
fn loopback(forces: bool) -> BTreeSet<&'static str> {
    let mut driver = Driver::started(&udp_frame(100));
    driver.card.device.set_link(false);
    driver.set(driver.read::<Hlreg0>().with_lpbk(true));
    driver.set(driver.read::<Autoc>().with_flu(forces));
    assert!(driver.card.path.begin());
    driver.card.path.receive_looped(&udp_frame(100));
    driver.card.path.end();
    driver.broken()
}

/// A way to break such a rule, if it is one.
pub(super) fn breach(rule: &str) -> Option<BTreeSet<&'static str>> {
    match rule {
        rules::LINK_LOSS => Some(link_loss(false, 4)),
        rules::LOOPBACK_LINK => Some(loopback(false)),
        _ => None,
    }
}

#[test]
fn a_forced_link_is_one_in_loopback() {
    assert_eq!(loopback(true), BTreeSet::new());
}

#[test]
fn a_reset_makes_up_for_a_link_loss() {
    assert_eq!(link_loss(true, 4), BTreeSet::new());
}

#[test]
fn a_driver_without_a_processor_is_not_late() {
    assert_eq!(link_loss(false, 3), BTreeSet::new());
}

#[test]
fn a_queue_without_a_link_does_not_drain() {
    let mut driver = Driver::started(&udp_frame(100));
    driver.card.device.set_link(false);
    driver.send(&[(TX_DATA, good(100).raw_value())]);
    driver.set(Txdctl::ZERO);
    assert!(!driver.poll::<Txdctl>(|txdctl| !txdctl.enable()));
    // A flush moves the packets into the loopback.
    driver.set(driver.read::<Hlreg0>().with_lpbk(true));
    assert!(driver.card.path.begin());
    driver.card.path.transmit(1 << 20, |_, _| {});
    driver.card.path.end();
    assert!(driver.poll::<Txdctl>(|txdctl| !txdctl.enable()));
}

#[test]
fn a_link_that_gets_lost_takes_no_packet_with_it() {
    let mut driver = Driver::started(&udp_frame(100));
    driver.card.device.faults.arm(Kind::LostLink, 1, 0);
    assert!(driver.card.transmit().is_empty());
    assert!(driver.card.device.link(), "nothing was to be sent");
    driver.send(&[(TX_DATA, good(100).raw_value())]);
    assert!(!driver.card.device.link() && !driver.card.done(0));
    driver.card.device.set_link(true);
    assert_eq!(driver.card.transmit().len(), 1, "once is enough");
}
