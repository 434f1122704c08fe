// SPDX-License-Identifier: GPL-2.0

//! The EEPROM, read through the EERD register (datasheet 8.2.3.2).

use kernel::{
    device::{
        self,
        Bound, //
    },
    io::{
        poll::read_poll_timeout,
        Io, //
    },
    prelude::*,
    time::Delta, //
};

use crate::{
    hw::Bar0,
    regs::*, //
};

/// The sum of all covered words, including the checksum itself.
const SUM: u16 = 0xbaba;

/// The word that holds the checksum.
const CHECKSUM_WORD: u16 = 0x3f;

/// Pointers to the sections that the checksum covers (datasheet 6.3).
const SECTION_POINTERS: core::ops::Range<u16> = 0x03..0x0f;

/// Reads a word.
pub(crate) fn read(bar: &Bar0<'_>, word: u16) -> Result<u16> {
    bar.write_reg(EERD::zeroed().try_with_addr(word)?.with_start(true));

    let value = read_poll_timeout(
        || Ok(bar.read(EERD)),
        |r| r.done(),
        Delta::from_micros(5),
        Delta::from_millis(100),
    )?;

    // A removed card reads as all ones, which includes "done".
    if value.into_raw() == u32::MAX {
        return Err(ENODEV);
    }

    Ok(u16::from(value.data()))
}

/// Returns the sum of all words that the checksum covers, including the checksum itself.
fn sum(bar: &Bar0<'_>) -> Result<u16> {
    let mut sum = 0u16;

    for word in 0..=CHECKSUM_WORD {
        sum = sum.wrapping_add(read(bar, word)?);
    }

    for pointer in SECTION_POINTERS {
        let section = read(bar, pointer)?;
        if section == 0 || section == u16::MAX {
            continue;
        }

        let len = read(bar, section)?;
        if len == 0 || len == u16::MAX {
            continue;
        }

        for offset in 1..=len {
            // A section that runs past the end of the address space is corrupt.
            let word = section.checked_add(offset).ok_or(EINVAL)?;
            sum = sum.wrapping_add(read(bar, word)?);
        }
    }

    Ok(sum)
}

/// Checks that the EEPROM is present and its checksum is correct.
pub(crate) fn check(dev: &device::Device<Bound>, bar: &Bar0<'_>) -> Result {
    if !bar.read(EEC).ee_pres() {
        dev_err!(dev, "no EEPROM with a valid signature\n");
        return Err(ENODEV);
    }

    let sum = sum(bar).inspect_err(|_| dev_err!(dev, "cannot read the EEPROM\n"))?;
    if sum != SUM {
        dev_err!(
            dev,
            "EEPROM checksum is 0x{:04x}, not 0x{:04x}; restore the card's EEPROM image\n",
            sum,
            SUM
        );
        return Err(EIO);
    }

    Ok(())
}
