// SPDX-License-Identifier: GPL-2.0
//! Breaches of the rules about packets that the card cuts, and about the hash.

use std::collections::BTreeSet;

use arbitrary_int::u18;

use super::{Driver, context, good};
use crate::card::TX_DATA;
use crate::descriptor::{Transport, TxContextHigh, TxData};
use crate::packet::{be16, put_be16};
use crate::regs::bits::{Mrqc, Rxcsum};
use crate::regs::offset;
use crate::testing::tcp_send;

/// A send of 3,000 bytes in segments of 1,000, as the contract wants it.
struct Send {
    data: Vec<u8>,
    l4_len: u8,
    mss: u16,
    request: TxData,
}

impl Send {
    fn new() -> Self {
        let data = tcp_send(&[0x5a; 3000]);
        let request = good(data.len())
            .with_paylen(u18::new(3000))
            .with_tse(true)
            .with_txsm(true)
            .with_ixsm(true);
        Self {
            data,
            l4_len: 20,
            mss: 1000,
            request,
        }
    }

    fn broken(&self) -> BTreeSet<&'static str> {
        let (low, high) = context(14, 20, true, Transport::Tcp);
        let high = TxContextHigh::new_with_raw_value(high.raw_value())
            .with_l4len(self.l4_len)
            .with_mss(self.mss);
        let high = TxData::new_with_raw_value(high.raw_value());
        Driver::breaks_with(&self.data, &[(low, high), (TX_DATA, self.request)])
    }
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
}
