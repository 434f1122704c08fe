// SPDX-License-Identifier: GPL-2.0
//! A router with a minimal driver, in place of a guest.
#![allow(dead_code, clippy::unwrap_used, clippy::panic)] // each file uses a part of it

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use nicmodel_device::checksum::insert_ipv4;
use nicmodel_device::clock::ManualClock;
use nicmodel_device::device::{Device, Identity};
use nicmodel_device::function::{Notifier, PciFunction};
use nicmodel_device::memory::DmaMemory;
use nicmodel_device::regs::file::RegisterFile;
use nicmodel_device::regs::offset;
use nicmodel_wire::spec::{Generate, Plug};
use nicmodel_wire::{Fabric, Request, Turn};
use serde_json::Value;
use vm_memory::{GuestAddress, GuestMemoryMmap};

pub const MEMORY: usize = 4 << 20;
pub const RING: u32 = 256;
const RX_RING: u64 = 0x1_0000;
const TX_RING: u64 = 0x2_0000;
const RX_BUFFERS: u64 = 0x10_0000;
const TX_BUFFERS: u64 = 0x20_0000;
const BUFFER: u64 = 2048;
const MS: u64 = 1_000_000;

/// One port with its driver.
pub struct Port {
    pub device: Arc<Device>,
    rx_next: u32,
    tx_next: u32,
}

/// The guest polls: nobody waits for its interrupts.
struct Unheard;

impl Notifier for Unheard {
    fn signal(&self) {}
}

pub fn mac(port: u8) -> [u8; 6] {
    [2, 0x82, 0x59, 0, 0, port]
}

impl Port {
    fn new(number: u8, clock: &Arc<ManualClock>) -> Self {
        let identity = Identity {
            device_id: 0x10fb,
            mac: mac(number),
            mapped: false,
        };
        let registers = RegisterFile::private().unwrap();
        let mut device = Device::new(identity, registers, clock.clone());
        let map = GuestMemoryMmap::from_ranges(&[(GuestAddress(0), MEMORY)]).unwrap();
        device.memory = DmaMemory::new(map);
        Self {
            device: Arc::new(device),
            rx_next: 0,
            tx_next: 0,
        }
    }

    pub fn write(&self, register: u32, value: u32) {
        self.device
            .bar_write(0, u64::from(register), &value.to_le_bytes());
    }

    pub fn read(&self, register: u32) -> u32 {
        let mut data = [0; 4];
        self.device.bar_read(0, u64::from(register), &mut data);
        u32::from_le_bytes(data)
    }

    /// What a driver does to bring the port up; the receive ring is full of descriptors.
    pub fn up(&mut self) {
        self.rx_next = 0;
        self.tx_next = 0;
        for (low, ring) in [(offset::RDBAL, RX_RING), (offset::TDBAL, TX_RING)] {
            self.write(low, ring as u32);
            self.write(low + 4, 0);
            self.write(low + 8, RING * 16);
            self.write(low + 0x10, 0);
            self.write(low + 0x18, 0);
        }
        self.write(offset::SRRCTL, 1 << 25 | 2);
        self.write(offset::RDRXCTL, self.read(offset::RDRXCTL) | 2);
        self.write(offset::DMATXCTL, 1);
        self.write(offset::TXDCTL, 1 << 25);
        self.write(offset::RXDCTL, 1 << 25);
        for i in 0..RING {
            self.refill(i);
        }
        self.write(offset::RDT, RING - 1);
        self.write(offset::RXCTRL, 1);
        // Vector 0 for the receive ring, vector 1 for the transmit ring.
        for vector in 0..2 {
            self.device.set_vector(vector, Some(Arc::new(Unheard)));
        }
        self.write(offset::IVAR, 0x8180);
        self.write(offset::EIMS_EX, 3);
    }

    fn refill(&self, i: u32) {
        let view = self.device.memory.view();
        let at = RX_RING + u64::from(i) * 16;
        view.store64(at, RX_BUFFERS + u64::from(i) * BUFFER)
            .unwrap();
        view.store64(at + 8, 0).unwrap();
    }

    /// The next received frame, its descriptor given back.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        let view = self.device.memory.view();
        let at = RX_RING + u64::from(self.rx_next) * 16;
        let high = view.load64(at + 8).unwrap();
        if high & 1 == 0 {
            return None;
        }
        let mut frame = vec![0; (high >> 32 & 0xffff) as usize];
        let buffer = RX_BUFFERS + u64::from(self.rx_next) * BUFFER;
        view.read(buffer, &mut frame).unwrap();
        self.refill(self.rx_next);
        self.write(offset::RDT, self.rx_next);
        self.rx_next = (self.rx_next + 1) % RING;
        Some(frame)
    }

    /// Sends a frame; the caller does not send more than a ring full between two turns.
    pub fn send(&mut self, frame: &[u8]) {
        let view = self.device.memory.view();
        let buffer = TX_BUFFERS + u64::from(self.tx_next) * BUFFER;
        view.write(buffer, frame).unwrap();
        let at = TX_RING + u64::from(self.tx_next) * 16;
        let length = frame.len() as u64;
        // Advanced data descriptor, end of packet, FCS, report status.
        let command: u64 = 3 << 20 | 1 << 24 | 1 << 25 | 1 << 27 | 1 << 29;
        view.store64(at, buffer).unwrap();
        view.store64(at + 8, length << 46 | command | length)
            .unwrap();
        self.tx_next = (self.tx_next + 1) % RING;
        self.write(offset::TDT, self.tx_next);
    }
}

/// What a router does to a frame.
pub fn routed(mut frame: Vec<u8>) -> Vec<u8> {
    frame[22] -= 1;
    insert_ipv4(&mut frame, 14, 20);
    frame
}

/// Two ports, a fabric, and a clock that stands still by itself.
pub struct Bench {
    pub ports: Vec<Port>,
    pub fabric: Fabric,
    pub clock: Arc<ManualClock>,
    requests: Sender<Request>,
}

impl Bench {
    pub fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        let ports: Vec<Port> = (0..2).map(|i| Port::new(i, &clock)).collect();
        let devices = ports.iter().map(|port| port.device.clone()).collect();
        let (requests, inbox) = channel();
        Self {
            ports,
            fabric: Fabric::new(devices, clock.clone(), inbox),
            clock,
            requests,
        }
    }

    /// A bench whose ports are up.
    pub fn up() -> Self {
        let mut bench = Self::new();
        for port in &mut bench.ports {
            port.up();
        }
        bench
    }

    pub fn turn(&mut self) -> Turn {
        self.clock.advance(1000);
        self.fabric.turn()
    }

    /// Asks and turns once: the answer to what does not take time.
    pub fn ask(&mut self, make: impl FnOnce(Sender<Value>) -> Request) -> Value {
        let answer = self.begin(make);
        self.turn();
        answer.try_recv().expect("an answer at once")
    }

    pub fn begin(&mut self, make: impl FnOnce(Sender<Value>) -> Request) -> Receiver<Value> {
        let (reply, answer) = channel();
        self.requests.send(make(reply)).unwrap();
        answer
    }

    pub fn generate(&mut self, text: &str) -> Receiver<Value> {
        let spec: Generate = serde_json::from_str(text).unwrap();
        self.begin(|reply| Request::Generate(spec, reply))
    }

    pub fn plug(&mut self, port: usize, text: &str) -> Value {
        let plug: Plug = serde_json::from_str(text).unwrap();
        self.ask(|reply| Request::Plug(port, plug, reply))
    }

    pub fn inject(&mut self, port: usize, frame: &[u8]) -> Value {
        let frame = frame.to_vec();
        self.ask(|reply| Request::Inject(port, frame, reply))
    }

    /// Turns, with `guest` acting after each turn, until the answer is there.
    pub fn run(&mut self, answer: &Receiver<Value>, mut guest: impl FnMut(&mut [Port])) -> Value {
        for _ in 0..1_000_000 {
            let turn = self.turn();
            guest(&mut self.ports);
            if let Ok(answer) = answer.try_recv() {
                return answer;
            }
            if !turn.busy {
                self.clock.advance(MS);
            }
        }
        panic!("the run does not end");
    }
}

/// Routes whatever came in at one port to the other.
pub fn route(ports: &mut [Port]) {
    for (from, to) in [(0, 1), (1, 0)] {
        for _ in 0..64 {
            let Some(frame) = ports[from].receive() else {
                break;
            };
            ports[to].send(&routed(frame));
        }
    }
}
