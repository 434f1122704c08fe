// SPDX-License-Identifier: GPL-2.0
//! A card with rings, for the tests: registers and guest memory as a driver uses them.

use std::sync::Arc;

use crate::clock::ManualClock;
use crate::device::Device;
use crate::port::{Arrival, Datapath};
use crate::regs::offset;
use crate::testing::device_with;

pub(crate) const RX_RING: u64 = 0x1_0000;
pub(crate) const TX_RING: u64 = 0x2_0000;
pub(crate) const RX_BUFFERS: u64 = 0x10_0000;
pub(crate) const TX_DATA: u64 = 0x20_0000;
pub(crate) const COUNT: u32 = 8;
pub(crate) const DONE: u64 = 1;

pub(crate) struct Card {
    pub(crate) device: Arc<Device>,
    pub(crate) path: Datapath,
}

impl Card {
    pub(crate) fn new() -> Self {
        let device = Arc::new(device_with(Arc::new(ManualClock::default())));
        let path = Datapath::new(Arc::clone(&device));
        Self { device, path }
    }

    pub(crate) fn write(&self, at: u32, value: u32) {
        self.device.register_write(at, value);
    }

    /// Receive ring 0 with all but one descriptor free, buffers of 1 KiB.
    pub(crate) fn receive_ring(&self) {
        for i in 0..u64::from(COUNT) {
            self.free(i);
        }
        self.write(offset::RDBAL, RX_RING as u32);
        self.write(offset::RDLEN, COUNT * 16);
        self.write(offset::SRRCTL, 1 | 1 << 25);
        self.write(offset::RXDCTL, 1 << 25);
        self.write(offset::RDT, COUNT - 1);
        self.write(offset::RXCTRL, 1);
    }

    pub(crate) fn free(&self, i: u64) {
        let view = self.device.memory.view();
        view.store64(RX_RING + i * 16, RX_BUFFERS + i * 0x800)
            .expect("in memory");
        view.store64(RX_RING + i * 16 + 8, 0).expect("in memory");
    }

    pub(crate) fn transmit_ring(&self) {
        self.write(offset::TDBAL, TX_RING as u32);
        self.write(offset::TDLEN, COUNT * 16);
        self.write(offset::TXDCTL, 1 << 25);
        self.write(offset::DMATXCTL, 1);
    }

    pub(crate) fn descriptor(&self, i: u32, low: u64, high: u64) {
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

    pub(crate) fn high(&self, ring: u64, i: u32) -> u64 {
        self.device
            .memory
            .view()
            .load64(ring + u64::from(i) * 16 + 8)
            .expect("in memory")
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

/// Second quadword of an advanced data descriptor.
pub(crate) fn data(length: usize, command: u64) -> u64 {
    length as u64 | 3 << 20 | 1 << 29 | command << 24 | (length as u64) << 46
}

pub(crate) const EOP: u64 = 1;
pub(crate) const RS: u64 = 8;
pub(crate) const VLE: u64 = 0x40;
pub(crate) const TSE: u64 = 0x80;
