// SPDX-License-Identifier: GPL-2.0

//! The cage of a port: the module in it, and the speed that the link over it has or tries.

use kernel::prelude::*;

use crate::{
    i2c::Transfer,
    sfp::{
        Module,
        Speed, //
    }, //
};

/// Runs of the watchdog for which a module with two speeds tries each of them. The higher one has
/// more, so that a link partner that does the same meets it there.
const TURN_10G: u8 = 2;
const TURN_1G: u8 = 1;

/// The content of a cage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Nothing, as far as is known.
    Empty,
    /// Something that has not answered so many times.
    Silent(u8),
    /// A module that the NIC cannot use.
    Unusable,
    /// A module that has yet to be set up.
    Identified(Module),
    /// A module that has been set up.
    Ready(Module),
}

/// Whether frames that the NIC sends come back to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loopback {
    /// They leave.
    Off,
    /// They come back to the stack, which sees a link.
    OfStack,
    /// They come back to a self-test: there is no link that the stack could use.
    OfTest,
}

/// The cage of a port, and the link over what is in it. Of a port without one, the link alone.
pub(crate) struct Cage {
    pub(super) content: Content,
    /// How the module is read.
    pub(super) transfer: Transfer,
    /// The module that the log is about.
    pub(super) told: Option<Module>,
    /// The speed that is tried, or that the link has.
    pub(super) speed: Speed,
    /// Runs of the watchdog without a link since then.
    pub(super) waited: u8,
    /// The last attempt to start the link has failed, and the log says so.
    pub(super) fails: bool,
    pub(super) loopback: Loopback,
}

impl Cage {
    pub(super) fn new() -> Self {
        Self {
            content: Content::Empty,
            transfer: Transfer::Together,
            told: None,
            speed: Speed::Ten,
            waited: 0,
            fails: false,
            loopback: Loopback::Off,
        }
    }

    /// Returns the module, if it can be used.
    pub(super) fn module(&self) -> Option<Module> {
        match self.content {
            Content::Ready(module) => Some(module),
            _ => None,
        }
    }

    /// Counts a run of the watchdog without a link. Returns whether to try the other speed, which
    /// is in `speed` then.
    pub(super) fn try_other_speed(&mut self) -> bool {
        let (turn, other) = match self.speed {
            Speed::Ten => (TURN_10G, Speed::One),
            Speed::One => (TURN_1G, Speed::Ten),
        };

        self.waited = self.waited.saturating_add(1);
        if self.waited < turn {
            return false;
        }
        self.speed = other;
        self.waited = 0;
        true
    }
}

#[kunit_tests(ixgbe_rust_cage)]
mod tests {
    use super::*;

    #[test]
    fn two_speeds_take_turns() {
        let mut cage = Cage::new();
        let mut tried = [Speed::Ten; 6];

        for speed in &mut tried {
            cage.try_other_speed();
            *speed = cage.speed;
        }
        let [ten, one] = [Speed::Ten, Speed::One];
        assert_eq!(tried, [ten, one, ten, ten, one, ten]);
    }
}
