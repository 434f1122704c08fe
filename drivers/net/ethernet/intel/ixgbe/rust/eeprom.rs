// SPDX-License-Identifier: GPL-2.0

//! The EEPROM, read through the EERD register (datasheet 8.2.3.2).

use kernel::{
    device::{
        self,
        Bound, //
    },
    prelude::*,
    time::Delta, //
};

use crate::{
    mmio::{
        Bar0,
        Deadline, //
    },
    regs::*, //
};

/// The sum of all covered words, including the checksum itself.
const SUM: u16 = 0xbaba;

/// The word that holds the checksum.
const CHECKSUM_WORD: u16 = 0x3f;

/// Pointers to the sections that the checksum covers (datasheet 6.3).
const SECTION_POINTERS: core::ops::Range<u16> = 0x03..0x0f;

/// The most words of all sections together: two ports may share what can be addressed.
const MAX_WORDS: usize = 2 << 14;

/// The time for all words of an operation.
const TIMEOUT: Delta = Delta::from_secs(1);

/// An operation that reads words.
pub(crate) struct Reader<'a, 'bound> {
    bar: &'a Bar0<'bound>,
    deadline: Deadline,
}

impl<'a, 'bound> Reader<'a, 'bound> {
    /// Begins.
    pub(crate) fn new(bar: &'a Bar0<'bound>) -> Self {
        Self {
            bar,
            deadline: Deadline::after(TIMEOUT),
        }
    }

    /// Reads a word.
    pub(crate) fn word(&self, at: u16) -> Result<u16> {
        self.bar
            .write_reg(EERD::zeroed().try_with_addr(at)?.with_start(true));

        let value = self.deadline.poll(
            || self.bar.try_read(EERD),
            |r| r.done(),
            Delta::from_micros(5),
        )?;

        Ok(u16::from(value.data()))
    }
}

/// Words that hold the number of the EEPROM image, the lower half first.
const TRACK_ID_WORDS: [u16; 2] = [0x2d, 0x2e];

/// Returns the number that identifies the image of the EEPROM.
pub(crate) fn track_id(bar: &Bar0<'_>) -> Result<u32> {
    let [low, high] = TRACK_ID_WORDS;
    let eeprom = Reader::new(bar);

    Ok(u32::from(eeprom.word(high)?) << 16 | u32::from(eeprom.word(low)?))
}

/// Returns the size of the EEPROM in bytes.
pub(crate) fn len(bar: &Bar0<'_>) -> usize {
    // A number of words that is a power of two; a NIC that is gone has 15. [`Reader::word`]
    // reaches 2^14 words.
    1 << (u32::from(bar.read(EEC).ee_size()) + SIZE_SHIFT + 1).min(15)
}

/// Binary logarithm of the number of words for the smallest value of `ee_size`.
const SIZE_SHIFT: u32 = 6;

/// Reads bytes. The lower half of a word comes first.
pub(crate) fn read_bytes(bar: &Bar0<'_>, offset: usize, bytes: &mut [u8]) -> Result {
    let eeprom = Reader::new(bar);
    let mut last = None;

    for (at, byte) in (offset..).zip(bytes) {
        let [low, high] = match last {
            Some(word) if at % 2 != 0 => word,
            _ => eeprom.word(u16::try_from(at / 2)?)?.to_le_bytes(),
        };
        last = Some([low, high]);
        *byte = if at % 2 == 0 { low } else { high };
    }
    Ok(())
}

/// Returns the sum of all words that the checksum covers, including the checksum itself.
fn sum(read: impl Fn(u16) -> Result<u16>) -> Result<u16> {
    let mut sum = 0u16;
    let mut left = MAX_WORDS;

    for at in 0..=CHECKSUM_WORD {
        sum = sum.wrapping_add(read(at)?);
    }

    for pointer in SECTION_POINTERS {
        let section = read(pointer)?;
        if section == 0 || section == u16::MAX {
            continue;
        }

        let len = read(section)?;
        if len == 0 || len == u16::MAX {
            continue;
        }

        for offset in 1..=len {
            // A section that runs past the end of the address space is corrupt, and so are those
            // that have more words than there are.
            let at = section.checked_add(offset).ok_or(EINVAL)?;
            left = left.checked_sub(1).ok_or(EINVAL)?;
            sum = sum.wrapping_add(read(at)?);
        }
    }

    Ok(sum)
}

/// Checks that the EEPROM is present and its checksum is correct.
pub(crate) fn check(dev: &device::Device<Bound>, bar: &Bar0<'_>) -> Result {
    if !bar.read(EEC).ee_pres() {
        dev_err!(dev, "no valid EEPROM signature\n");
        return Err(ENODEV);
    }

    let eeprom = Reader::new(bar);
    let sum =
        sum(|at| eeprom.word(at)).inspect_err(|_| dev_err!(dev, "failed to read the EEPROM\n"))?;
    if sum != SUM {
        dev_err!(
            dev,
            "EEPROM checksum is 0x{:04x}, expected 0x{:04x}; restore the EEPROM image\n",
            sum,
            SUM
        );
        return Err(EIO);
    }

    Ok(())
}

#[kunit_tests(ixgbe_rust_eeprom)]
mod tests {
    use super::*;

    use core::cell::Cell;

    /// Words by their addresses; all others are zero.
    fn words<const N: usize>(words: [(u16, u16); N]) -> impl Fn(u16) -> Result<u16> {
        move |at| {
            let word = words.iter().find(|(address, _)| *address == at);
            Ok(word.map_or(0, |(_, value)| *value))
        }
    }

    #[test]
    fn sections_count() {
        assert_eq!(sum(words([(0, 1), (CHECKSUM_WORD, 2), (0x40, 4)])), Ok(3));
        // The word after a section does not.
        let section = [(3, 0x80), (0x80, 2), (0x81, 5), (0x82, 6), (0x83, 7)];
        assert_eq!(sum(words(section)), Ok(0x80 + 5 + 6));
        // Nor do sections that are not there, and empty ones.
        let erased = u16::MAX;
        let none = [(3, erased), (4, 0x80), (0x80, erased), (5, 0x90), (0x91, 9)];
        assert_eq!(sum(words(none)), Ok(erased.wrapping_add(0x80 + 0x90)));
    }

    #[test]
    fn a_section_ends_where_addresses_do() {
        assert!(sum(words([(3, 0xfffd), (0xfffd, 2)])).is_ok());
        assert_eq!(sum(words([(3, 0xfffd), (0xfffd, 3)])), Err(EINVAL));
    }

    #[test]
    fn sections_have_no_more_words_than_there_are() {
        // Each of them has half of that.
        // CAST: It fits.
        let half = (MAX_WORDS / 2) as u16;
        let section = words([(3, 0x80), (4, 0x80), (0x80, half)]);
        assert_eq!(sum(section), Ok(2 * 0x80));

        let read = Cell::new(0);
        let everywhere = words([(3, 0x80), (4, 0x80), (5, 0x80), (0x80, half)]);
        let counted = |at| {
            read.set(read.get() + 1);
            everywhere(at)
        };
        assert_eq!(sum(counted), Err(EINVAL));
        assert!(read.get() < MAX_WORDS + 0x100);
    }
}
