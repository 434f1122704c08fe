// SPDX-License-Identifier: GPL-2.0
//! Breaches of the rules about packets that the card cuts, and about the hash.

use std::collections::BTreeSet;

use arbitrary_int::u18;

use super::{Driver, context, good};
use crate::card::TX_DATA;
use crate::checksum::{finish, sum};
use crate::descriptor::{Transport, TxContextHigh, TxData};
use crate::packet::{be16, put_be16};
use crate::regs::bits::{Mrqc, Rxcsum};
use crate::regs::offset;
use crate::testing::tcp_send;

/// Bytes of its headers.
const HEADERS: usize = 14 + 20 + 20;

/// A send in segments of 1,000 bytes, as the contract wants it.
pub(super) struct Send {
    data: Vec<u8>,
    mac_len: u8,
    ip_len: u16,
    l4_len: u8,
    mss: u16,
    request: TxData,
}

impl Send {
    fn new() -> Self {
        Self::of(HEADERS + 3000)
    }

    /// One of so many bytes, in one buffer.
    pub(super) fn of(length: usize) -> Self {
        let payload = length - HEADERS;
        let data = tcp_send(&vec![0x5a; payload]);
        let request = good(data.len())
            .with_paylen(u18::new(payload as u32))
            .with_tse(true)
            .with_txsm(true)
            .with_ixsm(true);
        Self {
            data,
            mac_len: 14,
            ip_len: 20,
            l4_len: 20,
            mss: 1000,
            request,
        }
    }

    pub(super) fn broken(&self) -> BTreeSet<&'static str> {
        let (low, high) = context(self.mac_len, self.ip_len, true, Transport::Tcp);
        let high = TxContextHigh::new_with_raw_value(high.raw_value())
            .with_l4len(self.l4_len)
            .with_mss(self.mss);
        let high = TxData::new_with_raw_value(high.raw_value());
        Driver::breaks_with(&self.data, &[(low, high), (TX_DATA, self.request)])
    }
}

/// The headers of tunnels behind IPv4, by the protocol in it: those up to the inner IPv4, which may
/// be behind Ethernet.
const TUNNELS: [(u8, &[u8], bool); 5] = [
    (4, &[], false),
    (47, &[0, 0, 8, 0], false),
    (47, &[0x20, 0, 0x65, 0x58, 0, 0, 0, 7], true),
    (
        47,
        &[0xb0, 0, 0x65, 0x58, 1, 2, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1],
        true,
    ),
    (
        17,
        &[0x30, 1, 0x12, 0xb5, 4, 0, 0, 0, 8, 0, 0, 0, 0, 0, 7, 0],
        true,
    ),
];

impl Send {
    /// The same within a tunnel.
    fn within(protocol: u8, headers: &[u8], ethernet: bool) -> Self {
        let mut send = Self::new();
        let inner = send.data.split_off(if ethernet { 0 } else { 14 });
        let mut data = tcp_send(&[])[..34].to_vec();
        data[23] = protocol;
        data.extend_from_slice(headers);
        let tunnel = headers.len() + if ethernet { 34 } else { 20 };
        data.extend_from_slice(&inner);
        let cancels = finish(sum(&data[34..34 + tunnel], 0));
        put_be16(&mut data, 24, cancels);
        send.request = good(data.len())
            .with_paylen(u18::new(3000))
            .with_tse(true)
            .with_txsm(true)
            .with_ixsm(true);
        send.ip_len = 20 + tunnel as u16;
        send.data = data;
        send
    }
}

#[test]
fn rules_are_kept_in_tunnels() {
    for (protocol, headers, ethernet) in TUNNELS {
        let send = Send::within(protocol, headers, ethernet);
        assert_eq!(send.broken(), BTreeSet::new(), "{protocol} {headers:?}");
    }
}

#[test]
fn rules_are_broken_in_tunnels() {
    for (protocol, headers, ethernet) in TUNNELS {
        let within = || Send::within(protocol, headers, ethernet);
        let mut send = within();
        put_be16(&mut send.data, 24, 0);
        assert_eq!(send.broken(), BTreeSet::from(["tx-tse-fields"]));
        send = within();
        let sequence = usize::from(send.ip_len) + 14 + 16;
        put_be16(&mut send.data, sequence, 0x1234);
        assert_eq!(send.broken(), BTreeSet::from(["tx-tse-fields"]));
        send = within();
        send.ip_len += 4;
        assert!(send.broken().contains("tx-context-headers"));
        // An unknown tunnel.
        send = within();
        send.data[23] = 99;
        assert!(send.broken().contains("tx-context-headers"));
    }
}

impl Send {
    /// The same behind MPLS labels.
    fn labelled(labels: &[u8]) -> Self {
        let mut send = Self::new();
        put_be16(&mut send.data, 12, 0x8847);
        send.data.splice(14..14, labels.iter().copied());
        send.mac_len = 14 + labels.len() as u8;
        send.request = good(send.data.len())
            .with_paylen(u18::new(3000))
            .with_tse(true)
            .with_txsm(true)
            .with_ixsm(true);
        send
    }

    /// With sums alone, of a packet that fits a frame.
    fn summed(mut self, of_ip: bool) -> Self {
        self.data.truncate(1500);
        self.request = good(self.data.len()).with_txsm(true).with_ixsm(of_ip);
        self
    }

    /// With the labels as a part of the network header.
    fn with_labels_in_ip(mut self) -> Self {
        self.ip_len += u16::from(self.mac_len) - 14;
        self.mac_len = 14;
        self
    }
}

#[test]
fn rules_about_labels() {
    let agrees = |send: Send| !send.broken().contains("tx-context-headers");
    for labels in [&[0, 6, 0x41, 64][..], &[0, 6, 0x40, 64, 0, 7, 0x01, 64]] {
        let labelled = || Send::labelled(labels);
        assert_eq!(labelled().broken(), BTreeSet::new());
        assert!(agrees(labelled().summed(true)));
        assert!(agrees(labelled().summed(false).with_labels_in_ip()));
        // The header that the card changes is behind them.
        assert!(!agrees(labelled().summed(true).with_labels_in_ip()));
        assert!(!agrees(labelled().with_labels_in_ip()));
        let mut without = labelled().summed(false);
        without.mac_len = 14;
        assert!(!agrees(without));
    }
    // Labels without an end.
    assert!(!agrees(Send::labelled(&[0; 4]).summed(false)));
}

/// A way to break such a rule, if it is one.
pub(super) fn breach(rule: &str) -> Option<BTreeSet<&'static str>> {
    let mut send = Send::new();
    match rule {
        "tx-tse-mss" => send.mss = 0,
        "tx-tse-sums" => send.request = send.request.with_ixsm(false),
        "tx-tse-l4len" => {
            send.l4_len = 24;
            send.request = send.request.with_paylen(u18::new(2996));
        }
        "tx-tse-fields" => put_be16(&mut send.data, 16, 3040),
        "rss-hash" => return Some(hash(Rxcsum::ZERO)),
        _ => return None,
    }
    Some(send.broken())
}

fn hash(rxcsum: Rxcsum) -> BTreeSet<&'static str> {
    let driver = Driver::new();
    driver.reset();
    driver.initialise();
    for (table, words) in [(offset::RETA, 32), (offset::RSSRK, 10)] {
        for i in 0..words {
            driver.write(table + 4 * i, i);
        }
    }
    driver.set(rxcsum);
    driver.set(Mrqc::ZERO.with_mrqe(Mrqc::RSS));
    driver.receiver();
    driver.broken()
}

#[test]
fn kept_rules() {
    assert_eq!(Send::new().broken(), BTreeSet::new());
    assert_eq!(hash(Rxcsum::ZERO.with_pcsd(true)), BTreeSet::new());
}

#[test]
fn each_breach_is_one_rule() {
    for rule in [
        "tx-tse-mss",
        "tx-tse-sums",
        "tx-tse-l4len",
        "tx-tse-fields",
        "rss-hash",
    ] {
        assert_eq!(breach(rule), Some(BTreeSet::from([rule])));
    }
}

#[test]
fn each_field_counts() {
    let broken = |at: usize, value: fn(u16) -> u16| {
        let mut send = Send::new();
        let now = be16(&send.data, at);
        put_be16(&mut send.data, at, value(now));
        send.broken()
    };
    let fields = BTreeSet::from(["tx-tse-fields"]);
    assert_eq!(broken(24, |_| 1), fields);
    // The length of the payload in the sum of the pseudo header.
    assert_eq!(broken(50, |sum| sum.wrapping_add(3020)), fields);
    let mut send = Send::new();
    send.request = send.request.with_txsm(false);
    assert_eq!(send.broken(), BTreeSet::from(["tx-tse-sums"]));
    send = Send::new();
    send.mss = 15_900;
    assert_eq!(send.broken(), BTreeSet::from(["tx-tse-mss"]));
    for (headers, too_long) in [(512, false), (513, true)] {
        send = Send::new();
        send.ip_len = headers - 34;
        assert_eq!(send.broken().contains("tx-tse-mss"), too_long);
    }
}
