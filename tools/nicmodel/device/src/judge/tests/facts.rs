// SPDX-License-Identifier: GPL-2.0
//! Facts that a second reading of the sources has found: limits that rules lacked, and freedom they
//! did not leave.

use std::collections::BTreeSet;

use arbitrary_int::{u2, u3, u5, u6, u9, u14, u18};

use super::{Driver, SRRCTL, context, good};
use crate::card::{RX_RING, TX_DATA};
use crate::descriptor::{SIZE, Transport};
use crate::fault::Kind;
use crate::packet::{UDP, put_be16};
use crate::regs::bits::{
    Causes, Ctrl, Eitr, Gpie, Ivar, Rdrxctl, Register, Rscctl, Rxdctl, Srrctl,
};
use crate::regs::offset;
use crate::testing::udp_frame;

#[test]
fn a_reset_leaves_the_values_of_the_datasheet() {
    let driver = Driver::new();
    driver.reset();
    // 2 KiB of data, and 256 bytes of headers.
    assert_eq!(driver.read::<Srrctl>().raw(), 0x402);
    assert_eq!(
        driver
            .card
            .device
            .register_read(offset::SRRCTL_HIGH + 63 * 0x40),
        0x402
    );
    let rdrxctl = driver.read::<Rdrxctl>();
    assert!(!rdrxctl.crcstrip() && rdrxctl.rscfrstsize().value() == 8);
}

fn initialised() -> Driver {
    let driver = Driver::new();
    driver.reset();
    driver.initialise();
    driver
}

#[test]
fn both_kinds_of_reset_may_be_asked_for_at_once() {
    let driver = Driver::new();
    driver.set(Ctrl::ZERO.with_rst(true).with_lnk_rst(true));
    assert!(driver.poll::<Ctrl>(|ctrl| !ctrl.rst()));
    assert_eq!(driver.broken(), BTreeSet::new());
}

#[test]
fn a_link_that_firmware_holds_is_reset_only_when_it_is_down() {
    for (held, up) in [(false, true), (true, false), (true, true)] {
        let driver = Driver::new();
        driver.start();
        assert!(driver.card.device.link());
        if held {
            driver.card.device.fault(Kind::Veto, 1, 0);
        }
        driver.card.device.set_link(up);
        driver.stop();
        if !driver.master_disable() {
            driver.flush();
        }
        driver.set(driver.read::<Ctrl>().with_lnk_rst(true));
        let broken = driver.broken();
        assert_eq!(broken.contains("reset-kind"), held && up, "{broken:?}");
    }
}

#[test]
fn rings_have_8192_descriptors_at_most() {
    for (length, broken) in [(8192, None), (8192 + 8, Some("ring-length"))] {
        let driver = initialised();
        driver.ring(offset::RDBAL, RX_RING);
        driver.write(offset::RDLEN, length * SIZE);
        driver.set(SRRCTL);
        driver.write(offset::DCA_RXCTRL, 0);
        driver.set(Rxdctl::ZERO.with_enable(true));
        assert_eq!(driver.broken(), broken.into_iter().collect());
    }
}

/// The rules that such buffers break, without coalescing.
fn buffers(srrctl: Srrctl) -> BTreeSet<&'static str> {
    let driver = initialised();
    driver.receive_queue_with(srrctl);
    driver.broken()
}

#[test]
fn only_headers_that_are_split_need_a_size() {
    assert_eq!(
        buffers(SRRCTL.with_bsizeheader(u6::new(0))),
        BTreeSet::new()
    );
    let blamed = BTreeSet::from(["srrctl"]);
    // The datasheet says not to use them on this card.
    assert_eq!(buffers(SRRCTL.with_desctype(u3::new(2))), blamed);
    assert_eq!(
        buffers(SRRCTL.with_bsizepacket(u5::new(16))),
        BTreeSet::new()
    );
    assert_eq!(buffers(SRRCTL.with_bsizepacket(u5::new(17))), blamed);
}

/// The rules that a queue breaks that coalesces in buffers of so many KiB, with an interval and a
/// delay of such values.
fn coalesces(kib: u8, interval: u16, delay: u8) -> BTreeSet<&'static str> {
    let driver = initialised();
    driver.set(driver.read::<Gpie>().with_rsc_delay(u3::new(delay)));
    driver.set(Rscctl::ZERO.with_rscen(true).with_maxdesc(u2::new(3)));
    driver.set(Ivar::from_raw(0x80));
    driver.set(Eitr::ZERO.with_itr_interval(u9::new(interval)));
    driver.receive_queue_with(SRRCTL.with_bsizepacket(u5::new(kib)));
    driver.write(offset::EIMS_EX, 1);
    driver.broken()
}

#[test]
fn queues_that_coalesce_have_2_kib_a_buffer() {
    assert_eq!(coalesces(2, 5, 0), BTreeSet::new());
    assert_eq!(coalesces(1, 5, 0), BTreeSet::from(["rsc-buffers"]));
}

#[test]
fn the_interval_of_coalescing_is_more_than_its_delay() {
    // Units of 2 us, and of 4 us.
    assert_eq!(coalesces(2, 3, 0), BTreeSet::new());
    assert_eq!(coalesces(2, 2, 0), BTreeSet::from(["rsc-moderation"]));
    assert_eq!(coalesces(2, 17, 7), BTreeSet::new());
    assert_eq!(coalesces(2, 16, 7), BTreeSet::from(["rsc-moderation"]));
}

#[test]
fn other_causes_are_not_cleared_by_themselves() {
    let driver = Driver::new();
    driver.start();
    driver.write(offset::EIAC, 0xffff | 1 << 30);
    driver.write(offset::EIMS_EX, 1);
    assert_eq!(driver.broken(), BTreeSet::new());
    let lsc = Causes::ZERO.with_other(u14::new(1 << 4)).raw_value();
    driver.write(offset::EIAC, 0xffff | lsc);
    driver.write(offset::EIMS_EX, 1);
    assert_eq!(driver.broken(), BTreeSet::from(["auto-clear"]));
}

/// The rules that a tail breaks behind a packet in two buffers, and at one of its descriptors.
pub(super) fn tail(descriptors: u32) -> BTreeSet<&'static str> {
    let driver = Driver::started(&udp_frame(100));
    let (low, high) = context(14, 20, true, Transport::Udp);
    let last = good(50).with_paylen(u18::new(100));
    let first = last.with_eop(false).with_rs(false);
    driver.card.quadwords(0, low, high.raw_value());
    driver.card.quadwords(1, TX_DATA, first.raw_value());
    driver.card.quadwords(2, TX_DATA + 50, last.raw_value());
    driver.write(offset::TDT, descriptors);
    driver.broken()
}

#[test]
fn tails_are_behind_packets() {
    assert_eq!(tail(3), BTreeSet::new());
    // Behind the context, and behind the first buffer.
    for descriptors in [1, 2] {
        assert_eq!(tail(descriptors), BTreeSet::from(["tail-packet"]));
    }
}

/// A UDP packet over IPv6.
fn over_ipv6() -> Vec<u8> {
    let mut data = vec![0; 14 + 40 + 8 + 38];
    put_be16(&mut data, 12, 0x86dd);
    data[14] = 0x60;
    put_be16(&mut data, 18, 46);
    data[20] = UDP;
    put_be16(&mut data, 58, 46);
    data
}

#[test]
fn ipv6_has_no_checksum_of_its_header() {
    let data = over_ipv6();
    let (low, high) = context(14, 40, false, Transport::Udp);
    let send = |ip| {
        let request = good(data.len()).with_txsm(true).with_ixsm(ip);
        Driver::breaks_with(&data, &[(low, high), (TX_DATA, request)])
    };
    assert_eq!(send(false), BTreeSet::new());
    assert_eq!(send(true), BTreeSet::from(["tx-context-type"]));
}
