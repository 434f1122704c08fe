// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `kernel::pci`: a card whose registers are those of a test.

use crate::device::Bound;
use crate::io::register::Register;
use crate::prelude::{Result, ENODEV};
use std::ffi::CStr;
use std::marker::PhantomData;

/// The registers of a card.
pub(crate) trait Card {
    fn read(&self, at: usize) -> u32;
    fn write(&self, at: usize, value: u32);
    /// A byte of the module, if there is one.
    fn module(&self, at: usize) -> Option<u8>;
}

/// The device of a card that nothing maps: tests make a [`CheckedBar`] of theirs.
pub(crate) struct Device<T>(PhantomData<T>);

impl Device<Bound> {
    #[expect(clippy::unused_self, reason = "as in the kernel")]
    pub(crate) fn iomap_region_sized(&self, _: u32, _: &CStr) -> Result<&dyn Card> {
        Err(ENODEV)
    }
}

/// The registers, of which one never has all bits set while the card is there.
pub(crate) struct CheckedBar<'a, const SIZE: usize, const CHECK: usize>(pub(crate) &'a dyn Card);

impl<'a, const SIZE: usize, const CHECK: usize> CheckedBar<'a, SIZE, CHECK> {
    pub(crate) fn new(card: &'a dyn Card) -> Self {
        Self(card)
    }

    pub(crate) fn read<R: Register>(&self, make: fn(u32) -> R) -> R {
        const { assert!(R::OFFSET < SIZE) };
        make(self.0.read(R::OFFSET))
    }

    pub(crate) fn try_read<R: Register>(&self, make: fn(u32) -> R) -> Result<R> {
        let value = self.0.read(R::OFFSET);
        if value == u32::MAX && self.0.read(CHECK) == u32::MAX {
            return Err(ENODEV);
        }
        Ok(make(value))
    }

    pub(crate) fn write_reg<R: Register + Into<u32>>(&self, value: R) {
        self.0.write(R::OFFSET, value.into());
    }

    pub(crate) fn update<R: Register + Into<u32>>(
        &self,
        make: fn(u32) -> R,
        change: impl FnOnce(R) -> R,
    ) -> Result {
        self.write_reg(change(self.try_read(make)?));
        Ok(())
    }
}
