// SPDX-License-Identifier: GPL-2.0
//! Breaches of the rules about the number of descriptors, and the size of their buffers.

use std::collections::BTreeSet;

use arbitrary_int::{u7, u18};

use super::segmentation::Send;
use super::{Driver, good};
use crate::card::{TX_DATA, TX_RING, part};
use crate::descriptor::SIZE;
use crate::regs::bits::{Dmatxctl, Txdctl};
use crate::regs::offset;
use crate::testing::udp_frame;

/// A driver with a queue that writes back so many descriptors at a time.
fn accumulating(wthresh: u8) -> Driver {
    let driver = Driver::new();
    driver.reset();
    driver.initialise();
    driver.ring(offset::TDBAL, TX_RING);
    driver.write(offset::TDLEN, 64 * SIZE);
    driver.limiter(0, 0);
    driver.write(offset::DTXMXSZRQ, 0xfff);
    driver.set(Dmatxctl::ZERO.with_te(true));
    let wthresh = u7::new(wthresh);
    driver.set(Txdctl::ZERO.with_enable(true).with_wthresh(wthresh));
    assert!(driver.poll::<Txdctl>(|txdctl| txdctl.enable()));
    driver
}

/// Sends a packet in so many descriptors, in a queue that writes back so many at a time.
fn many(count: usize, wthresh: u8) -> BTreeSet<&'static str> {
    let mut driver = accumulating(wthresh);
    driver.card.data(TX_DATA, &udp_frame(2 * count));
    let length = u18::new(2 * count as u32);
    let high = part(2).with_ifcs(true).with_paylen(length);
    let mut parts = vec![(TX_DATA, high.raw_value()); count];
    parts[count - 1].1 = high.with_eop(true).with_rs(true).raw_value();
    driver.send(&parts);
    driver.broken()
}

/// Sends packets of which the last one alone asks for a report, in such a queue.
fn together(wthresh: u8) -> BTreeSet<&'static str> {
    let mut driver = accumulating(wthresh);
    driver.card.data(TX_DATA, &udp_frame(100));
    let mut packets = [(TX_DATA, good(100).with_rs(false).raw_value()); 3];
    packets[2].1 = good(100).raw_value();
    driver.send(&packets);
    assert!(driver.card.done(2));
    driver.broken()
}

/// A way to break such a rule, if it is one.
pub(super) fn breach(rule: &str) -> Option<BTreeSet<&'static str>> {
    match rule {
        "tx-descriptors" => Some(many(41, 0)),
        "tx-reports" => Some(together(1)),
        "tx-buffer" => Some(Send::of(0x8000).broken()),
        _ => None,
    }
}

#[test]
fn descriptors_that_are_written_back_together_leave_fewer_for_a_packet() {
    for (most, wthresh) in [(38, 0), (37, 1), (30, 8)] {
        assert_eq!(many(most, wthresh), BTreeSet::new());
        let broken = many(most + 1, wthresh);
        assert_eq!(broken, BTreeSet::from(["tx-descriptors"]));
    }
}

#[test]
fn packets_are_reported_together_unless_descriptors_are_written_back_by_their_number() {
    assert_eq!(together(0), BTreeSet::new());
    for wthresh in [1, 8] {
        assert_eq!(together(wthresh), BTreeSet::from(["tx-reports"]));
    }
}

#[test]
fn a_buffer_has_no_more_than_the_card_takes() {
    assert_eq!(Send::of(0x4000).broken(), BTreeSet::new());
    assert_eq!(Send::of(0x4001).broken(), BTreeSet::from(["tx-buffer"]));
}
