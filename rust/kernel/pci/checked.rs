// SPDX-License-Identifier: GPL-2.0

//! Registers that are not believed if they read as all ones.

use super::Bar;

use crate::{
    io::{
        register::LocatedRegister,
        Io,
        IoLoc,
        Region, //
    },
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

/// How often the probe is read until the device counts as gone, and the time between two reads.
const READS: usize = 5;
const PAUSE: Delta = Delta::from_millis(3);

/// Whether a device answers.
struct Presence {
    /// It has not answered when that was waited for. It is not waited for again.
    was_gone: Atomic<bool>,
}

impl Presence {
    const fn new() -> Self {
        Self {
            was_gone: Atomic::new(false),
        }
    }

    /// Looks at the `probe` again and again if it may sleep, or else once: a read that is not
    /// answered can take milliseconds.
    fn answers(&self, probe: impl Fn() -> u32, may_sleep: bool) -> bool {
        for round in 0..READS {
            if round > 0 {
                fsleep(PAUSE);
            }
            if probe() != u32::MAX {
                self.was_gone.store(false, Relaxed);
                return true;
            }
            if !may_sleep || self.was_gone.load(Relaxed) {
                return false;
            }
        }
        self.was_gone.store(true, Relaxed);
        false
    }

    /// Looks what is behind all ones. Returns the value that the register has then.
    fn confirm(&self, probe: impl Fn() -> u32, read: impl FnOnce() -> u32, may_sleep: bool) -> u32 {
        if self.answers(probe, may_sleep) {
            read()
        } else {
            u32::MAX
        }
    }
}

/// A BAR with registers of 32 bits, for drivers that decide by them what they do, for instance
/// whether DMA has stopped.
///
/// All ones are what a read returns that was not answered: by a device that is gone, or by one that
/// is there, and has lost this request. So they are believed only if the register at `PROBE`, which
/// never has this value, reads as all ones, too, again and again, or if the register does when it
/// is read once more.
///
/// Context: process context, except for writes and where it is said.
pub struct CheckedBar<'bound, const SIZE: usize, const PROBE: usize> {
    bar: Bar<'bound, SIZE>,
    presence: Presence,
}

impl<'bound, const SIZE: usize, const PROBE: usize> CheckedBar<'bound, SIZE, PROBE> {
    /// Takes over the mapping.
    pub fn new(bar: Bar<'bound, SIZE>) -> Self {
        Self {
            bar,
            presence: Presence::new(),
        }
    }

    /// Whether the device has been removed, or does not answer: then all registers read as all
    /// ones.
    pub fn is_gone(&self) -> bool {
        !self.presence.answers(|| self.bar.read32(PROBE), true)
    }

    /// Whether the device answers. Any context: one that is slow may be taken for one that does
    /// not.
    pub fn answers_now(&self) -> bool {
        self.presence.answers(|| self.bar.read32(PROBE), false)
    }

    #[cold]
    #[inline(never)]
    fn read_again(&self, at: usize, may_sleep: bool) -> u32 {
        self.presence.confirm(
            || self.bar.read32(PROBE),
            || self.bar.try_read32(at).unwrap_or(u32::MAX),
            may_sleep,
        )
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
    pub fn read<T, L>(&self, location: L) -> T
    where
        T: From<u32>,
        L: IoLoc<Region<SIZE>, T, IoType = u32>,
    {
        T::from(self.read_checked(location.offset(), true))
    }

    /// As [`Self::read`], in any context: a device that is slow may be taken for one that is gone.
    #[inline(always)]
    pub fn read_atomic<T, L>(&self, location: L) -> T
    where
        T: From<u32>,
        L: IoLoc<Region<SIZE>, T, IoType = u32>,
    {
        T::from(self.read_checked(location.offset(), false))
    }

    /// Reads a register that a read changes, which is not done twice. [`None`] if that was not
    /// answered. Any context.
    #[inline(always)]
    pub fn read_once<T, L>(&self, location: L) -> Option<T>
    where
        T: From<u32>,
        L: IoLoc<Region<SIZE>, T, IoType = u32>,
    {
        match self.bar.read32(location.offset()) {
            u32::MAX => None,
            value => Some(T::from(value)),
        }
    }

    /// As [`Self::read`], of a register that is never all ones. [`ENODEV`] if the device is gone.
    #[inline(always)]
    pub fn try_read<T, L>(&self, location: L) -> Result<T>
    where
        T: From<u32>,
        L: IoLoc<Region<SIZE>, T, IoType = u32>,
    {
        match self.read_checked(location.offset(), true) {
            u32::MAX => Err(ENODEV),
            value => Ok(T::from(value)),
        }
    }

    /// As [`Self::read`], of the register at an offset that is computed.
    pub fn read_at(&self, offset: usize) -> Result<u32> {
        match self.bar.try_read32(offset)? {
            u32::MAX => Ok(self.read_again(offset, true)),
            value => Ok(value),
        }
    }

    /// Writes a register.
    #[inline(always)]
    pub fn write<T, L: IoLoc<Region<SIZE>, T, IoType = u32>>(&self, location: L, value: T) {
        self.bar.write(location, value);
    }

    /// Writes the register of which this is a value.
    #[inline(always)]
    pub fn write_reg<T, L, V>(&self, value: V)
    where
        L: IoLoc<Region<SIZE>, T, IoType = u32>,
        V: LocatedRegister<Region<SIZE>, Location = L, Value = T>,
    {
        self.bar.write_reg(value);
    }

    /// Writes the register at an offset that is computed.
    pub fn write_at(&self, offset: usize, value: u32) -> Result {
        self.bar.try_write32(value, offset)
    }

    /// Changes a register, which is never all ones. [`ENODEV`] if it stays as it is: the device is
    /// gone, or was, and may be back right after that.
    #[inline(always)]
    pub fn update<T, L>(&self, location: L, f: impl FnOnce(T) -> T) -> Result
    where
        T: From<u32> + Into<u32>,
        L: IoLoc<Region<SIZE>, T, IoType = u32>,
    {
        let at = location.offset();

        match self.read_checked(at, true) {
            u32::MAX => Err(ENODEV),
            value => {
                self.bar.write32(f(T::from(value)).into(), at);
                Ok(())
            }
        }
    }
}

#[macros::kunit_tests(rust_pci_checked)]
mod tests {
    use super::*;

    use core::cell::Cell;

    /// A device that does not answer the next so many reads.
    struct Device {
        silent: Cell<usize>,
        reads: Cell<usize>,
        presence: Presence,
    }

    impl Device {
        fn new(silent: usize) -> Self {
            Self {
                silent: Cell::new(silent),
                reads: Cell::new(0),
                presence: Presence::new(),
            }
        }

        /// Reads a register that is 7.
        fn read(&self) -> u32 {
            self.reads.set(self.reads.get() + 1);
            match self.silent.get() {
                0 => 7,
                silent => {
                    self.silent.set(silent - 1);
                    u32::MAX
                }
            }
        }

        /// The value that is believed to be behind all ones, and the number of reads.
        fn confirm(&self, may_sleep: bool) -> (u32, usize) {
            self.reads.set(0);
            let value = self
                .presence
                .confirm(|| self.read(), || self.read(), may_sleep);
            (value, self.reads.get())
        }
    }

    #[test]
    fn a_read_that_was_lost_is_repeated() {
        assert_eq!(Device::new(0).confirm(true), (7, 2));
        assert_eq!(Device::new(0).confirm(false), (7, 2));
        assert_eq!(Device::new(READS - 1).confirm(true), (7, READS + 1));
    }

    #[test]
    fn a_device_that_is_gone_is_waited_for_once() {
        let device = Device::new(READS + 1);

        assert_eq!(device.confirm(true), (u32::MAX, READS));
        assert_eq!(device.confirm(true), (u32::MAX, 1));
        // It is back.
        assert_eq!(device.confirm(true), (7, 2));
        device.silent.set(1);
        assert_eq!(device.confirm(true), (7, 3));
    }

    #[test]
    fn nothing_waits_in_atomic_context() {
        let device = Device::new(1);

        assert_eq!(device.confirm(false), (u32::MAX, 1));
        // Nor does it count as gone by that.
        device.silent.set(1);
        assert_eq!(device.confirm(true), (7, 3));
    }
}
