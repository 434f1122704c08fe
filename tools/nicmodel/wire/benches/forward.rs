// SPDX-License-Identifier: GPL-2.0
//! The time that the engine spends on a frame which a guest forwards from one port to the other, in
//! nanoseconds, without a kernel.
//!
//! `alone`: guest and engine take turns in one thread, and only the engine's turns are timed. This
//! compares two versions of the code. `apart`: the guest is another thread on another processor, as
//! a real guest with its tails in a shared page is, so that each cache line has to cross over. The
//! guest does as little as a driver can: the engine is the slower one.
//!
//! Only figures of the same minute on the same machine can be compared: run two builds in turn.
//!
//!     cargo bench --package nicmodel-wire --bench forward [-- alone|apart|idle [ROUNDS]]
#![allow(clippy::unwrap_used)] // it ends there

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed as RELAXED;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use arbitrary_int::{u5, u18};
use nicmodel_device::clock::{Clock, RealClock};
use nicmodel_device::descriptor::{RxResult, SIZE, TxData, TxType};
use nicmodel_device::device::{Device, Identity};
use nicmodel_device::function::{Notifier, PciFunction};
use nicmodel_device::memory::DmaMemory;
use nicmodel_device::regs::bits::{
    Dmatxctl, Mrqc, Rdrxctl, Register, Rxctrl, Rxdctl, Srrctl, Txdctl,
};
use nicmodel_device::regs::file::RegisterFile;
use nicmodel_device::regs::offset;
use nicmodel_wire::answer::Report;
use nicmodel_wire::{Fabric, Request};
use serde_json::json;
use vm_memory::{GuestAddress, GuestMemoryBackend, GuestMemoryMmap, MmapRegion, VolatileMemory};

/// As many as the testbed's: the drivers that are compared have two each.
const PORTS: usize = 4;
const MEMORY: usize = 64 << 20;
/// Descriptors of each ring.
const RING: u32 = 512;
/// Frames that a driver takes in one poll.
const BUDGET: usize = 64;
/// Frames of one measurement.
const FRAMES: u32 = 100_000;
const ROUNDS: usize = 9;
const BUFFER: u64 = 2048;
/// Of the rings, and of the memory of each port for its buffers.
const BUFFERS: u64 = 1 << 20;
const PORT: u64 = 8 << 20;

/// The guest polls: its interrupts go unheard.
struct Unheard;

impl Notifier for Unheard {
    fn signal(&self) {}
}

/// One port as its driver sees it.
struct Port<'a> {
    device: Arc<Device>,
    memory: &'a MmapRegion<()>,
    rx_ring: u64,
    tx_ring: u64,
    rx_next: u32,
    tx_next: u32,
    tx_clean: u32,
    /// The buffers in both rings.
    rx_buffers: Vec<u64>,
    tx_buffers: Vec<u64>,
}

impl<'a> Port<'a> {
    fn new(number: usize, device: Arc<Device>, memory: &'a MmapRegion<()>) -> Self {
        let base = number as u64 * PORT;
        Self {
            device,
            memory,
            rx_ring: base,
            tx_ring: base + u64::from(RING * SIZE),
            rx_next: 0,
            tx_next: 0,
            tx_clean: 0,
            rx_buffers: (0..u64::from(RING))
                .map(|i| base + BUFFERS + i * BUFFER)
                .collect(),
            tx_buffers: vec![0; RING as usize],
        }
    }

    fn write(&self, register: u32, value: u32) {
        self.device
            .bar_write(0, u64::from(register), &value.to_le_bytes());
    }

    fn set<R: Register>(&self, value: R) {
        self.write(R::offset(0), value.raw());
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        self.memory.get_atomic_ref(at as usize).unwrap()
    }

    fn up(&mut self) {
        let rings = [(offset::RDBAL, self.rx_ring), (offset::TDBAL, self.tx_ring)];
        for (low, ring) in rings {
            self.write(low, ring as u32);
            self.write(low + 8, RING * SIZE);
        }
        let srrctl = Srrctl::ZERO.with_bsizepacket(u5::new(2));
        self.set(srrctl.with_desctype(Srrctl::ADVANCED));
        self.set(Rdrxctl::ZERO.with_crcstrip(true));
        // As Linux does, with one queue or several.
        for i in 0..10 {
            self.write(offset::RSSRK + 4 * i, 0x6d5a_56da_u32.rotate_left(i));
        }
        let mrqc = Mrqc::ZERO.with_mrqe(Mrqc::RSS);
        self.set(mrqc.with_ipv4(true).with_ipv4_tcp(true));
        self.set(Dmatxctl::ZERO.with_te(true));
        self.set(Txdctl::ZERO.with_enable(true));
        self.set(Rxdctl::ZERO.with_enable(true));
        for i in 0..RING {
            self.give(i);
        }
        self.write(offset::RDT, RING - 1);
        self.set(Rxctrl::ZERO.with_rxen(true));
        for vector in 0..2 {
            self.device.set_vector(vector, Some(Arc::new(Unheard)));
        }
        self.write(offset::IVAR, 0x8180);
        self.write(offset::EIMS_EX, 3);
        // A tail in a shared page is a store, and no more.
        self.device.pages_mapped(true);
    }

    /// The next received frame: its buffer, in the place of which another one goes, and its length.
    fn receive(&mut self, spare: &mut Vec<u64>) -> Option<(u64, u16)> {
        let i = self.rx_next;
        let at = self.rx_ring + u64::from(i * SIZE);
        let raw = self.word(at + 8).load(Ordering::Acquire);
        let result = RxResult::new_with_raw_value(raw);
        if !result.status().dd() {
            return None;
        }
        let fresh = spare.pop()?;
        let buffer = std::mem::replace(&mut self.rx_buffers[i as usize], fresh);
        self.give(i);
        self.rx_next = (i + 1) % RING;
        Some((buffer, result.pkt_len()))
    }

    /// Makes receive descriptor `i` available.
    fn give(&self, i: u32) {
        let at = self.rx_ring + u64::from(i * SIZE);
        self.word(at + 8).store(0, RELAXED);
        self.word(at).store(self.rx_buffers[i as usize], RELAXED);
    }

    /// Takes back what has been sent.
    fn complete(&mut self, spare: &mut Vec<u64>) {
        while self.tx_clean != self.tx_next {
            let at = self.tx_ring + u64::from(self.tx_clean * SIZE);
            let raw = self.word(at + 8).load(Ordering::Acquire);
            if !TxData::new_with_raw_value(raw).dd() {
                break;
            }
            spare.push(self.tx_buffers[self.tx_clean as usize]);
            self.tx_clean = (self.tx_clean + 1) % RING;
        }
    }

    fn send(&mut self, buffer: u64, length: u16) {
        let at = self.tx_ring + u64::from(self.tx_next * SIZE);
        let data = TxData::ZERO
            .with_dext(true)
            .with_dtyp(TxType::Data)
            .with_eop(true)
            .with_ifcs(true)
            .with_rs(true)
            .with_dtalen(length)
            .with_paylen(u18::new(length.into()));
        self.tx_buffers[self.tx_next as usize] = buffer;
        self.word(at).store(buffer, RELAXED);
        self.word(at + 8).store(data.raw_value(), RELAXED);
        self.tx_next = (self.tx_next + 1) % RING;
    }
}

/// The router: takes a budget of frames from one port and sends them out of another.
struct Guest<'a> {
    from: Port<'a>,
    to: Port<'a>,
    /// Buffers in no ring.
    spare: Vec<u64>,
}

impl<'a> Guest<'a> {
    fn new(devices: &[Arc<Device>], memory: &'a MmapRegion<()>) -> Self {
        let mut ports: Vec<_> = devices
            .iter()
            .zip(0..)
            .map(|(device, number)| Port::new(number, Arc::clone(device), memory))
            .collect();
        for port in &mut ports {
            port.up();
        }
        let to = ports.swap_remove(1);
        let from = ports.swap_remove(0);
        let first = BUFFERS + u64::from(RING) * BUFFER;
        let spare = (0..u64::from(RING)).map(|i| first + i * BUFFER).collect();
        Self { from, to, spare }
    }

    /// One poll of a driver; returns the number of frames.
    fn poll(&mut self) -> usize {
        self.to.complete(&mut self.spare);
        let mut taken = 0;
        while taken < BUDGET {
            let Some((buffer, length)) = self.from.receive(&mut self.spare) else {
                break;
            };
            self.route(buffer);
            self.to.send(buffer, length);
            taken += 1;
        }
        if taken != 0 {
            let from = &self.from;
            let tail = (from.rx_next + RING - 1) % RING;
            from.device.regs.store(offset::RDT, tail);
            self.to.device.regs.store(offset::TDT, self.to.tx_next);
        }
        taken
    }

    /// Decrements the TTL and corrects the checksum, in the frame at `buffer`.
    fn route(&self, buffer: u64) {
        let (third, fourth) = (self.from.word(buffer + 16), self.from.word(buffer + 24));
        third.store(third.load(RELAXED) - (1 << 48), RELAXED);
        let old = fourth.load(RELAXED);
        let sum = u32::from(u16::from_be(old as u16)) + 0x100;
        let sum = ((sum + u32::from(sum >= 0xffff)) as u16).to_be();
        fourth.store(old & !0xffff | u64::from(sum), RELAXED);
    }
}

/// The model: ports of which the first two are used, and the way to talk to the fabric.
struct Model {
    devices: Vec<Arc<Device>>,
    fabric: Fabric,
    clock: Arc<dyn Clock>,
    requests: Sender<Request>,
}

impl Model {
    fn new(map: &GuestMemoryMmap<()>) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        let devices: Vec<_> = (0..PORTS)
            .map(|number| {
                let identity = Identity {
                    device_id: 0x10fb,
                    mac: [2, 0x82, 0x59, 0, 0, number as u8],
                    mapped: false,
                };
                let registers = RegisterFile::private().unwrap();
                let mut device = Device::new(identity, registers, Arc::clone(&clock));
                device.memory = DmaMemory::new(map.clone());
                Arc::new(device)
            })
            .collect();
        let (requests, inbox) = channel();
        let fabric = Fabric::new(devices.clone(), Arc::clone(&clock), inbox);
        Self {
            devices,
            fabric,
            clock,
            requests,
        }
    }

    /// Begins a run; the answer comes when it has drained.
    fn generate(&self, count: u32) -> Receiver<Result<Report, String>> {
        let spec = json!({"from": 0, "to": 1, "count": count, "expect_ttl": 63});
        let (reply, answer) = channel();
        let request = Request::Generate(serde_json::from_value(spec).unwrap(), reply);
        self.requests.send(request).unwrap();
        answer
    }

    /// The engine's share of the time per frame, with the guest in between its turns.
    fn alone(&mut self, guest: &mut Guest<'_>) -> f64 {
        let answer = self.generate(FRAMES);
        let mut spent = Duration::ZERO;
        loop {
            let begin = Instant::now();
            while self.fabric.turn().busy {}
            spent += begin.elapsed();
            while guest.poll() != 0 {}
            if let Ok(report) = answer.try_recv() {
                check(report);
                return spent.as_nanos() as f64 / f64::from(FRAMES);
            }
        }
    }

    /// The time per frame while a guest forwards on another processor.
    fn apart(&mut self) -> f64 {
        let answer = self.generate(FRAMES);
        let begin = Instant::now();
        loop {
            self.fabric.turn();
            // As the loop around the fabric does.
            self.clock.now();
            if let Ok(report) = answer.try_recv() {
                check(report);
                return begin.elapsed().as_nanos() as f64 / f64::from(FRAMES);
            }
        }
    }

    /// The time of a turn in which nothing moves.
    fn idle(&mut self) -> f64 {
        let begin = Instant::now();
        for _ in 0..FRAMES {
            self.fabric.turn();
        }
        begin.elapsed().as_nanos() as f64 / f64::from(FRAMES)
    }
}

fn check(report: Result<Report, String>) {
    let report = report.unwrap();
    assert_eq!(report.forwarded, FRAMES, "{report:?}");
}

/// Prints the least and the median of some rounds.
fn print(name: &str, rounds: usize, mut measure: impl FnMut() -> f64) {
    measure();
    let mut found: Vec<f64> = (0..rounds).map(|_| measure()).collect();
    found.sort_by(f64::total_cmp);
    let (least, median) = (found[0], found[rounds / 2]);
    println!("{name:<6} {least:8.1} ns at least, {median:8.1} ns median");
}

fn main() {
    // Cargo adds an option of its own.
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let only = words.next();
    let rounds = words.next().map_or(ROUNDS, |word| word.parse().unwrap());
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);

    let map = GuestMemoryMmap::from_ranges(&[(GuestAddress(0), MEMORY)]).unwrap();
    let memory = map.find_region(GuestAddress(0)).unwrap();
    let mut model = Model::new(&map);
    let mut guest = Guest::new(&model.devices, memory);
    if wanted("idle") {
        print("idle", rounds, || model.idle());
    }
    if wanted("alone") {
        print("alone", rounds, || model.alone(&mut guest));
    }
    if wanted("apart") {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(RELAXED) {
                    if guest.poll() == 0 {
                        std::hint::spin_loop();
                    }
                }
            });
            print("apart", rounds, || model.apart());
            done.store(true, RELAXED);
        });
    }
}
