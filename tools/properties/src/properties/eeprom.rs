// SPDX-License-Identifier: GPL-2.0

//! The EEPROM, any word of which may be anything.

use super::{check, check_rarely};
use crate::device::Device;
use crate::eeprom;
use crate::mmio::Bar0;
use crate::pci::Card;
use crate::prelude::{Result, EINVAL, EIO};
use std::cell::Cell;

const EEC: usize = 0x10010;
const EERD: usize = 0x10014;
/// Words that can be addressed, of both ports.
const WORDS: u32 = 2 << 14;

/// A card with an EEPROM: some words at the addresses that pointers may name, and zeros.
pub(super) struct Eeprom {
    pub(super) words: [u16; 256],
    pub(super) reads: Cell<u32>,
    address: Cell<u16>,
}

impl Eeprom {
    pub(super) fn new(words: [u16; 256]) -> Self {
        Self {
            words,
            reads: Cell::new(0),
            address: Cell::new(0),
        }
    }

    pub(super) fn word(&self, at: u16) -> u16 {
        self.words.get(usize::from(at)).copied().unwrap_or(0)
    }

    pub(super) fn start(&self, command: u32) {
        self.address.set((command >> 2) as u16 & 0x3fff);
        self.reads.set(self.reads.get() + 1);
    }

    pub(super) fn answer(&self) -> u32 {
        u32::from(self.word(self.address.get())) << 16 | 2
    }
}

impl Card for Eeprom {
    fn read(&self, at: usize) -> u32 {
        match at {
            EEC => 1 << 8,
            EERD => self.answer(),
            _ => 0,
        }
    }

    fn write(&self, at: usize, value: u32) {
        if at == EERD {
            self.start(value);
        }
    }

    fn module(&self, _: usize) -> Option<u8> {
        None
    }
}

/// Sections of a few words, most of them in the part of the EEPROM that has some. With a last byte
/// of zero, some are as long as the EEPROM.
pub(super) fn words(bytes: [u8; 32]) -> [u16; 256] {
    let mut words = [0; 256];

    for (at, pair) in bytes.chunks(2).enumerate() {
        let [low, high] = [pair[0], pair[1]];
        // Pointers at the start, and lengths all over.
        words[at] = match high {
            0xfe => 0x3ff8 | u16::from(low & 7),
            0xff => u16::MAX,
            _ => low.into(),
        };
        words[usize::from(low)] = match high {
            0xfd => u16::MAX,
            0x80.. if bytes[31] == 0 => 0x3000,
            _ => u16::from(high % 16),
        };
    }
    words
}

/// The sum as the datasheet has it; an error of the content ends it.
fn sum(eeprom: &Eeprom) -> Result<u16> {
    let word = |at: u32| match u16::try_from(at) {
        Ok(at) if at < 1 << 14 => Ok(eeprom.word(at)),
        _ => Err(EINVAL),
    };
    let mut sum = 0u32;
    let mut covered = 0;

    for at in 0..0x40 {
        sum += u32::from(word(at)?);
    }
    for pointer in 3..0xf {
        let section = word(pointer)?.into();
        if section == 0 || section == 0xffff {
            continue;
        }
        let len = word(section)?;
        if len == 0xffff {
            continue;
        }
        covered += u32::from(len);
        for at in 1..=u32::from(len) {
            sum += u32::from(word(section + at)?);
        }
    }
    if covered > WORDS {
        return Err(EINVAL);
    }
    Ok(sum as u16)
}

/// The driver finds the sum of an EEPROM, or its error.
fn has_sum(bytes: [u8; 32]) {
    let mut words = words(bytes);
    // The right checksum, in half of the cases that have a sum.
    if bytes[0] & 1 != 0 {
        words[0x3f] = 0;
        if let Ok(sum) = sum(&Eeprom::new(words)) {
            words[0x3f] = 0xbabau16.wrapping_sub(sum);
        }
    }
    let eeprom = Eeprom::new(words);
    let found = eeprom::check(&Device::new(), &Bar0::new(&eeprom));

    assert!(eeprom.reads.get() < WORDS + 0x100);
    match sum(&eeprom) {
        Ok(0xbaba) => assert_eq!(found, Ok(())),
        Ok(_) => assert_eq!(found, Err(EIO)),
        Err(error) => assert_eq!(found, Err(error)),
    }
}

#[test]
fn the_sum_is_that_of_the_datasheet() {
    check(proptest::array::uniform32(0u8..), |mut bytes| {
        bytes[31] = bytes[31].max(1);
        has_sum(bytes);
    });
}

#[test]
fn long_sections_are_read_as_far_as_there_are_words() {
    check_rarely(100, proptest::array::uniform32(0u8..), |mut bytes| {
        bytes[31] = 0;
        has_sum(bytes);
    });
}

#[test]
fn bytes_are_those_of_the_words() {
    check((0usize..600, 0usize..64, 0u16..), |(offset, len, seed)| {
        let mut words = [0; 256];
        for (at, word) in (0u16..).zip(&mut words) {
            *word = at.wrapping_mul(0x9e37) ^ seed;
        }
        let eeprom = Eeprom::new(words);
        let mut bytes = vec![0; len];

        assert_eq!(
            eeprom::read_bytes(&Bar0::new(&eeprom), offset, &mut bytes),
            Ok(())
        );
        for (at, byte) in (offset..).zip(bytes) {
            assert_eq!(byte, eeprom.word(at as u16 / 2).to_le_bytes()[at % 2]);
        }
        assert!(eeprom.reads.get() as usize <= len / 2 + 1);
    });
}
