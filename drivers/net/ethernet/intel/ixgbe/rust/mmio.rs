// SPDX-License-Identifier: GPL-2.0

//! Access to the registers of a port.

use kernel::{
    device::Bound,
    io::{
        poll::read_poll_timeout,
        register::{
            LocatedRegister,
            Register, //
        },
        Io,
        IoLoc,
        Region, //
    },
    pci,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

use crate::regs::*;

/// Size of the register space.
const BAR_SIZE: usize = 0x20000;

type Registers = Region<BAR_SIZE>;

/// How often STATUS is read until the device counts as gone, and the time between two reads.
const STATUS_READS: usize = 5;
const PAUSE: Delta = Delta::from_millis(3);

/// The register space.
///
/// All ones are what a read returns that was not answered: by a device that is gone, or by one that
/// is there, and has lost this request. So they are believed only if STATUS is all ones, too, again
/// and again, or if the register is when it is read once more.
///
/// Context: process context, except for writes and [`Self::read_atomic`].
pub(crate) struct Bar0<'bound> {
    bar: pci::Bar<'bound, BAR_SIZE>,
    /// The device has not answered when that was waited for. It is not waited for again.
    was_gone: Atomic<bool>,
}

impl<'bound> Bar0<'bound> {
    /// Maps the registers.
    pub(crate) fn new(pdev: &'bound pci::Device<Bound>) -> Result<Self> {
        Ok(Self {
            bar: pdev.iomap_region_sized(0, c"ixgbe_rust")?,
            was_gone: Atomic::new(false),
        })
    }

    /// Returns whether the device has been removed: then all registers read as all ones.
    pub(crate) fn is_gone(&self) -> bool {
        !self.answers(true)
    }

    fn answers(&self, may_sleep: bool) -> bool {
        for _ in 0..STATUS_READS {
            if self.bar.read32(STATUS::OFFSET) != u32::MAX {
                self.was_gone.store(false, Relaxed);
                return true;
            }
            if self.was_gone.load(Relaxed) {
                return false;
            }
            if may_sleep {
                fsleep(PAUSE);
            }
        }
        // Without a pause, it may just be slow.
        if may_sleep {
            self.was_gone.store(true, Relaxed);
        }
        false
    }

    /// Looks what is behind all ones. Returns the value of the register at this offset.
    #[cold]
    #[inline(never)]
    fn read_again(&self, at: usize, may_sleep: bool) -> u32 {
        if !self.answers(may_sleep) {
            return u32::MAX;
        }
        self.bar.try_read32(at).unwrap_or(u32::MAX)
    }

    #[inline(always)]
    fn read_checked(&self, at: usize, may_sleep: bool) -> u32 {
        match self.bar.read32(at) {
            u32::MAX => self.read_again(at, may_sleep),
            value => value,
        }
    }

    /// Reads a register. A device that is gone has all ones.
    #[inline(always)]
    pub(crate) fn read<T, L>(&self, location: L) -> T
    where
        T: From<u32>,
        L: IoLoc<Registers, T, IoType = u32>,
    {
        T::from(self.read_checked(location.offset(), true))
    }

    /// As [`Self::read`], in any context: a device that is slow may be taken for one that is gone.
    #[inline(always)]
    pub(crate) fn read_atomic<T, L>(&self, location: L) -> T
    where
        T: From<u32>,
        L: IoLoc<Registers, T, IoType = u32>,
    {
        T::from(self.read_checked(location.offset(), false))
    }

    /// As [`Self::read`], of a register that is never all ones. [`ENODEV`] if the device is gone.
    #[inline(always)]
    pub(crate) fn try_read<T, L>(&self, location: L) -> Result<T>
    where
        T: From<u32>,
        L: IoLoc<Registers, T, IoType = u32>,
    {
        match self.read_checked(location.offset(), true) {
            u32::MAX => Err(ENODEV),
            value => Ok(T::from(value)),
        }
    }

    /// As [`Self::read`], of the register at an offset that is computed.
    pub(crate) fn read_at(&self, offset: usize) -> Result<u32> {
        match self.bar.try_read32(offset)? {
            u32::MAX => Ok(self.read_again(offset, true)),
            value => Ok(value),
        }
    }

    /// Writes a register.
    #[inline(always)]
    pub(crate) fn write<T, L: IoLoc<Registers, T, IoType = u32>>(&self, location: L, value: T) {
        self.bar.write(location, value);
    }

    /// Writes the register of which this is a value.
    #[inline(always)]
    pub(crate) fn write_reg<T, L, V>(&self, value: V)
    where
        L: IoLoc<Registers, T, IoType = u32>,
        V: LocatedRegister<Registers, Location = L, Value = T>,
    {
        self.bar.write_reg(value);
    }

    /// Writes the register at an offset that is computed.
    pub(crate) fn write_at(&self, offset: usize, value: u32) -> Result {
        self.bar.try_write32(value, offset)
    }

    /// Changes a register, which is never all ones. It stays as it is if the device is gone.
    #[inline(always)]
    pub(crate) fn update<T, L>(&self, location: L, f: impl FnOnce(T) -> T)
    where
        T: From<u32> + Into<u32>,
        L: IoLoc<Registers, T, IoType = u32>,
    {
        let at = location.offset();

        match self.read_checked(at, true) {
            u32::MAX => (),
            value => self.bar.write32(f(T::from(value)).into(), at),
        }
    }
}

/// Flushes posted writes to the device.
pub(crate) fn flush(bar: &Bar0<'_>) {
    bar.read(STATUS);
}

/// Polls `read` every `interval` until `cond` holds for its value, and returns that.
///
/// On a busy host, a virtual machine may lose its CPU for longer than `timeout`, and have read only
/// once by then. So time alone does not make this fail: some more reads have to agree.
pub(crate) fn poll<T>(
    mut read: impl FnMut() -> Result<T>,
    mut cond: impl FnMut(&T) -> bool,
    interval: Delta,
    timeout: Delta,
) -> Result<T> {
    const MORE_READS: usize = 8;

    read_poll_timeout(&mut read, &mut cond, interval, timeout).or_else(|error| {
        for _ in 0..MORE_READS {
            fsleep(interval);
            let value = read()?;
            if cond(&value) {
                return Ok(value);
            }
        }
        Err(error)
    })
}

/// Polls `read` until `cond` holds for its value.
pub(crate) fn wait_for<T>(
    read: impl FnMut() -> Result<T>,
    cond: impl FnMut(&T) -> bool,
    timeout: Delta,
) -> Result {
    poll(read, cond, Delta::from_micros(100), timeout).map(|_| ())
}
