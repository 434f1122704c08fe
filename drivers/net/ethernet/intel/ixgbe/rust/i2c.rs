// SPDX-License-Identifier: GPL-2.0

//! The I2C bus to the SFP+ module, whose lines software moves (datasheet 8.2.3.1.4).

use kernel::{
    prelude::*,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

use crate::{
    mmio::Bar0,
    regs::medium::*,
    semaphore::{
        self,
        Resource, //
    }, //
};

/// Half a period of the clock, of 100 kHz at most: longer than any time that the bus asks for.
const HALF: Delta = Delta::from_micros(5);

/// How often to look whether the module lets go of the clock line, once in [`HALF`].
const STRETCHES: usize = 100;

/// Number of attempts to read. A module may be busy with itself.
const ATTEMPTS: usize = 2;

/// Addresses of the two pages of a module, as the first byte on the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// Identification.
    Id = 0xa0,
    /// Diagnostics.
    Diagnostics = 0xa2,
}

/// In the byte of the address: the module sends.
const READ: u8 = 1;

/// The lines of the bus. Both are high while it is idle.
struct Bus<'a, 'bound> {
    bar: &'a Bar0<'bound>,
    clock: bool,
}

impl Bus<'_, '_> {
    /// Moves the lines, one at a time.
    fn set(&mut self, clock: bool, data: bool) {
        self.clock = clock;
        self.bar
            .write_reg(I2CCTL::zeroed().with_clk_out(clock).with_data_out(data));
        // This flushes the write, so that the time counts from the change.
        self.bar.read(I2CCTL);
        fsleep(HALF);
    }

    /// Raises the clock, which the module may hold down for some time. Returns the levels.
    fn raise(&mut self, data: bool) -> Result<I2CCTL> {
        self.set(true, data);

        for _ in 0..STRETCHES {
            let lines = self.bar.read(I2CCTL);
            if lines.clk_in() {
                return Ok(lines);
            }
            fsleep(HALF);
        }
        Err(EIO)
    }

    /// Begins a transfer, or another one without an end of the last.
    fn start(&mut self) -> Result {
        let clock = self.clock;
        self.set(clock, true);
        self.raise(true)?;
        self.set(true, false);
        self.set(false, false);
        Ok(())
    }

    /// Ends a transfer.
    fn stop(&mut self) {
        let clock = self.clock;
        self.set(clock, false);
        // A module that holds the clock down is no reason to leave the lines as they are.
        let _ = self.raise(false);
        self.set(true, true);
    }

    /// Sends a bit, or receives one while the data line is high.
    fn bit(&mut self, data: bool) -> Result<bool> {
        self.set(false, data);
        let lines = self.raise(data)?;
        self.set(false, data);
        Ok(lines.data_in())
    }

    /// Sends a byte, which the module has to acknowledge.
    fn send(&mut self, byte: u8) -> Result {
        for shift in (0..8).rev() {
            self.bit(byte >> shift & 1 != 0)?;
        }
        if self.bit(true)? {
            return Err(ENXIO);
        }
        Ok(())
    }

    /// Receives a byte, and acknowledges it if another one is to follow.
    fn receive(&mut self, more: bool) -> Result<u8> {
        let mut byte = 0;

        for _ in 0..8 {
            byte = byte << 1 | u8::from(self.bit(true)?);
        }
        self.bit(!more)?;
        Ok(byte)
    }

    fn transfer(&mut self, page: Page, offset: u8, bytes: &mut [u8]) -> Result {
        self.start()?;
        self.send(page as u8)?;
        self.send(offset)?;
        self.start()?;
        self.send(page as u8 | READ)?;

        let last = bytes.len().saturating_sub(1);
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = self.receive(at < last)?;
        }
        Ok(())
    }

    /// Makes a transfer, and another one if that fails.
    fn read(&mut self, page: Page, offset: u8, bytes: &mut [u8]) -> Result {
        let mut result = Ok(());

        for _ in 0..ATTEMPTS {
            result = self.transfer(page, offset, bytes);
            if result.is_ok() {
                self.stop();
                break;
            }
            self.clear();
        }
        result
    }

    /// Ends whatever the module takes the last transfer for: no byte has more clock pulses.
    fn clear(&mut self) {
        for _ in 0..9 {
            let _ = self.bit(true);
        }
        let _ = self.start();
        self.stop();
    }
}

/// The way in which bytes of a module are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// All of them in one transfer.
    Together,
    /// Each in a transfer of its own. Some modules know no others.
    Alone,
}

/// Reads bytes of a module from `offset` on; after the last one follows the first one. Takes a
/// millisecond for 10 bytes, and twice as long for bytes that are read alone.
///
/// [`ENXIO`] if no module answers.
pub(crate) fn read(
    bar: &Bar0<'_>,
    port: u32,
    page: Page,
    offset: u8,
    bytes: &mut [u8],
    transfer: Transfer,
) -> Result {
    let _owned = semaphore::take(bar, Resource::bus(port))?;
    let mut bus = Bus { bar, clock: true };

    match transfer {
        Transfer::Together => bus.read(page, offset, bytes),
        Transfer::Alone => (0..=u8::MAX).zip(bytes).try_for_each(|(at, byte)| {
            bus.read(page, offset.wrapping_add(at), core::slice::from_mut(byte))
        }),
    }
}
