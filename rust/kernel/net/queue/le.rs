// SPDX-License-Identifier: GPL-2.0

//! Words of descriptors, in the byte order of NICs.

use crate::{
    dma::DmaAddress,
    transmute::{
        AsBytes,
        FromBytes, //
    },
};

/// A number of 64 bits in memory that is shared with a NIC, little-endian on any CPU.
///
/// A CPU of 32 bits accesses the halves of a word one after the other. There, a reader that finds
/// the done bit in one of them has to read the word again, behind a barrier, for the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Le64(u64);

// SAFETY: All bit patterns are valid.
unsafe impl FromBytes for Le64 {}

// SAFETY: There is no padding, and nothing that changes through a shared reference.
unsafe impl AsBytes for Le64 {}

impl Le64 {
    /// The word for a number.
    #[inline(always)]
    pub(super) const fn new(value: u64) -> Self {
        Self(value.to_le())
    }

    /// The number.
    #[inline(always)]
    pub(super) const fn get(self) -> u64 {
        u64::from_le(self.0)
    }
}

/// An address on the bus, as descriptors and registers of 64 bits hold it.
///
/// On some architectures [`DmaAddress`] has 32 bits.
#[allow(clippy::unnecessary_cast)]
#[inline(always)]
pub const fn bus_address(address: DmaAddress) -> u64 {
    address as u64
}
