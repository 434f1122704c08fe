// SPDX-License-Identifier: GPL-2.0

//! The memory of a ring of descriptors.

use super::Le64;
use crate::{
    device::{
        self,
        Bound, //
    },
    dma::Coherent,
    prelude::*, //
};
use core::ptr::NonNull;

/// A descriptor.
type Words = [Le64; 2];

/// The number of descriptors of a ring: a power of two, 2 at least.
///
/// # Examples
///
/// ```
/// use kernel::net::queue::RingLen;
///
/// const LEN: RingLen = RingLen::of::<512>();
///
/// assert_eq!(LEN.get(), 512);
/// // For the card's register: a descriptor has 16 bytes.
/// assert_eq!(LEN.bytes(), 8192);
/// assert_eq!(RingLen::new(768), None);
/// assert_eq!(RingLen::at_least(513), RingLen::new(1024));
/// ```
///
/// # Invariants
///
/// The number is a power of two from 2 to [`RingLen::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RingLen(u32);

impl RingLen {
    /// The greatest number of descriptors.
    ///
    /// The number of a packet's descriptors is kept in 16 bits.
    pub const MAX: usize = 1 << 15;

    /// Returns [`None`] if a ring cannot have this number of descriptors.
    pub const fn new(descriptors: usize) -> Option<Self> {
        if descriptors.is_power_of_two() && descriptors >= 2 && descriptors <= Self::MAX {
            // INVARIANT: It has just been checked.
            //
            // CAST: As are the limits.
            Some(Self(descriptors as u32))
        } else {
            None
        }
    }

    /// A number that is known when the driver is built.
    pub const fn of<const N: usize>() -> Self {
        const {
            match Self::new(N) {
                Some(len) => len,
                None => panic!("a ring has a power of two of descriptors, from 2 to 32768"),
            }
        }
    }

    /// The smallest one that is not less than `descriptors`, if there is one.
    pub const fn at_least(descriptors: usize) -> Option<Self> {
        if descriptors > Self::MAX {
            return None;
        }
        match descriptors.next_power_of_two() {
            1 => Self::new(2),
            descriptors => Self::new(descriptors),
        }
    }

    /// The number.
    #[inline]
    pub const fn get(self) -> usize {
        // CAST: `usize` has at least 32 bits wherever the kernel runs.
        self.0 as usize
    }

    /// The size of the ring.
    #[inline]
    pub const fn bytes(self) -> u32 {
        // CAST: 16.
        self.0 * size_of::<Words>() as u32
    }
}

/// The memory of a ring, all of whose words are zero at first.
pub(in crate::net) struct RingMemory(Coherent<[Words]>);

impl RingMemory {
    /// Allocates it. May sleep.
    pub(in crate::net) fn new(dev: &device::Device<Bound>, len: RingLen) -> Result<Self> {
        Coherent::zeroed_slice(dev, len.get(), GFP_KERNEL).map(Self)
    }

    /// The address of the ring for the card.
    pub(in crate::net) fn address(&self) -> u64 {
        super::bus_address(self.0.dma_address())
    }

    /// The access to the ring for `len` descriptors, if it has as many.
    pub(in crate::net) fn slots(&self, len: RingLen) -> Result<RingSlots> {
        if self.0.len() != len.get() {
            return Err(EINVAL);
        }
        let first = NonNull::new(self.0.as_mut_ptr().cast::<Words>()).ok_or(EINVAL)?;

        // INVARIANT: The ring has that many descriptors, a power of two.
        Ok(RingSlots {
            first,
            mask: len.get() - 1,
        })
    }
}

/// The access to the descriptors of a [`RingMemory`].
///
/// The number of descriptors is not part of the type: users change it. To mask an index takes one
/// instruction all the same, with the mask in memory rather than in the instruction.
///
/// # Invariants
///
/// As long as the memory exists, `first` points to `mask + 1` descriptors, a power of two.
#[derive(Clone, Copy)]
pub(in crate::net) struct RingSlots {
    first: NonNull<Words>,
    mask: usize,
}

// SAFETY: What accesses the memory is unsafe, and asks for what it takes.
unsafe impl Send for RingSlots {}

// SAFETY: As for `Send`.
unsafe impl Sync for RingSlots {}

impl RingSlots {
    /// The mask of indices, which count on.
    #[inline(always)]
    pub(in crate::net) fn mask(self) -> usize {
        self.mask
    }

    /// The number of descriptors.
    #[inline(always)]
    pub(in crate::net) fn len(self) -> usize {
        self.mask + 1
    }

    #[inline(always)]
    fn at(self, index: usize) -> *mut Le64 {
        // By the type invariants, this is a descriptor of the ring if the memory exists.
        self.first
            .as_ptr()
            .wrapping_add(index & self.mask)
            .cast::<Le64>()
    }

    /// Writes a descriptor, the first word first.
    ///
    /// # Safety
    ///
    /// The memory must exist.
    #[inline(always)]
    pub(in crate::net) unsafe fn write(self, index: usize, [first, second]: [u64; 2]) {
        let at = self.at(index);

        // SAFETY: By the type invariants, these are the words of a descriptor. The accesses are
        // volatile, since the card may access them at the same time.
        unsafe {
            at.write_volatile(Le64::new(first));
            at.add(1).write_volatile(Le64::new(second));
        }
    }

    /// Reads the first word of a descriptor.
    ///
    /// # Safety
    ///
    /// As for [`Self::write`].
    #[inline(always)]
    pub(in crate::net) unsafe fn first(self, index: usize) -> u64 {
        // SAFETY: As there. All bit patterns are valid.
        unsafe { self.at(index).read_volatile() }.get()
    }

    /// Reads the second word of a descriptor.
    ///
    /// # Safety
    ///
    /// As for [`Self::write`].
    #[inline(always)]
    pub(in crate::net) unsafe fn second(self, index: usize) -> u64 {
        // SAFETY: As there. All bit patterns are valid.
        unsafe { self.at(index).add(1).read_volatile() }.get()
    }
}

#[macros::kunit_tests(rust_net_ring_len)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_powers_of_two() {
        for bad in [0, 1, 3, 1000, RingLen::MAX + 1, RingLen::MAX * 2] {
            assert_eq!(RingLen::new(bad), None);
        }
        assert_eq!(RingLen::new(2).map(RingLen::get), Some(2));
        assert_eq!(
            RingLen::new(RingLen::MAX).map(RingLen::bytes),
            Some(1 << 19)
        );
    }

    #[test]
    fn other_numbers_are_rounded_up() {
        let rounded = |number| RingLen::at_least(number).map(RingLen::get);

        assert_eq!([0, 1, 2, 3].map(rounded), [2, 2, 2, 4].map(Some));
        assert_eq!([64, 65, 127].map(rounded), [64, 128, 128].map(Some));
        assert_eq!(rounded(RingLen::MAX), Some(RingLen::MAX));
        assert_eq!([RingLen::MAX + 1, usize::MAX].map(rounded), [None; 2]);
    }
}
