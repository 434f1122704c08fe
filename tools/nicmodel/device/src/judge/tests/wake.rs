// SPDX-License-Identifier: GPL-2.0
//! Breaches of the rule about wake-up.

use std::collections::BTreeSet;

use arbitrary_int::u3;

use super::{Driver, rules};
use crate::function::PciFunction;
use crate::regs::bits::{Autoc2, Esdp, Register, Wufc, Wus};

impl Driver {
    /// Sleeps, as one that may wake the machine or not.
    fn sleep(&self, wakes: bool) {
        let device = &self.card.device;
        device.config_write(0x44, &[3, u8::from(wakes)]);
    }

    fn arm(&self) {
        self.set(Wus::from_raw(u32::MAX));
        self.set(Wufc::ZERO.with_mag(true));
    }

    /// Sleeps, armed, and is woken by a frame for a port that is on all the time.
    fn sleep_and_wake(&mut self) {
        self.arm();
        self.sleep(true);
        let device = &self.card.device;
        let mut frame = vec![0xff; 20];
        frame.splice(..6, device.identity.mac);
        frame.extend_from_slice(&device.identity.mac.repeat(16));
        assert!(self.card.path.begin());
        self.card.path.receive(0, &frame);
        self.card.path.end();
        device.config_write(0x44, &[0, 0]);
        self.start();
        self.stop();
    }
}

/// A way to break such a rule, if it is one.
pub(super) fn breach(rule: &str) -> Option<BTreeSet<&'static str>> {
    if rule != rules::WAKE_UP {
        return None;
    }
    let driver = Driver::new();
    driver.start();
    driver.stop();
    driver.sleep(true);
    Some(driver.broken())
}

#[test]
fn each_obstacle_is_one() {
    for (detail, hinder) in [
        (None, (|_| ()) as fn(&Driver)),
        (Some("WUFC has no filter"), |d| d.set(Wufc::ZERO)),
        (Some("AUTOC2 turns the link off"), |d| {
            d.set(Autoc2::ZERO.with_link_disable(u3::new(4)));
        }),
        // This is about other states than D3.
        (None, |d| d.set(Autoc2::ZERO.with_link_disable(u3::new(2)))),
        (Some("the laser is off"), |d| {
            d.set(d.read::<Esdp>().with_sdp3_data(true));
        }),
    ] {
        for wakes in [false, true] {
            let driver = Driver::new();
            driver.start();
            driver.stop();
            driver.arm();
            hinder(&driver);
            driver.sleep(wakes);
            let judge = driver.card.device.judge().expect("judged");
            let found = judge.breaches();
            let details: Vec<_> = found.iter().map(|breach| breach.detail.as_str()).collect();
            let expected = detail.filter(|_| wakes);
            assert_eq!(details, Vec::from_iter(expected));
        }
    }
}

#[test]
fn the_reason_of_the_last_time_has_to_be_cleared() {
    for forgets in [false, true] {
        let mut driver = Driver::new();
        driver.start();
        driver.stop();
        driver.sleep_and_wake();
        assert_eq!(driver.card.total("wake_ups"), 1);
        if forgets {
            // The link can still wake it, a frame cannot.
            driver.set(Wufc::ZERO.with_mag(true).with_lnkc(true));
            driver.sleep(true);
            assert_eq!(driver.broken(), BTreeSet::new());
            driver.card.device.set_link(false);
            driver.sleep(false);
            driver.card.device.config_write(0x44, &[0, 0]);
            driver.start();
            driver.stop();
            driver.set(Wufc::ZERO.with_mag(true).with_lnkc(true));
            driver.sleep(true);
            assert_eq!(driver.broken(), BTreeSet::from([rules::WAKE_UP]));
        } else {
            driver.sleep_and_wake();
            assert_eq!(driver.card.total("wake_ups"), 1, "PME_Status is still set");
            assert_eq!(driver.broken(), BTreeSet::new());
        }
    }
}
