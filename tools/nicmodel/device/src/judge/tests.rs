// SPDX-License-Identifier: GPL-2.0
//! Each rule, kept and broken.

mod buffers;
mod coalescing;
mod conventions;
mod descriptors;
mod facts;
mod flow;
mod link;
mod module;
mod segmentation;
mod setup;
mod wake;

use std::collections::BTreeSet;
use std::sync::Arc;

use arbitrary_int::{u5, u6, u7, u9, u18};

use super::rules::{self, RULES};
use super::{Judge, Settings, exceptions};
use crate::card::{COUNT, Card, RX_BUFFERS, RX_RING, TX_DATA, TX_RING, part, whole};
use crate::clock::ManualClock;
use crate::descriptor::{SIZE, Transport, TxContextHigh, TxContextLow, TxData, TxType};
use crate::device::Device;
use crate::fault::Kind;
use crate::function::PciFunction;
use crate::port::Datapath;
use crate::regs::bits::{
    Autoc, Autoc2, Ctrl, CtrlExt, DcaRxctrl, Dmatxctl, Eec, Eerd, GcrExt, Gpie, Hlreg0, Rdrxctl,
    Register, Rxctrl, Rxdctl, Secrxctrl, Secrxstat, Srrctl, Status, Txdctl,
};
use crate::regs::offset;
use crate::testing::{device_with, udp_frame};

const SRRCTL: Srrctl = Srrctl::ZERO
    .with_bsizepacket(u5::new(2))
    .with_bsizeheader(u6::new(4))
    .with_desctype(Srrctl::ADVANCED);

/// A driver that keeps all rules, unless told to break one.
struct Driver {
    card: Card,
    clock: Arc<ManualClock>,
}

impl Driver {
    fn with(seed: u64, excused: Option<&'static exceptions::Driver>) -> Self {
        Self::judged(seed, excused, true)
    }

    fn judged(seed: u64, excused: Option<&'static exceptions::Driver>, conventions: bool) -> Self {
        let clock = Arc::new(ManualClock::default());
        let judge = Judge::new(Settings {
            port: 0,
            seed,
            excused,
            conventions,
        });
        let device: Arc<Device> = Arc::new(device_with(Arc::clone(&clock)).judged(judge));
        device.config_write(4, &[0x06, 0x00]);
        let path = Datapath::new(Arc::clone(&device));
        Self {
            card: Card {
                device,
                path,
                clock: Arc::clone(&clock),
            },
            clock,
        }
    }

    fn new() -> Self {
        Self::with(3, None)
    }

    fn read<R: Register>(&self) -> R {
        R::from_raw(self.card.device.register_read(R::offset(0)))
    }

    fn poll<R: Register>(&self, done: impl Fn(R) -> bool) -> bool {
        (0..200).any(|_| done(self.read()))
    }

    fn write(&self, at: u32, value: u32) {
        self.card.write(at, value);
    }

    fn set<R: Register>(&self, value: R) {
        self.card.set(value);
    }

    fn broken(&self) -> BTreeSet<&'static str> {
        let judge = self.card.device.judge().expect("judged");
        judge.breaches().iter().map(|breach| breach.rule).collect()
    }

    fn master_disable(&self) -> bool {
        self.set(self.read::<Ctrl>().with_gio_dis(true));
        self.poll::<Status>(|status| !status.gio())
    }

    fn flush(&self) {
        let hlreg0 = self.read::<Hlreg0>();
        self.set(hlreg0.with_lpbk(true));
        self.set(GcrExt::ZERO.with_buffers_clear(true));
        self.set(GcrExt::ZERO);
        self.set(hlreg0);
    }

    fn reset_once(&self) {
        self.set(self.read::<Ctrl>().with_rst(true));
        assert!(self.poll::<Ctrl>(|ctrl| !ctrl.rst()));
    }

    fn reset(&self) {
        if !self.master_disable() {
            self.flush();
            self.reset_once();
        }
        self.reset_once();
    }

    fn initialise(&self) {
        assert!(self.poll::<Eec>(|eec| eec.auto_rd()));
        assert!(self.poll::<Rdrxctl>(|rdrxctl| rdrxctl.dmaidone()));
        self.tables();
        self.set(
            self.read::<Rdrxctl>()
                .with_crcstrip(true)
                .with_rscfrstsize(u5::new(0))
                .with_rscackc(true)
                .with_fcoe_wrfix(true),
        );
        self.set(self.read::<Hlreg0>().with_rxcrcstrp(true));
        self.set(Gpie::ZERO.with_multiple_msix(true));
        self.set(CtrlExt::ZERO.with_drv_load(true));
        self.set(Autoc2::ZERO);
    }

    fn tables(&self) {
        for (table, words) in [
            (offset::MTA, 128),
            (offset::VFTA, 128),
            (offset::UTA, 128),
            (offset::MPSAR, 2),
        ] {
            for i in 0..words {
                self.write(table + 4 * i, 0);
            }
        }
    }

    fn ring(&self, page: u32, base: u64) {
        self.write(page, base as u32);
        self.write(page + 4, 0);
        self.write(page + 8, COUNT * SIZE);
        self.write(page + 0x10, 0);
        self.write(page + 0x18, 0);
    }

    fn receive_queue(&self) {
        self.receive_queue_with(SRRCTL);
    }

    fn receive_queue_with(&self, srrctl: Srrctl) {
        for i in 0..u64::from(COUNT) {
            self.card.free(i);
        }
        self.ring(offset::RDBAL, RX_RING);
        self.set(DcaRxctrl::ZERO);
        self.set(srrctl);
        self.set(Rxdctl::ZERO.with_enable(true));
        assert!(self.poll::<Rxdctl>(|rxdctl| rxdctl.enable()));
        self.write(offset::RDT, COUNT - 1);
    }

    /// Sets the rate limiter of a transmit queue; 0 is off.
    fn limiter(&self, queue: u32, value: u32) {
        self.write(offset::RTTDQSEL, queue);
        self.write(offset::RTTBCNRC, value);
    }

    fn transmit_queue(&self) {
        self.limiter(0, 0);
        self.ring(offset::TDBAL, TX_RING);
        self.write(offset::DTXMXSZRQ, 0xfff);
        self.set(Dmatxctl::ZERO.with_te(true));
        self.set(Txdctl::ZERO.with_enable(true));
        assert!(self.poll::<Txdctl>(|txdctl| txdctl.enable()));
    }

    fn receiver(&self) {
        self.set(Secrxctrl::ZERO.with_rx_dis(true));
        assert!(self.poll::<Secrxstat>(|status| status.secrx_rdy()));
        self.set(Rxctrl::ZERO.with_rxen(true));
        self.set(Secrxctrl::ZERO);
    }

    fn start(&self) {
        self.reset();
        self.initialise();
        self.transmit_queue();
        self.receive_queue();
        self.receiver();
        self.write(offset::EIMS_EX, 1);
        self.set_up_module();
        self.set(self.read::<Autoc>().with_restart_an(true));
    }

    fn stop(&self) {
        self.set(Rxctrl::ZERO);
        self.set(Rxdctl::ZERO);
        self.set(Txdctl::ZERO);
        assert!(self.poll::<Rxdctl>(|rxdctl| !rxdctl.enable()));
        assert!(self.poll::<Txdctl>(|txdctl| !txdctl.enable()));
    }

    /// Sends descriptors from the first one on.
    fn send(&mut self, descriptors: &[(u64, u64)]) {
        for (i, (low, high)) in descriptors.iter().enumerate() {
            self.card.quadwords(i as u32, *low, *high);
        }
        self.write(offset::TDT, descriptors.len() as u32);
        assert!(self.card.path.begin());
        self.card.path.transmit(1 << 20, |_, _| {});
        self.card.path.end();
    }

    /// A started card, with `frame` in memory.
    fn started(frame: &[u8]) -> Self {
        let driver = Self::new();
        driver.start();
        driver.card.data(TX_DATA, frame);
        driver
    }

    fn breaks_with(frame: &[u8], descriptors: &[(u64, TxData)]) -> BTreeSet<&'static str> {
        let mut driver = Self::started(frame);
        let raw: Vec<_> = descriptors
            .iter()
            .map(|(low, high)| (*low, high.raw_value()))
            .collect();
        driver.send(&raw);
        driver.broken()
    }
}

/// Data descriptor for all of a packet, as the contract wants it.
fn good(length: usize) -> TxData {
    whole(length).with_ifcs(true)
}

fn context(mac: u8, ip: u16, ipv4: bool, transport: Transport) -> (u64, TxData) {
    let low = TxContextLow::ZERO
        .with_maclen(u7::new(mac))
        .with_iplen(u9::new(ip));
    let high = TxContextHigh::ZERO
        .with_dext(true)
        .with_dtyp(TxType::Context)
        .with_ipv4(ipv4)
        .with_l4t(transport);
    (
        low.raw_value(),
        TxData::new_with_raw_value(high.raw_value()),
    )
}

#[test]
fn a_driver_that_keeps_the_rules_is_not_blamed() {
    for seed in 0..200 {
        let mut driver = Driver::with(seed, None);
        driver.start();
        driver.card.data(TX_DATA, &udp_frame(100));
        let (low, high) = context(14, 20, true, Transport::Udp);
        let offloaded = good(100).with_txsm(true).with_ixsm(true).with_cc(true);
        driver.send(&[(low, high.raw_value()), (TX_DATA, offloaded.raw_value())]);
        assert!(driver.card.done(1));
        driver.stop();
        driver.start();
        driver.stop();
        assert_eq!(driver.broken(), BTreeSet::new(), "seed {seed}");
    }
}

/// A way to break each rule.
fn breach(rule: &str) -> BTreeSet<&'static str> {
    let driver = Driver::new();
    match rule {
        "unknown-read" => drop(driver.card.device.register_read(0x1fff0)),
        "unknown-write" => driver.write(0x1fff0, 1),
        "read-only" => driver.write(offset::FWSM, 1),
        rules::ACCESS_SIZE => driver.card.device.bar_write(0, 2, &[0; 2]),
        "reset-wait" => {
            driver.set(Ctrl::ZERO.with_rst(true));
            driver.set(Gpie::ZERO);
        }
        "reset-kind" => {
            driver.start();
            driver.card.device.fault(Kind::Veto, 1, 0);
            driver.set(driver.read::<Ctrl>().with_lnk_rst(true));
        }
        "reset-master" => {
            driver.start();
            driver.reset_once();
        }
        "reset-flush" | "reset-twice" => return stuck_master(rule == "reset-flush"),
        "eeprom-auto-read" => {
            driver.reset();
            driver.set(Eerd::ZERO.with_start(true));
        }
        "dma-init" | "secrx-ready" | "tables" | "rdrxctl" => {
            driver.reset();
            driver.set(Rxctrl::ZERO.with_rxen(true));
        }
        "ring-enabled" => {
            driver.start();
            driver.write(offset::RDBAL, 0x1000);
        }
        "tail-disabled" => {
            driver.reset();
            driver.ring(offset::RDBAL, RX_RING);
            driver.write(offset::RDT, 1);
        }
        "enable-poll" | "enable-master" => {
            driver.reset();
            driver.card.device.config_write(4, &[0x02, 0x00]);
            driver.ring(offset::RDBAL, RX_RING);
            driver.set(Rxdctl::ZERO.with_enable(true));
            driver.write(offset::RDT, 1);
        }
        "tail-range" => {
            driver.start();
            driver.write(offset::TDT, COUNT);
        }
        "ring-base" | "ring-length" | "dmatxctl-te" | "tx-requests" => {
            driver.reset();
            driver.ring(offset::TDBAL, TX_RING + 16);
            driver.write(offset::TDLEN, 100);
            driver.set(Txdctl::ZERO.with_enable(true));
        }
        "ring-program" | "srrctl" | "dca-rxctrl" => {
            driver.reset();
            driver.set(Srrctl::ZERO);
            driver.set(Rxdctl::ZERO.with_enable(true));
        }
        "drain-wait" => {
            driver.start();
            driver.set(Rxdctl::ZERO);
            driver.set(Rxdctl::ZERO.with_enable(true));
        }
        "crc-strip" => {
            driver.reset();
            driver.initialise();
            driver.set(driver.read::<Hlreg0>().with_rxcrcstrp(false));
            driver.receiver();
        }
        "gpie-msix" => {
            driver.reset();
            driver.card.device.config_write(0x72, &[0, 0x80]);
            driver.write(offset::EIMS, 1);
        }
        "semaphore" => driver.write(offset::GSSR, 1),
        "semaphore-taken" => {
            driver.card.device.regs.store(offset::GSSR, 1 << 5);
            driver.write(offset::GSSR, 1 << 5 | 1);
        }
        "link-disabled" => {
            driver.set(Autoc2::from_raw(1 << 30));
            driver.set(Autoc::ZERO.with_restart_an(true));
        }
        "tail-packet" => return facts::tail(2),
        rules::DMA_MASTER => {
            driver.start();
            driver.card.device.config_write(4, &[0x02, 0x00]);
            let mut driver = driver;
            driver.send(&[(TX_DATA, good(60).raw_value())]);
            return driver.broken();
        }
        rules::POWER_STATE => {
            driver.card.device.config_write(0x44, &[3, 0]);
            driver.read::<Status>();
        }
        rules::DMA_OUTSIDE => return Driver::breaks_with(&[], &[(1 << 40, good(60))]),
        _ => match setup::breach(rule)
            .or_else(|| module::breach(rule))
            .or_else(|| flow::breach(rule))
            .or_else(|| link::breach(rule))
            .or_else(|| buffers::breach(rule))
            .or_else(|| coalescing::breach(rule))
            .or_else(|| wake::breach(rule))
        {
            Some(broken) => return broken,
            None => return transmit_breach(rule),
        },
    }
    driver.broken()
}

/// A way to break each rule about packets.
fn transmit_breach(rule: &str) -> BTreeSet<&'static str> {
    let frame = udp_frame(100);
    let sum = good(100).with_txsm(true);
    match rule {
        rules::TX_TYPE => {
            let kind = TxData::new_with_raw_value(good(100).raw_value() | 0xf << 20);
            Driver::breaks_with(&frame, &[(TX_DATA, kind)])
        }
        rules::TX_RS => {
            let first = part(50).with_paylen(u18::new(100)).with_ifcs(true);
            let parts = [
                (TX_DATA, first.with_rs(true)),
                (TX_DATA + 50, good(50).with_paylen(u18::new(100))),
            ];
            Driver::breaks_with(&frame, &parts)
        }
        "tx-ifcs" => Driver::breaks_with(&frame, &[(TX_DATA, whole(100))]),
        "tx-paylen" => {
            let high = good(100).with_paylen(u18::new(104));
            Driver::breaks_with(&frame, &[(TX_DATA, high)])
        }
        "tx-minimum" => Driver::breaks_with(&frame, &[(TX_DATA, good(16))]),
        "tx-maximum" => Driver::breaks_with(&frame, &[(TX_DATA, good(16_000))]),
        "tx-context" => Driver::breaks_with(&frame, &[(TX_DATA, sum)]),
        "tx-cc" => Driver::breaks_with(&frame, &[(TX_DATA, good(100).with_cc(true))]),
        "tx-context-headers" => {
            let wrong = context(14, 24, true, Transport::Udp);
            Driver::breaks_with(&frame, &[wrong, (TX_DATA, sum)])
        }
        "tx-context-type" => {
            let wrong = context(14, 20, true, Transport::Tcp);
            Driver::breaks_with(&frame, &[wrong, (TX_DATA, sum)])
        }
        _ => segmentation::breach(rule)
            .or_else(|| descriptors::breach(rule))
            .unwrap_or_else(|| panic!("no breach of {rule}")),
    }
}

/// A card whose master requests do not end, reset by a driver that forgets one thing.
fn stuck_master(forget_flush: bool) -> BTreeSet<&'static str> {
    for seed in 0.. {
        let driver = Driver::with(seed, None);
        driver.start();
        driver.stop();
        if driver.master_disable() {
            continue;
        }
        if !forget_flush {
            driver.flush();
        }
        driver.reset_once();
        if forget_flush {
            driver.reset_once();
        }
        driver.transmit_queue();
        return driver.broken();
    }
    unreachable!()
}

#[test]
fn each_rule_can_be_broken() {
    for rule in RULES {
        let broken = breach(rule.id);
        assert!(broken.contains(rule.id), "{}: {broken:?}", rule.id);
    }
}

#[test]
fn one_breach_is_one_rule() {
    for rule in [
        "ring-enabled",
        "rate-limiter",
        "tail-range",
        "crc-strip",
        "drain-wait",
        "reset-master",
        "reset-flush",
        "reset-twice",
        "tx-ifcs",
        "tx-paylen",
        "tx-buffer",
        "tx-descriptors",
        "tx-reports",
        "tx-minimum",
        "tx-context",
        "tx-context-headers",
        "tx-context-type",
        "tx-rs-eop",
        rules::LINK_LOSS,
        rules::LOOPBACK_LINK,
        rules::DMA_MASTER,
        rules::RX_HALF,
        rules::WAKE_UP,
    ] {
        assert_eq!(breach(rule), BTreeSet::from([rule]));
    }
}

#[test]
fn a_write_back_leaves_nothing_of_the_descriptor() {
    let mut driver = Driver::started(&udp_frame(100));
    driver.send(&[(TX_DATA, good(100).raw_value())]);
    let view = driver.card.device.memory.view();
    assert_ne!(view.load64(TX_RING).expect("in memory"), TX_DATA);
    let status = TxData::ZERO.with_dd(true).raw_value();
    assert_eq!(view.load64(TX_RING + 8).expect("in memory"), status);
}

#[test]
fn tables_are_garbage_after_a_reset_and_unknown_registers_always() {
    let driver = Driver::new();
    driver.reset();
    assert!((0..128).any(|i| driver.card.device.register_read(offset::MTA + 4 * i) != 0));
    let read = || driver.card.device.register_read(0x1fff0);
    assert!(read() != read() || read() != read());
}

#[test]
fn known_breaches_of_a_driver_are_counted_apart() {
    let driver = Driver::with(3, exceptions::find("ixgbe"));
    driver.reset();
    driver.set(Eerd::ZERO.with_start(true));
    let judge = driver.card.device.judge().expect("judged");
    assert_eq!(judge.counts(), (0, 1));
    driver.write(0x1fff0, 1);
    assert_eq!(judge.counts(), (1, 1));
    judge.forget();
    assert_eq!(judge.counts(), (0, 0));
}

#[test]
fn a_judge_that_looks_away_sees_nothing() {
    let driver = Driver::new();
    let judge = driver.card.device.judge().expect("judged");
    judge.pause(true);
    driver.write(0x1fff0, 1);
    driver.set(Txdctl::ZERO.with_enable(true));
    assert!(driver.read::<Txdctl>().enable(), "at once");
    assert_eq!(judge.counts(), (0, 0));
    judge.pause(false);
    // It does not know which queues have been enabled meanwhile.
    driver.write(offset::RDT, 1);
    assert_eq!(judge.counts(), (0, 0));
    driver.start();
    assert_eq!(driver.broken(), BTreeSet::new());
    driver.write(0x1fff0, 1);
    assert_eq!(judge.counts(), (1, 0));
}

#[test]
fn a_report_has_the_accesses_before_it() {
    let driver = Driver::new();
    driver.start();
    driver.write(offset::RDBAL, RX_BUFFERS as u32);
    let judge = driver.card.device.judge().expect("judged");
    let breaches = judge.breaches();
    assert_eq!(breaches[0].queue.as_deref(), Some("receive queue 0"));
    assert_eq!(breaches[0].detail, "RDBAL[0], 0x100000");
    let accesses = &breaches[0].accesses;
    assert_eq!(
        accesses.last().map(String::as_str),
        Some("RDBAL[0] <- 0x00100000")
    );
    assert_eq!(accesses.len(), super::log::KEPT);
}
