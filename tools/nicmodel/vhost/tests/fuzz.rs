// SPDX-License-Identifier: GPL-2.0
//! A driver that puts random things into its queue: every chain comes back, and the card lives.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod guest;

use guest::{BASE, BUFFERS, Guest, Part, SIZE, Setup, message};

const ROUNDS: u32 = 4000;
/// Behind everything that the rings and the messages need.
const SCRATCH: u64 = BUFFERS + 0x6_0000;

/// Xorshift: the same numbers in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Small mostly, and now and then as large as can be.
    fn size(&mut self) -> u32 {
        match self.below(8) {
            0 => self.next() as u32,
            1 => self.below(0x2_1000) as u32,
            2 => 0,
            _ => 1 << self.below(4),
        }
    }

    fn message(&mut self) -> Vec<u8> {
        if self.one_in(8) {
            let length = self.below(40) as usize;
            return (0..length).map(|_| self.next() as u8).collect();
        }
        let bar = match self.below(6) {
            0 => self.next() as u8,
            1 | 2 => 3,
            _ => 0,
        };
        let address = match self.below(8) {
            0 => self.next(),
            1 => self.below(0x4000) & !3,
            _ => self.below(0x2_0000) & !3,
        };
        let data: Vec<u8> = (0..self.below(64)).map(|_| self.next() as u8).collect();
        message(self.below(12) as u8, bar, self.size(), address, &data)
    }

    /// Room for an answer, which may lie anywhere but on the rings.
    fn room(&mut self) -> Part {
        let at = match self.below(8) {
            0 => self.next() | 1 << 40,
            1 => BASE + SIZE - self.below(16),
            _ => SCRATCH + self.below(0x8000),
        };
        (at, self.size(), true)
    }
}

#[test]
fn random_messages_and_chains() {
    let setup = Setup::new("fuzz");
    for seed in 1..=5_u64 {
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (seed << 32));
        let mut guest = Guest::new(&setup.path);
        for round in 0..ROUNDS {
            let bytes = random.message();
            guest.write(BUFFERS, &bytes);
            let mut parts = vec![(BUFFERS, bytes.len() as u32, false)];
            for _ in 0..random.below(3) {
                parts.push(random.room());
            }
            if random.one_in(8) {
                parts.push((random.next(), random.size(), false));
            }
            if random.one_in(16) {
                parts.reverse();
            }
            if random.one_in(32) {
                // Flags and a successor that mean nothing, or an indirect table.
                let ring = std::mem::replace(&mut guest.commands, guest::VirtQueue::new(0));
                let (flags, next) = (random.next() as u16 & !2, random.next() as u16);
                let at = random.below(8) as u16 + 8;
                guest.descriptor(&ring, at, (BUFFERS, random.size(), false), flags, next);
                guest.commands = ring;
                let mut ring = std::mem::replace(&mut guest.commands, guest::VirtQueue::new(0));
                guest.offer(&mut ring, at);
                assert!(guest.wait(&mut ring).is_some(), "seed {seed} round {round}");
                guest.commands = ring;
            }
            let length = parts.len() as u32;
            assert!(
                guest.exchange(&parts).is_some(),
                "seed {seed} round {round}: {length} parts"
            );
        }
        drop(guest);
    }
    let mut guest = Guest::new(&setup.path);
    assert_eq!(guest.config_read(0, 4), [0x86, 0x80, 0xfb, 0x10]);
    drop(guest);
    assert!(setup.finish().iter().all(|good| *good));
}
