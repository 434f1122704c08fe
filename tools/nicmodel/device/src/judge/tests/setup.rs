// SPDX-License-Identifier: GPL-2.0
//! Breaches of the rules about buffers, firmware, causes and padding; the laser.

use std::collections::BTreeSet;

use arbitrary_int::{u2, u10};

use super::{Driver, good};
use crate::card::{TX_DATA, TX_RING, whole};
use crate::function::PciFunction;
use crate::regs::bits::{
    Autoc2, Causes, Ctrl, CtrlExt, Dmatxctl, Esdp, Fdircmd, Fdirctrl, Gpie, Hlreg0, Register,
    Rttdcs, Rxpbsize, Txdctl,
};
use crate::regs::offset;
use crate::testing::udp_frame;

/// A way to break such a rule, if it is one.
pub(super) fn breach(rule: &str) -> Option<BTreeSet<&'static str>> {
    let driver = Driver::new();
    match rule {
        "packet-buffers" => {
            driver.reset();
            driver.initialise();
            let more = Rxpbsize::ZERO.with_size(u10::new(1)).raw();
            driver.write(Rxpbsize::offset(7), more);
            driver.receiver();
        }
        "reserved-bits" => {
            driver.start();
            // A read that was lost, without SBP and UPE.
            driver.write(offset::FCTRL, 0xffff_fdfd);
        }
        "arbiter" => {
            driver.reset();
            driver.write(offset::MTQC, 0);
        }
        "rate-limiter" => {
            driver.reset();
            driver.initialise();
            // Of another queue; and of this one, but set.
            driver.limiter(1, 0);
            driver.limiter(0, 1);
            driver.ring(offset::TDBAL, TX_RING);
            driver.write(offset::DTXMXSZRQ, 0xfff);
            driver.set(Dmatxctl::ZERO.with_te(true));
            driver.set(Txdctl::ZERO.with_enable(true));
        }
        "driver-loaded" => {
            driver.reset();
            driver.initialise();
            driver.set(CtrlExt::ZERO);
            driver.write(offset::EIMS_EX, 1);
        }
        "unload-live" => {
            driver.start();
            driver.set(CtrlExt::ZERO);
        }
        "auto-clear" => {
            driver.start();
            driver.write(offset::EIAM_EX, 1);
            driver.write(offset::EIMS_EX, 1);
        }
        "cause-discarded" => {
            driver.start();
            driver.write(offset::EICR, Causes::ZERO.with_rtxq(1).raw_value());
        }
        "tx-padding" => {
            let mut driver = Driver::started(&udp_frame(60));
            driver.set(driver.read::<Hlreg0>().with_txpaden(false));
            driver.send(&[(TX_DATA, good(59).raw_value())]);
            return Some(driver.broken());
        }
        _ => return None,
    }
    Some(driver.broken())
}

#[test]
fn kept_rules() {
    let mut driver = Driver::started(&udp_frame(60));
    driver.set(Rttdcs::ZERO.with_arbdis(true));
    driver.write(offset::MTQC, 0);
    driver.set(Rttdcs::ZERO);
    // All other causes may be cleared, and queues before there are frames.
    driver.write(offset::EICR, !0xffff);
    driver.write(offset::EIAC, 1);
    driver.write(offset::EIAM_EX, 1);
    driver.write(offset::EIMS_EX, 1);
    driver.send(&[(TX_DATA, good(59).raw_value())]);
    driver.stop();
    assert!(driver.master_disable() || driver.read::<CtrlExt>().drv_load());
    driver.set(CtrlExt::ZERO);
    assert_eq!(driver.broken(), BTreeSet::new());
}

#[test]
fn a_filter_of_flow_director_is_one_write() {
    let driver = Driver::new();
    let device = &driver.card.device;
    driver.set(Fdirctrl::ZERO.with_pballoc(u2::new(1)));
    assert!(driver.poll::<Fdirctrl>(|control| control.init_done()));
    device.bar_write(0, offset::FDIRHASH.into(), &[1, 0, 0, 0, 5, 1, 0, 0]);
    // The command is done.
    assert!(driver.poll::<Fdircmd>(|command| command.raw() == 0x100));
    assert_eq!(driver.broken(), BTreeSet::new());
    device.bar_write(0, offset::FDIRHASH.into(), &[1, 0]);
    assert_eq!(driver.broken(), BTreeSet::from([super::rules::ACCESS_SIZE]));
}

#[test]
fn frames_without_a_check_sequence_are_seen() {
    let mut driver = Driver::started(&udp_frame(100));
    driver.set(driver.read::<Hlreg0>().with_txcrcen(false));
    driver.send(&[(TX_DATA, good(100).raw_value())]);
    assert_eq!(driver.broken(), BTreeSet::from(["tx-ifcs"]));
}

#[test]
fn a_frame_may_end_with_its_check_sequence() {
    let mut frame = udp_frame(100);
    frame.extend(crate::checksum::fcs(&frame).to_le_bytes());
    let broken = |frame: &[u8]| Driver::breaks_with(frame, &[(TX_DATA, whole(104))]);
    assert_eq!(broken(&frame), BTreeSet::new());
    frame[50] ^= 1;
    assert_eq!(broken(&frame), BTreeSet::from(["tx-ifcs"]));
}

#[test]
fn without_the_laser_there_is_no_link() {
    let driver = Driver::new();
    let device = &driver.card.device;
    assert!(device.link());
    driver.set(driver.read::<Esdp>().with_sdp3_data(true));
    assert!(!device.link());
    device.set_link(false);
    driver.set(driver.read::<Esdp>().with_sdp3_data(false));
    assert!(!device.link());
    device.set_link(true);
    assert!(device.link());
}

#[test]
fn a_reset_ends_the_time_without_a_laser() {
    let mut driver = Driver::started(&udp_frame(100));
    driver.set(driver.read::<Esdp>().with_sdp3_data(true));
    driver.clock.advance(4_000_000_000);
    driver.start();
    // A short loss is no reason for another reset.
    driver.card.device.set_link(false);
    driver.send(&[(TX_DATA, good(100).raw_value())]);
    driver.card.device.set_link(true);
    assert_eq!(driver.broken(), BTreeSet::new());
}

#[test]
fn a_reset_leaves_the_link_disabled() {
    let driver = Driver::new();
    driver.reset();
    assert_ne!(driver.read::<Autoc2>().link_disable().value(), 0);
}

#[test]
fn a_driver_that_waits_by_the_clock_is_blamed_for_not_looking() {
    for seed in 0..20 {
        let mut driver = Driver::with(seed, None);
        driver.set(driver.read::<Ctrl>().with_rst(true));
        driver.clock.advance(20_000_000);
        driver.set(driver.read::<Gpie>().with_multiple_msix(true));
        // Else this would be another reset.
        let ctrl = driver.read::<Ctrl>();
        assert!(!ctrl.rst(), "seed {seed}");
        driver.initialise();
        driver.set(ctrl);
        driver.transmit_queue();
        driver.card.data(TX_DATA, &udp_frame(100));
        driver.send(&[(TX_DATA, good(100).raw_value())]);
        assert!(driver.card.done(0), "seed {seed}");
        assert_eq!(driver.broken(), BTreeSet::from(["reset-wait"]));
    }
}
