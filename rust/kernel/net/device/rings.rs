// SPDX-License-Identifier: GPL-2.0

//! The settings with which a device goes up: the number of its queues, and the lengths of rings.

use crate::net::queue::RingSize;

/// The lengths that the rings of a device can have, see
/// [`RingparamOps`](super::ethtool::ringparam::RingparamOps).
#[derive(Clone, Copy, Debug)]
pub struct RingRange {
    /// The minimum.
    pub min: RingSize,
    /// The maximum.
    pub max: RingSize,
    /// The default.
    pub default: RingSize,
}

impl RingRange {
    /// The length for a user's number: rounded up to a power of two. [`None`] if it is out of
    /// range.
    pub(super) fn round(self, descriptors: u32) -> Option<RingSize> {
        // CAST: `usize` has at least 32 bits wherever the kernel runs.
        let descriptors = descriptors as usize;

        let is_valid = (self.min.get()..=self.max.get()).contains(&descriptors);
        RingSize::at_least(descriptors).filter(|_| is_valid)
    }
}

/// The lengths of a device's rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSizes {
    /// Of receive rings.
    pub rx: RingSize,
    /// Of transmit rings.
    pub tx: RingSize,
}

impl RingSizes {
    /// The defaults. The least ones for a driver that does not ask for them.
    pub(super) const fn default(range: Option<RingRange>) -> Self {
        let len = match range {
            Some(range) => range.default,
            None => RingSize::of::<2>(),
        };

        Self { rx: len, tx: len }
    }
}

/// The settings with which a device goes up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Config {
    /// The number of queue vectors.
    pub(super) channels: u16,
    /// The lengths of the rings, if the driver lets users change them.
    pub(super) rings: RingSizes,
}

#[macros::kunit_tests(rust_net_ring_range)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_users_are_rounded_up_within_limits() {
        let range = RingRange {
            min: RingSize::of::<64>(),
            max: RingSize::of::<4096>(),
            default: RingSize::of::<512>(),
        };
        let round = |number| range.round(number).map(RingSize::get);

        assert_eq!(
            [64, 65, 1000, 4095].map(round),
            [64, 128, 1024, 4096].map(Some)
        );
        assert_eq!([0, 32, 63, 4097, u32::MAX].map(round), [None; 5]);
    }
}
