// SPDX-License-Identifier: GPL-2.0

//! The memory of a ring of descriptors.

use super::le::Le64;
use crate::{
    device::{
        self,
        Bound, //
    },
    dma::Coherent,
    prelude::*, //
};

/// A descriptor.
type Words = [Le64; 2];

/// The number of descriptors of a ring: a power of two, 2 at least.
///
/// # Examples
///
/// ```
/// use kernel::net::queue::RingSize;
///
/// const LEN: RingSize = RingSize::of::<512>();
///
/// assert_eq!(LEN.get(), 512);
/// // For the NIC's register: a descriptor has 16 bytes.
/// assert_eq!(LEN.bytes(), 8192);
/// assert_eq!(RingSize::new(768), None);
/// assert_eq!(RingSize::at_least(513), RingSize::new(1024));
/// ```
///
/// # Invariants
///
/// The number is a power of two from 2 to [`RingSize::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RingSize(u32);

impl RingSize {
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
///
/// # Invariants
///
/// `mask` is one less than the number of descriptors of `memory`, a power of two.
pub(in crate::net) struct RingMemory {
    /// For indices.
    mask: usize,
    memory: Coherent<[Words]>,
}

impl RingMemory {
    /// Allocates it. May sleep.
    pub(in crate::net) fn new(dev: &device::Device<Bound>, len: RingSize) -> Result<Self> {
        let memory: Coherent<[Words]> = Coherent::zeroed_slice(dev, len.get(), GFP_KERNEL)?;

        // INVARIANT: The memory has that many descriptors, a power of two.
        Ok(Self {
            mask: len.get() - 1,
            memory,
        })
    }

    /// The address of the ring for the NIC.
    pub(in crate::net) fn address(&self) -> u64 {
        super::bus_address(self.memory.dma_address())
    }

    /// The size of the ring.
    pub(in crate::net) fn bytes(&self) -> u32 {
        // CAST: At most that of [`RingSize::MAX`] descriptors.
        self.memory.size() as u32
    }

    /// The number of descriptors.
    #[inline(always)]
    pub(in crate::net) fn len(&self) -> usize {
        self.mask + 1
    }

    /// The place of the descriptor with this index, which counts on.
    #[inline(always)]
    pub(in crate::net) fn place(&self, index: usize) -> Place {
        // Not by [`RingSlots::place`]: the compiler would shift the mask, too.
        //
        // INVARIANT: This is its position under the mask of the ring.
        Place(RingSlots::position(index & self.mask))
    }

    /// The access to the descriptors.
    #[inline(always)]
    pub(in crate::net) fn slots(&self) -> RingSlots {
        // INVARIANT: By the type invariants.
        RingSlots {
            first: self.memory.as_mut_ptr().cast::<Le64>(),
            mask: RingSlots::position(self.mask),
        }
    }
}

/// The access to the descriptors of a [`RingMemory`].
///
/// There is never a reference to a word: NICs write to them at any time. Accesses are volatile, and
/// marked ones in the memory model of the kernel, by which those of two CPUs to the same word are
/// no data race either. So a handle may be used by several threads: what they write to the same
/// descriptor reaches the NIC in some order of the words, but nothing else depends on it.
///
/// The number of descriptors is not part of the type: users change it. So to find one costs a mask
/// in memory rather than in the instruction. It takes no shift, nor does what belongs to it in
/// another array: positions count words, and CPUs scale them to words when they access memory.
///
/// # Invariants
///
/// As long as the memory exists, `first` points to the words of `mask / 2 + 1` descriptors, a power
/// of two. The lowest bit of `mask` is clear.
#[derive(Clone, Copy)]
pub(in crate::net) struct RingSlots {
    first: *mut Le64,
    mask: usize,
}

// SAFETY: What accesses the memory is unsafe, and asks for what it takes.
unsafe impl Send for RingSlots {}

// SAFETY: As for `Send`.
unsafe impl Sync for RingSlots {}

/// The place of a descriptor in a ring, in words.
///
/// # Invariants
///
/// It is a position under the mask of a ring.
#[derive(Clone, Copy)]
pub(in crate::net) struct Place(usize);

impl Place {
    /// The offset in bytes in an array that has a `T` for each descriptor.
    #[inline(always)]
    pub(in crate::net) const fn offset<T>(self) -> usize {
        const { assert!(size_of::<T>() % RingSlots::WORDS == 0) };

        self.0 * (size_of::<T>() / RingSlots::WORDS)
    }
}

impl RingSlots {
    /// The number of words of a descriptor: positions of descriptors are that far apart.
    pub(in crate::net) const WORDS: usize = size_of::<Words>() / size_of::<Le64>();

    /// The position of a descriptor. Both numbers count on.
    #[inline(always)]
    pub(in crate::net) const fn position(index: usize) -> usize {
        index.wrapping_mul(Self::WORDS)
    }

    /// The index of the descriptor at a position.
    #[inline(always)]
    pub(in crate::net) fn index(&self, position: usize) -> usize {
        (position & self.mask) / Self::WORDS
    }

    /// The number of descriptors.
    #[inline(always)]
    pub(in crate::net) fn len(&self) -> usize {
        self.mask / Self::WORDS + 1
    }

    /// Whether all descriptors but one are in use, those from one position to another one. It is
    /// not for more.
    #[inline(always)]
    pub(in crate::net) fn is_full(&self, done: usize, free: usize) -> bool {
        free.wrapping_sub(done).wrapping_add(Self::WORDS) & self.mask == 0
    }

    /// The place of the descriptor at a position.
    #[inline(always)]
    pub(in crate::net) fn place(&self, position: usize) -> Place {
        // INVARIANT: This is the mask of a ring.
        Place(position & self.mask)
    }

    /// The number of descriptors from a place of this ring to the last one.
    #[inline]
    pub(in crate::net) fn until_end(&self, place: Place) -> usize {
        self.len() - place.0 / Self::WORDS
    }

    /// The first word of a descriptor, if the memory exists and the place is one of this ring.
    #[inline(always)]
    fn word(&self, place: Place) -> *mut Le64 {
        self.first.wrapping_add(place.0)
    }

    /// Writes a descriptor, the first word first.
    ///
    /// # Safety
    ///
    /// The memory must exist, and `place` must be one of this ring.
    #[inline(always)]
    pub(in crate::net) unsafe fn write(&self, place: Place, [first, second]: [u64; 2]) {
        let at = self.word(place);

        // SAFETY: By the type invariants and the safety requirements, these are the words of a
        // descriptor. The accesses are volatile, since the NIC may access them at the same time.
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
    pub(in crate::net) unsafe fn first(&self, place: Place) -> u64 {
        // SAFETY: As there. All bit patterns are valid.
        unsafe { self.word(place).read_volatile() }.get()
    }

    /// Reads the second word of a descriptor.
    ///
    /// # Safety
    ///
    /// As for [`Self::write`].
    #[inline(always)]
    pub(in crate::net) unsafe fn second(&self, place: Place) -> u64 {
        // SAFETY: As there. All bit patterns are valid.
        unsafe { self.word(place).add(1).read_volatile() }.get()
    }
}

#[macros::kunit_tests(rust_net_ring_len)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_powers_of_two() {
        for bad in [0, 1, 3, 1000, RingSize::MAX + 1, RingSize::MAX * 2] {
            assert_eq!(RingSize::new(bad), None);
        }
        assert_eq!(RingSize::new(2).map(RingSize::get), Some(2));
        assert_eq!(
            RingSize::new(RingSize::MAX).map(RingSize::bytes),
            Some(1 << 19)
        );
    }

    #[test]
    fn places_are_those_of_descriptors() {
        // INVARIANT: There is no memory.
        let slots = RingSlots {
            first: core::ptr::null_mut(),
            mask: RingSlots::position(8 - 1),
        };

        assert_eq!(slots.len(), 8);
        for index in [0, 1, 7, 8, 13, usize::MAX] {
            let position = RingSlots::position(index);
            let place = slots.place(position);

            assert_eq!(slots.index(position), index % 8);
            assert_eq!(slots.until_end(place), 8 - index % 8);
            assert_eq!(place.offset::<Words>(), 16 * (index % 8));
            assert_eq!(place.offset::<u64>(), 8 * (index % 8));
            // No position leads elsewhere.
            assert_eq!(slots.place(position + 1).0, place.0);
        }
    }

    #[test]
    fn other_numbers_are_rounded_up() {
        let rounded = |number| RingSize::at_least(number).map(RingSize::get);

        assert_eq!([0, 1, 2, 3].map(rounded), [2, 2, 2, 4].map(Some));
        assert_eq!([64, 65, 127].map(rounded), [64, 128, 128].map(Some));
        assert_eq!(rounded(RingSize::MAX), Some(RingSize::MAX));
        assert_eq!([RingSize::MAX + 1, usize::MAX].map(rounded), [None; 2]);
    }
}
