// SPDX-License-Identifier: GPL-2.0
//! A card with rings, for the tests: registers and guest memory as a driver uses them.

use std::sync::Arc;

use arbitrary_int::{u5, u18};

use crate::clock::ManualClock;
use crate::descriptor::{RxLegacy, RxResult, SIZE, TxData, TxType};
use crate::device::Device;
use crate::port::{Arrival, Datapath};
use crate::regs::bits::{Dmatxctl, Register, Rxctrl, Rxdctl, Srrctl, Txdctl};
use crate::regs::offset;
use crate::testing::{device_with, set};

pub(crate) const RX_RING: u64 = 0x1_0000;
pub(crate) const TX_RING: u64 = 0x2_0000;
pub(crate) const RX_BUFFERS: u64 = 0x10_0000;
pub(crate) const TX_DATA: u64 = 0x20_0000;
pub(crate) const COUNT: u32 = 8;
/// Advanced descriptors and buffers of 1 KiB.
pub(crate) const SRRCTL: Srrctl = Srrctl::ZERO
    .with_bsizepacket(u5::new(1))
    .with_desctype(Srrctl::ADVANCED);

pub(crate) struct Card {
    pub(crate) device: Arc<Device>,
    pub(crate) path: Datapath,
    pub(crate) clock: Arc<ManualClock>,
}

impl Card {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        let device = Arc::new(device_with(Arc::clone(&clock)));
        let path = Datapath::new(Arc::clone(&device));
        Self {
            device,
            path,
            clock,
        }
    }

    pub(crate) fn write(&self, at: u32, value: u32) {
        self.device.register_write(at, value);
    }

    /// Writes a register; of an array, the first one.
    pub(crate) fn set<R: Register>(&self, value: R) {
        set(&self.device, value);
    }

    /// Receive ring 0 with all but one descriptor free, buffers of 1 KiB.
    pub(crate) fn receive_ring(&self) {
        for i in 0..u64::from(COUNT) {
            self.free(i);
        }
        self.write(offset::RDBAL, RX_RING as u32);
        self.write(offset::RDLEN, COUNT * SIZE);
        self.set(SRRCTL);
        self.set(Rxdctl::ZERO.with_enable(true));
        self.write(offset::RDT, COUNT - 1);
        self.set(Rxctrl::ZERO.with_rxen(true));
    }

    pub(crate) fn free(&self, i: u64) {
        let view = self.device.memory.view();
        view.store64(RX_RING + i * 16, RX_BUFFERS + i * 0x800)
            .expect("in memory");
        view.store64(RX_RING + i * 16 + 8, 0).expect("in memory");
    }

    pub(crate) fn transmit_ring(&self) {
        self.write(offset::TDBAL, TX_RING as u32);
        self.write(offset::TDLEN, COUNT * SIZE);
        self.set(Txdctl::ZERO.with_enable(true));
        self.set(Dmatxctl::ZERO.with_te(true));
    }

    /// Puts data descriptor `i` for the buffer at `low` in place.
    pub(crate) fn descriptor(&self, i: u32, low: u64, high: TxData) {
        self.quadwords(i, low, high.raw_value());
    }

    /// Puts transmit descriptor `i` of any kind in place.
    pub(crate) fn quadwords(&self, i: u32, low: u64, high: u64) {
        let at = TX_RING + u64::from(i) * 16;
        let view = self.device.memory.view();
        view.store64(at, low).expect("in memory");
        view.store64(at + 8, high).expect("in memory");
    }

    pub(crate) fn data(&self, at: u64, bytes: &[u8]) {
        self.device
            .memory
            .view()
            .write(at, bytes)
            .expect("in memory");
    }

    pub(crate) fn receive(&mut self, frame: &[u8]) -> Arrival {
        assert!(self.path.begin());
        let arrival = self.path.receive(0, frame);
        self.path.end();
        arrival
    }

    pub(crate) fn transmit(&mut self) -> Vec<Vec<u8>> {
        self.transmit_at(self.device.clock.now())
    }

    pub(crate) fn transmit_at(&mut self, now: u64) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        assert!(self.path.begin_at(now));
        self.path.transmit(1 << 20, |frame, link| {
            assert!(link);
            frames.push(frame.to_vec());
        });
        self.path.end();
        frames
    }

    fn high(&self, ring: u64, i: u32) -> u64 {
        self.device
            .memory
            .view()
            .load64(ring + u64::from(i * SIZE) + 8)
            .expect("in memory")
    }

    /// The write-back of receive descriptor `i`, of the advanced kind.
    pub(crate) fn result(&self, i: u32) -> RxResult {
        RxResult::new_with_raw_value(self.high(RX_RING, i))
    }

    /// The write-back of receive descriptor `i`, of the legacy kind.
    pub(crate) fn legacy(&self, i: u32) -> RxLegacy {
        RxLegacy::new_with_raw_value(self.high(RX_RING, i))
    }

    /// Whether the status of transmit descriptor `i` was reported.
    pub(crate) fn done(&self, i: u32) -> bool {
        TxData::new_with_raw_value(self.high(TX_RING, i)).dd()
    }

    pub(crate) fn total(&self, name: &str) -> u64 {
        let totals = self.device.totals.snapshot();
        totals
            .iter()
            .find(|(known, _)| *known == name)
            .expect("a total")
            .1
    }
}

/// A data descriptor of a packet that goes on.
pub(crate) fn part(length: usize) -> TxData {
    TxData::ZERO
        .with_dext(true)
        .with_dtyp(TxType::Data)
        .with_dtalen(length as u16)
        .with_paylen(u18::new(length as u32))
}

/// The last data descriptor of a packet, whose status is to be reported.
pub(crate) fn whole(length: usize) -> TxData {
    part(length).with_eop(true).with_rs(true)
}
