// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `kernel::net::queue`.

/// The number of descriptors of a ring.
#[derive(Clone, Copy)]
pub(crate) struct RingSize(usize);

impl RingSize {
    pub(crate) const fn of<const N: usize>() -> Self {
        assert!(N.is_power_of_two());
        Self(N)
    }

    pub(crate) const fn get(self) -> usize {
        self.0
    }

    pub(crate) const fn bytes(self) -> usize {
        16 * self.0
    }
}

/// The descriptors of a ring; positions count their words.
pub(crate) struct RingSlots(pub(crate) usize);

impl RingSlots {
    pub(crate) const WORDS: usize = 2;

    pub(crate) fn index(&self, position: usize) -> usize {
        (position / Self::WORDS) & (self.0 - 1)
    }

    pub(crate) fn len(&self) -> usize {
        self.0
    }
}
