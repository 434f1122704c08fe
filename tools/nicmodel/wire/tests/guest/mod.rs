// SPDX-License-Identifier: GPL-2.0
//! A router with a minimal driver, in place of a guest.
#![allow(dead_code, clippy::unwrap_used, clippy::panic)] // each file uses a part of it

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use arbitrary_int::{u5, u18};
use nicmodel_device::checksum::insert_ipv4;
use nicmodel_device::clock::ManualClock;
use nicmodel_device::descriptor::{RxResult, SIZE, TxData, TxType};
use nicmodel_device::device::{Device, Identity};
use nicmodel_device::function::{Notifier, PciFunction};
use nicmodel_device::memory::DmaMemory;
use nicmodel_device::regs::bits::{Dmatxctl, Rdrxctl, Register, Rxctrl, Rxdctl, Srrctl, Txdctl};
use nicmodel_device::regs::file::RegisterFile;
use nicmodel_device::regs::offset;
use nicmodel_wire::answer::Report;
use nicmodel_wire::fabric::Reply;
use nicmodel_wire::spec::{Generate, Plug};
use nicmodel_wire::{Activity, Fabric, Request};
use serde::Serialize;
use serde_json::{Value, json};
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

/// The guest polls: its interrupts go unheard.
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

    /// Writes a register; of an array, the first one.
    pub fn set<R: Register>(&self, value: R) {
        self.write(R::offset(0), value.raw());
    }

    pub fn read(&self, register: u32) -> u32 {
        let mut data = [0; 4];
        self.device.bar_read(0, u64::from(register), &mut data);
        u32::from_le_bytes(data)
    }

    /// Brings the port up as a driver does; the receive ring is full of descriptors.
    pub fn up(&mut self) {
        self.rx_next = 0;
        self.tx_next = 0;
        for (low, ring) in [(offset::RDBAL, RX_RING), (offset::TDBAL, TX_RING)] {
            self.write(low, ring as u32);
            self.write(low + 4, 0);
            self.write(low + 8, RING * SIZE);
            self.write(low + 0x10, 0);
            self.write(low + 0x18, 0);
        }
        self.set(
            Srrctl::ZERO
                .with_bsizepacket(u5::new(2))
                .with_desctype(Srrctl::ADVANCED),
        );
        let rdrxctl = Rdrxctl::from_raw(self.read(offset::RDRXCTL));
        self.set(rdrxctl.with_crcstrip(true));
        self.set(Dmatxctl::ZERO.with_te(true));
        self.set(Txdctl::ZERO.with_enable(true));
        self.set(Rxdctl::ZERO.with_enable(true));
        for i in 0..RING {
            self.refill(i);
        }
        self.write(offset::RDT, RING - 1);
        self.set(Rxctrl::ZERO.with_rxen(true));
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
        let result = RxResult::new_with_raw_value(view.load64(at + 8).unwrap());
        if !result.status().dd() {
            return None;
        }
        let mut frame = vec![0; usize::from(result.pkt_len())];
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
        let data = TxData::ZERO
            .with_dext(true)
            .with_dtyp(TxType::Data)
            .with_eop(true)
            .with_ifcs(true)
            .with_rs(true)
            .with_dtalen(frame.len() as u16)
            .with_paylen(u18::new(frame.len() as u32));
        view.store64(at, buffer).unwrap();
        view.store64(at + 8, data.raw_value()).unwrap();
        self.tx_next = (self.tx_next + 1) % RING;
        self.write(offset::TDT, self.tx_next);
    }
}

/// Changes a frame as a router does.
pub fn routed(mut frame: Vec<u8>) -> Vec<u8> {
    frame[22] -= 1;
    insert_ipv4(&mut frame, 14, 20);
    frame
}

/// Where the answer to a request comes.
pub type Answer<T> = Receiver<Result<T, String>>;

/// An answer as a client sees it.
pub fn value<T: Serialize>(answer: Result<T, String>) -> Value {
    match answer {
        Ok(answer) => match json!(answer) {
            Value::Object(mut answer) => {
                answer.insert("ok".to_owned(), true.into());
                Value::Object(answer)
            }
            _ => json!({ "ok": true }),
        },
        Err(error) => json!({ "ok": false, "error": error }),
    }
}

/// The zero of the bench's clock.
pub const EPOCH: u64 = 1_700_000_000_000_000_000;

/// Two ports, a fabric, and a clock that stands still by itself.
pub struct Bench {
    pub ports: Vec<Port>,
    pub fabric: Fabric,
    pub clock: Arc<ManualClock>,
    requests: Sender<Request>,
}

impl Bench {
    pub fn new() -> Self {
        let clock = Arc::new(ManualClock::since(EPOCH));
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

    pub fn turn(&mut self) -> Activity {
        self.clock.advance(1000);
        self.fabric.turn()
    }

    /// Sends a request and turns once: the answer to an immediate request.
    pub fn ask<T: Serialize>(&mut self, make: impl FnOnce(Reply<T>) -> Request) -> Value {
        let answer = self.begin(make);
        self.turn();
        value(answer.try_recv().expect("an answer at once"))
    }

    pub fn begin<T>(&mut self, make: impl FnOnce(Reply<T>) -> Request) -> Answer<T> {
        let (reply, answer) = channel();
        self.requests.send(make(reply)).unwrap();
        answer
    }

    pub fn generate(&mut self, text: &str) -> Answer<Report> {
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
    pub fn run(&mut self, answer: &Answer<Report>, mut guest: impl FnMut(&mut [Port])) -> Value {
        for _ in 0..1_000_000 {
            let turn = self.turn();
            guest(&mut self.ports);
            if let Ok(answer) = answer.try_recv() {
                return value(answer);
            }
            if !turn.busy {
                self.clock.advance(MS);
            }
        }
        panic!("the run does not end");
    }
}

/// Routes all frames from one port to the other.
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
