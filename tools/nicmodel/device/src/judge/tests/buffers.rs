// SPDX-License-Identifier: GPL-2.0
//! Receive buffers that share a page.

use std::collections::BTreeSet;

use super::Driver;
use crate::card::{RX_BUFFERS, RX_RING};
use crate::judge::rules;
use crate::regs::bits::{Fctrl, Hlreg0, Maxfrs};
use crate::testing::udp_frame;

/// Room in front of a frame.
const HEADROOM: u64 = 128;

/// Receives a frame into each half of a page, with buffers of 2 KiB and that frame limit.
fn halves(limit: u16) -> BTreeSet<&'static str> {
    let mut driver = Driver::new();
    driver.start();
    driver.set(driver.read::<Hlreg0>().with_jumboen(true));
    driver.set(Maxfrs::ZERO.with_mfs(limit));
    driver.set(Fctrl::ZERO.with_upe(true));
    for half in 0..2 {
        let at = RX_BUFFERS + half * 0x800 + HEADROOM;
        let view = driver.card.device.memory.view();
        view.store64(RX_RING + half * 16, at).expect("in memory");
    }
    for _ in 0..2 {
        driver.card.receive(&udp_frame(60));
    }
    assert!((0..2).all(|half| driver.card.result(half).status().dd()));
    driver.broken()
}

/// A way to break such a rule, if it is one.
pub(super) fn breach(rule: &str) -> Option<BTreeSet<&'static str>> {
    (rule == rules::RX_HALF).then(|| halves(9018))
}

#[test]
fn the_limit_keeps_frames_within_a_half() {
    // With a tag, and without the frame check sequence.
    let room = 0x800 - HEADROOM as u16;
    assert_eq!(halves(1518), BTreeSet::new());
    assert_eq!(halves(room), BTreeSet::new());
    assert_eq!(halves(room + 1), BTreeSet::from([rules::RX_HALF]));
}
