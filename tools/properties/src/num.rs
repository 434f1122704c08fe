// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `kernel::num`.

/// A number of so many bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounded<T, const BITS: u32>(pub(crate) T);

impl<T, const BITS: u32> Bounded<T, BITS> {
    pub(crate) fn get(self) -> T {
        self.0
    }
}

impl<const BITS: u32> Bounded<u64, BITS> {
    pub(crate) const fn new<const VALUE: u64>() -> Self {
        assert!(VALUE >> BITS == 0);
        Self(VALUE)
    }
}

/// For the widths with which the kernel has it.
impl<const BITS: u32> From<u16> for Bounded<u64, BITS> {
    fn from(value: u16) -> Self {
        const { assert!(BITS >= u16::BITS) };
        Self(value.into())
    }
}

impl From<Bounded<u32, 16>> for u16 {
    fn from(value: Bounded<u32, 16>) -> Self {
        value.0 as Self
    }
}

impl<const BITS: u32> From<Bounded<u32, BITS>> for u32 {
    fn from(value: Bounded<u32, BITS>) -> Self {
        value.0
    }
}
