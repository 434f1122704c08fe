// SPDX-License-Identifier: GPL-2.0
//! The model neither panics nor hangs, and a reset repairs it, whatever a guest writes to
//! registers, to configuration space, and to its own memory while the card reads it.
//!
//! The sequences are random but repeatable. `NICMODEL_HOSTILE_STEPS` makes them longer, and
//! `NICMODEL_HOSTILE_SEED` chooses another one.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod guest;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use arbitrary_int::traits::Integer;
use arbitrary_int::u18;
use guest::{Bench, MEMORY, route};
use nicmodel_device::descriptor::{TxData, TxType};
use nicmodel_device::fault::Kind;
use nicmodel_device::function::PciFunction;
use nicmodel_device::regs::{map, offset};
use serde_json::json;

/// A small generator of pseudo-random numbers (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Numbers at the edges of things are more interesting than others.
    fn value(&mut self) -> u32 {
        match self.below(6) {
            0 => self.pick(&[
                0,
                1,
                0x7f,
                0x80,
                0xffff,
                0x8000_0000,
                u32::MAX,
                MEMORY as u32,
            ]),
            1 => 1 << self.below(32),
            2 => self.below(512) as u32,
            3 => (self.below(MEMORY) & !0x7f) as u32,
            _ => self.next() as u32,
        }
    }

    fn register(&mut self) -> u32 {
        let queue = self.below(4) as u32 * offset::QUEUE;
        match self.below(8) {
            0..=2 => offset::RDBAL + queue + self.pick(&[0, 4, 8, 0x10, 0x14, 0x18, 0x28]),
            3..=4 => offset::TDBAL + queue + self.pick(&[0, 4, 8, 0x10, 0x18, 0x28, 0x38, 0x3c]),
            5..=6 => {
                let entry = &map::REGISTERS[self.below(map::REGISTERS.len())];
                entry.offset + self.below(entry.count as usize) as u32 * entry.stride
            }
            _ => self.below(0x2_1000) as u32,
        }
    }

    /// Descriptors that are almost right get further than noise.
    fn descriptor(&mut self) -> [u64; 2] {
        let address = match self.below(4) {
            0 => self.next() << 32 | self.next(),
            _ => self.below(MEMORY + 4096) as u64,
        };
        let length = self.pick(&[0, 1, 13, 14, 59, 60, 1514, 2048, 0xffff]);
        let total = self.pick(&[0, 60, 1514, 65535, 0x3ffff]);
        let flags = (self.next() & 0xff) << 24 | self.pick(&[2, 3, 3, 3, 7]) << 20;
        let options = self.next() & 0x3fff << 32;
        [address, total << 46 | options | flags | length]
    }
}

/// One random thing.
fn act(random: &mut Random, bench: &mut Bench) {
    let port = random.below(2);
    let device = bench.ports[port].device.clone();
    match random.below(16) {
        0..=5 => {
            let (register, value) = (random.register(), random.value());
            // Reset is a register, too, but it would undo everything else too often.
            let reset = register == offset::CTRL && !random.one_in(20);
            if !reset {
                bench.ports[port].write(register, value);
            }
        }
        6 => {
            bench.ports[port].read(random.register());
        }
        7 => {
            let data = random.next().to_le_bytes();
            let length = random.below(9);
            let (bar, at) = (random.below(8) as u32, random.next() & 0x3_ffff);
            device.bar_write(bar, at, &data[..length]);
            device.bar_read(bar, at, &mut vec![0; length]);
            device.config_write(at & 0xfff, &data[..length.min(4)]);
            device.config_read(at & 0xfff, &mut [0; 4]);
        }
        8..=11 => {
            let at = 0x1_0000 + 0x1_0000 * random.below(2) as u64 + 16 * random.below(256) as u64;
            let [low, high] = random.descriptor();
            let view = device.memory.view();
            view.store64(at, low).unwrap();
            view.store64(at + 8, high).unwrap();
        }
        12 => bench.ports[port].write(offset::TDT, random.below(256) as u32),
        13 => bench.ports[port].write(offset::RDT, random.below(256) as u32),
        14 => {
            let length = random.pick(&[0, 1, 14, 15, 18, 34, 60, 64, 1514, 9000, 16_000]);
            let mut frame: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
            if length >= 34 && !random.one_in(4) {
                frame[..6].copy_from_slice(&guest::mac(port as u8));
                let kind = random.pick(&[[8, 0], [0x86, 0xdd], [0x81, 0]]);
                frame[12..14].copy_from_slice(&kind);
                frame[14] = random.pick(&[0x45, 0x4f, 0x60, 0x40]);
                frame[23] = random.pick(&[6, 17, 132, 1]);
            }
            bench.inject(port, &frame);
        }
        _ => match random.below(40) {
            0..=9 => bench.ports[port].up(),
            10 => bench.plug(0, r#"{"kind":"cable","peer":1}"#)["ok"] = json!(true),
            11 => bench.plug(port, r#"{"kind":"sink"}"#)["ok"] = json!(true),
            12..=15 => device.set_link(!random.one_in(4)),
            16 => device.reset(),
            17 => device.fault(Kind::Remove, 1, 0),
            18..=20 => device.fault(Kind::Clear, 1, 0),
            21 => device.fault(Kind::Interrupt, 1, 0),
            _ => {}
        },
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// Returns the counters.
fn torture(seed: u64) -> HashMap<&'static str, u64> {
    let steps = number("NICMODEL_HOSTILE_STEPS", 40_000);
    let mut random = Random(seed | 1);
    let mut bench = Bench::up();
    for step in 0..steps {
        act(&mut random, &mut bench);
        if random.one_in(3) {
            let start = Instant::now();
            bench.turn();
            let took = start.elapsed();
            // Generous, for a machine that does other things; a loop would never end.
            assert!(
                took < Duration::from_secs(5),
                "step {step} of {seed}: {took:?}"
            );
        }
    }
    let mut counts = HashMap::new();
    for port in &bench.ports {
        for (name, count) in port.device.totals.snapshot() {
            *counts.entry(name).or_default() += count;
        }
    }
    // A driver that resets the card finds it as good as new.
    bench.plug(0, r#"{"kind":"sink"}"#);
    bench.plug(1, r#"{"kind":"sink"}"#);
    for port in &mut bench.ports {
        port.device.fault(Kind::Clear, 1, 0);
        port.device.set_link(true);
        port.device.reset();
        port.up();
    }
    bench.turn();
    let answer = bench.generate(r#"{"from":0,"to":1,"count":500,"window":64}"#);
    let report = bench.run(&answer, route);
    assert_eq!(report["forwarded"], json!(500), "after {seed}: {report}");
    counts
}

#[test]
fn random_guests_do_no_harm() {
    let seed = number("NICMODEL_HOSTILE_SEED", 0x82599);
    let mut counts: HashMap<&str, u64> = HashMap::new();
    for i in 0..4 {
        let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(i * 2);
        for (name, count) in torture(seed) {
            *counts.entry(name).or_default() += count;
        }
    }
    // Noise that the first check turns away would test nothing.
    for name in [
        "rx_frames",
        "tx_frames",
        "malformed",
        "dma_errors",
        "resets",
    ] {
        assert!(counts[name] > 20, "{name}: {counts:?}");
    }
}

/// A ring of nothing but descriptors without an end of packet.
#[test]
fn a_chain_without_end_is_survived() {
    let mut bench = Bench::up();
    let view = bench.ports[0].device.memory.view();
    for i in 0..256_u64 {
        // Data, 64 KiB each, of the largest total.
        let data = TxData::ZERO
            .with_dext(true)
            .with_dtyp(TxType::Data)
            .with_rs(true)
            .with_dtalen(u16::MAX)
            .with_paylen(u18::MAX);
        view.store64(0x2_0000 + i * 16, 0).unwrap();
        view.store64(0x2_0008 + i * 16, data.raw_value()).unwrap();
    }
    for tail in (0..10_000).map(|i| (i * 100) % 256) {
        bench.ports[0].write(offset::TDT, tail);
        bench.turn();
    }
    let sent = bench.ports[0].device.totals.snapshot();
    assert!(sent.contains(&("tx_frames", 0)), "{sent:?}");
}

/// Rings whose registers or buffers point to where there is no memory.
#[test]
fn rings_outside_memory_are_counted_and_ignored() {
    for (register, value) in [
        (offset::RDBAL + 4, u32::MAX),
        (offset::TDBAL + 4, u32::MAX),
        (offset::RDBAL + 8, 0),
        (offset::TDBAL + 8, 0),
        (offset::RDT, 100_000),
        (offset::TDT, 100_000),
        (offset::RDH, u32::MAX),
        (offset::TDH, u32::MAX),
        (offset::SRRCTL, 0),
    ] {
        let mut bench = Bench::up();
        bench.ports[0].write(register, value);
        let mut frame = vec![0; 60];
        frame[..6].copy_from_slice(&guest::mac(0));
        bench.inject(0, &frame);
        if register != offset::TDT {
            bench.ports[0].write(offset::TDT, 1);
        }
        for _ in 0..10 {
            bench.turn();
        }
        let totals = bench.ports[0].device.totals.snapshot();
        let count = |name: &str| totals.iter().find(|(n, _)| *n == name).unwrap().1;
        let noticed = count("malformed") + count("dma_errors");
        assert!(noticed > 0, "{register:#x} = {value:#x}: {totals:?}");
    }
}
