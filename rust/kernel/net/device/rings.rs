// SPDX-License-Identifier: GPL-2.0

//! The settings with which a device goes up: the number of its queues, and the lengths of rings.

use super::{
    attributes::Attributes,
    ops_lock::Configuring,
    registration::Inner,
    Driver, //
};

use crate::{
    net::queue::RingLen,
    prelude::*, //
};

use core::mem;

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

/// The lengths that the rings of a device can have, see [`Driver::RINGS`].
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
    /// The number of queue vectors with both kinds of queues.
    pub(super) channels: u16,
    /// The lengths of the rings, if the driver has [`Driver::RINGS`].
    pub(super) rings: RingLens,
}

impl<T: Driver> Inner<T> {
    /// Changes the number of queue vectors; if the device is up, it goes on with them.
    pub(super) fn set_channels(&self, count: u16, locks: &mut Configuring) -> Result {
        let counts = self.counts();
        if count > counts.pairs || !counts.with_pairs(count).is_complete() {
            return Err(EINVAL);
        }

        let config = Config {
            channels: count,
            ..*self.config.get(locks.ops())
        };
        self.reconfigure(config, locks)
    }

    /// Changes the lengths of rings; if the device is up, it goes on with them.
    pub(super) fn set_rings(&self, lens: RingLens, locks: &mut Configuring) -> Result {
        let config = Config {
            rings: lens,
            ..*self.config.get(locks.ops())
        };
        self.reconfigure(config, locks)
    }

    /// Changes the settings. If the device is up, and cannot be with them, it has the old ones.
    fn reconfigure(&self, new: Config, locks: &mut Configuring) -> Result {
        let old = mem::replace(self.config.get_mut(locks.ops_mut()), new);
        if new == old || !self.dev().is_running() {
            return Ok(());
        }

        let same = Attributes::of(self.dev());
        self.restart_or_undo(same, locks, |locks| {
            *self.config.get_mut(locks.ops_mut()) = old;
        })
    }

    /// Has a device that the core believes to be up go on with settings that were changed, and
    /// with these attributes, which it gets while it is down: rings that were made with others are
    /// not used with them. If it cannot, `undo` takes the settings back, and the device is up with
    /// the old ones.
    pub(super) fn restart_or_undo(
        &self,
        attributes: Attributes,
        locks: &mut Configuring,
        undo: impl FnOnce(&mut Configuring),
    ) -> Result {
        let old = Attributes::of(self.dev());
        let spare = if T::OPEN_WHILE_UP && self.is_up(locks) {
            match self.make_spare(attributes, locks) {
                Ok(spare) => Some(spare),
                // The device does not notice.
                Err(error) => {
                    undo(locks);
                    return Err(error);
                }
            }
        } else {
            None
        };

        self.go_down(locks);
        attributes.apply(self.dev(), locks);
        self.restart_with(spare, locks).or_else(|error| {
            old.apply(self.dev(), locks);
            undo(locks);
            self.restart_or_close(locks).and(Err(error))
        })
    }
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
