// SPDX-License-Identifier: GPL-2.0

//! The settings with which a device goes up: the number of its queues, and the lengths of rings.

use crate::net::queue::RingLen;

/// The lengths that rings of one kind can have.
#[derive(Clone, Copy, Debug)]
pub struct RingRange {
    /// The least one.
    pub least: RingLen,
    /// The greatest one.
    pub most: RingLen,
    /// The one until users set another one.
    pub at_first: RingLen,
}

impl RingRange {
    /// The length for a user's number: rounded up to a power of two. [`None`] if it is out of
    /// range.
    pub(super) fn round(self, descriptors: u32) -> Option<RingLen> {
        // CAST: `usize` has at least 32 bits wherever the kernel runs.
        let descriptors = descriptors as usize;

        if (self.least.get()..=self.most.get()).contains(&descriptors) {
            RingLen::at_least(descriptors)
        } else {
            None
        }
    }
}

/// The lengths that the rings of a device can have, see
/// [`RingparamOps`](super::ethtool::ringparam::RingparamOps).
#[derive(Clone, Copy, Debug)]
pub struct Rings {
    /// Of receive rings.
    pub rx: RingRange,
    /// Of transmit rings.
    pub tx: RingRange,
}

impl RingLens {
    /// Those of a driver that does not ask for them.
    const UNUSED: Self = {
        let least = RingLen::of::<2>();

        Self {
            rx: least,
            tx: least,
        }
    };

    /// The lengths until users set others.
    pub(super) const fn at_first(rings: Option<Rings>) -> Self {
        match rings {
            Some(Rings { rx, tx }) => Self {
                rx: rx.at_first,
                tx: tx.at_first,
            },
            None => Self::UNUSED,
        }
    }
}

impl Rings {
    /// Rings of both kinds that can have the same lengths.
    pub const fn alike(range: RingRange) -> Self {
        Self {
            rx: range,
            tx: range,
        }
    }
}

/// The lengths of a device's rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingLens {
    /// Of receive rings.
    pub rx: RingLen,
    /// Of transmit rings.
    pub tx: RingLen,
}

/// The settings with which a device goes up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Config {
    /// The number of queue vectors.
    pub(super) channels: u16,
    /// The lengths of the rings, if the driver lets users change them.
    pub(super) rings: RingLens,
}

#[macros::kunit_tests(rust_net_ring_range)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_users_are_rounded_up_within_limits() {
        let range = RingRange {
            least: RingLen::of::<64>(),
            most: RingLen::of::<4096>(),
            at_first: RingLen::of::<512>(),
        };
        let round = |number| range.round(number).map(RingLen::get);

        assert_eq!(
            [64, 65, 1000, 4095].map(round),
            [64, 128, 1024, 4096].map(Some)
        );
        assert_eq!([0, 32, 63, 4097, u32::MAX].map(round), [None; 5]);
    }
}
