// SPDX-License-Identifier: GPL-2.0

//! Words of descriptors, in the byte order of cards.

use crate::{
    dma::DmaAddress,
    io::{
        IoBackend,
        IoCapable,
        SysMem,
        SysMemBackend, //
    },
    transmute::{
        AsBytes,
        FromBytes, //
    },
};

/// A number of 64 bits in memory that is shared with a card, little-endian on any CPU.
///
/// Memory of such words, `Coherent<[Le64; N]>`, does not take a number of the CPU by mistake.
///
/// A CPU of 32 bits accesses the halves of a word one after the other. There, a reader that finds
/// a card's notice in one of them has to read the word again, behind a barrier, for the other.
///
/// # Examples
///
/// ```
/// use kernel::net::queue::Le64;
///
/// let word = Le64::new(0x0102);
/// assert_eq!(word.get(), 0x0102);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Le64(u64);

// SAFETY: All bit patterns are valid.
unsafe impl FromBytes for Le64 {}

// SAFETY: There is no padding, and nothing that changes through a shared reference.
unsafe impl AsBytes for Le64 {}

impl Le64 {
    /// The word for a number.
    #[inline(always)]
    pub const fn new(value: u64) -> Self {
        Self(value.to_le())
    }

    /// The number.
    #[inline(always)]
    pub const fn get(self) -> u64 {
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

impl IoCapable<Le64> for SysMemBackend {
    #[inline(always)]
    fn io_read(view: SysMem<'_, Le64>) -> Le64 {
        // SAFETY: By the invariants of the view, the pointer is valid and aligned. All bit patterns
        // are valid. The access is volatile, since the card may write at the same time.
        unsafe { Self::as_ptr(view).read_volatile() }
    }

    #[inline(always)]
    fn io_write(view: SysMem<'_, Le64>, value: Le64) {
        // SAFETY: As above.
        unsafe { Self::as_ptr(view).write_volatile(value) }
    }
}
