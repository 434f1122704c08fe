// SPDX-License-Identifier: GPL-2.0
//! A hostile guest: it writes registers, fills memory, rings doorbells and resets at random, while
//! frames arrive.
//!
//! A [`Source`] decides each step: random numbers in `random.rs`, the input of a fuzzer in
//! `tools/nicmodel/fuzz`.
#![forbid(unsafe_code)]

use std::sync::Arc;

use arbitrary_int::u5;
use nicmodel_device::clock::ManualClock;
use nicmodel_device::descriptor::{SIZE, TxData};
use nicmodel_device::device::{Device, Identity};
use nicmodel_device::fault::{Kind, LIES};
use nicmodel_device::function::PciFunction;
use nicmodel_device::port::Datapath;
use nicmodel_device::regs::bits::{
    Dmatxctl, Fctrl, Gpie, Register, Rxctrl, Rxdctl, Srrctl, Txdctl,
};
use nicmodel_device::regs::file::RegisterFile;
use nicmodel_device::regs::{map, offset};
use vm_memory::{GuestAddress, GuestMemoryMmap, GuestRegionMmap, MmapRegion};

const MEMORY: usize = 1 << 20;

/// Where a guest's decisions come from.
pub trait Source {
    /// Any number.
    fn next(&mut self) -> u64;

    /// A number below `limit`, which is not 0.
    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Whether all decisions have been made.
    fn is_used_up(&self) -> bool;
}

/// A small generator with good enough spread (xorshift*). It never ends.
pub struct Random(u64);

impl Random {
    /// The sequence follows from the seed alone.
    pub fn new(seed: u64) -> Self {
        Self(seed | 1)
    }
}

impl Source for Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn is_used_up(&self) -> bool {
        false
    }
}

/// Values at which something tends to break.
fn value(source: &mut impl Source) -> u32 {
    match source.below(6) {
        0 => 0,
        1 => u32::MAX,
        2 => 1 << source.below(32),
        3 => source.below(64) as u32,
        4 => (source.below(MEMORY as u64 * 2) as u32) & !0x7f,
        _ => source.next() as u32,
    }
}

/// A driver whose every access is drawn from a [`Source`].
pub struct Guest<S> {
    source: S,
    /// The card under attack.
    pub device: Arc<Device>,
    path: Datapath,
    clock: Arc<ManualClock>,
    frame: Vec<u8>,
}

impl<S: Source> Guest<S> {
    /// A guest whose card has its ring pages in shared memory, if `mapped`.
    pub fn new(source: S, mapped: bool) -> Self {
        let clock = Arc::new(ManualClock::default());
        let identity = Identity {
            device_id: 0x10fb,
            mac: [2, 0, 0, 0, 0, 9],
            mapped,
        };
        let regs = RegisterFile::private().expect("memory");
        let device = Arc::new(Device::new(identity, regs, clock.clone()));
        let map = GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), MEMORY)]).expect("memory");
        for region in vm_memory::GuestMemoryBackend::iter(&map) {
            let mapping = MmapRegion::new(vm_memory::GuestMemoryRegion::len(region) as usize)
                .expect("memory");
            let region = GuestRegionMmap::new(mapping, GuestAddress(0)).expect("fits");
            assert!(device.memory.insert(region));
        }
        let path = Datapath::new(device.clone());
        Self {
            source,
            device,
            path,
            clock,
            frame: Vec::new(),
        }
    }

    /// Rings that mostly make sense, so that descriptors are looked at.
    pub fn set_up(&mut self) {
        let queue = self.source.below(3) as u32 * offset::QUEUE;
        let write = |at: u32, value: u32| self.device.register_write(at, value);
        write(offset::RDBAL + queue, 0x1000);
        write(offset::RDBAH + queue, 0);
        write(offset::RDLEN + queue, 64 * SIZE);
        let srrctl = Srrctl::ZERO.with_bsizepacket(u5::new(1));
        write(offset::SRRCTL, srrctl.with_desctype(Srrctl::ADVANCED).raw());
        write(offset::RXDCTL + queue, Rxdctl::ZERO.with_enable(true).raw());
        write(offset::RDT + queue, 63);
        write(offset::RXCTRL, Rxctrl::ZERO.with_rxen(true).raw());
        let all = Fctrl::ZERO.with_mpe(true).with_upe(true).with_bam(true);
        write(offset::FCTRL, all.raw());
        write(offset::TDBAL + queue, 0x8000);
        write(offset::TDBAH + queue, 0);
        write(offset::TDLEN + queue, 64 * SIZE);
        write(offset::TXDCTL + queue, Txdctl::ZERO.with_enable(true).raw());
        write(offset::DMATXCTL, Dmatxctl::ZERO.with_te(true).raw());
        write(offset::CTRL, 0);
        write(offset::GPIE, Gpie::ZERO.with_eiame(true).raw());
        // Receive on vector 0, transmit on vector 1.
        write(offset::IVAR, 0x8180_8180);
        write(offset::EIMS_EX, u32::MAX);
    }

    fn register(&mut self) -> u32 {
        if self.source.below(8) == 0 {
            return self.source.below(0x2_0010) as u32;
        }
        let entry = &map::REGISTERS[self.source.below(map::REGISTERS.len() as u64) as usize];
        entry.offset + self.source.below(u64::from(entry.count)) as u32 * entry.stride
    }

    fn descriptors(&mut self) {
        let view = self.device.memory.view();
        for _ in 0..16 {
            let at = 0x8000 + self.source.below(64) * 16;
            let low = match self.source.below(3) {
                0 => self.source.next(),
                _ => self.source.below(MEMORY as u64),
            };
            let length = [0, 1, 13, 60, 1514, 4096, 0xffff][self.source.below(7) as usize];
            let kind = [2, 3, 3, 3, 7][self.source.below(5) as usize];
            let dext = TxData::ZERO.with_dext(true).raw_value();
            let sane = length | kind << 20 | dext | self.source.below(256) << 24;
            let high = match self.source.below(3) {
                0 => self.source.next(),
                _ => sane | self.source.next() << 32,
            };
            view.store64(at, low).expect("in memory");
            view.store64(at + 8, high).expect("in memory");
        }
    }

    fn turn(&mut self) {
        if !self.path.begin() {
            return;
        }
        for _ in 0..self.source.below(8) {
            let longest = [200, 200, 200, 12_000][self.source.below(4) as usize];
            let length = self.source.below(longest);
            self.frame.resize(length as usize, 0);
            // Most of a frame is never read: one decision is enough for all of it.
            let mut filler = Random::new(self.source.next());
            self.frame.fill_with(|| filler.next() as u8);
            if length > 24 && self.source.below(2) == 0 {
                let ethertype = [0x0800, 0x8100, 0x86dd][self.source.below(3) as usize] as u16;
                self.frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
                self.frame[14] = [0x45, 0x60, 0x4f][self.source.below(3) as usize];
                self.frame[23] = [6, 17, 132][self.source.below(3) as usize];
            }
            self.path.receive(1, &self.frame);
        }
        self.path.drain(usize::MAX);
        self.path.transmit(1 << 16, |frame, _| {
            assert!((60..=16_384).contains(&frame.len()))
        });
        self.path.end();
        self.path.take_flushed();
    }

    /// Does one thing, a bounded amount of work. Returns whether there is another one to do.
    pub fn step(&mut self) -> bool {
        match self.source.below(100) {
            0 => self.set_up(),
            1 => self.device.reset(),
            2 => {
                let kind = LIES[self.source.below(LIES.len() as u64) as usize];
                let value = match kind {
                    // It would only take time.
                    Kind::SlowPoll => 0,
                    _ => value(&mut self.source),
                };
                self.device.faults.arm(kind, 3, value);
            }
            3 => self.device.set_link(self.source.below(4) != 0),
            4..=40 => {
                let (at, value) = (self.register(), value(&mut self.source));
                self.device.register_write(at, value);
            }
            41..=50 => {
                let at = self.register();
                self.device.register_read(at);
            }
            51..=60 => self.descriptors(),
            61..=75 => {
                let queue = self.source.below(3) as u32 * offset::QUEUE;
                let tail = [offset::TDT, offset::RDT][self.source.below(2) as usize];
                let value = self.source.below(66) as u32;
                self.device.register_write(tail + queue, value);
            }
            76..=80 => self.clock.advance(self.source.below(1_000_000)),
            _ => self.turn(),
        }
        !self.source.is_used_up()
    }
}
