// SPDX-License-Identifier: GPL-2.0

//! The cage of a port: the module in it, and the speed that the link over it has or tries.

use kernel::prelude::*;

use crate::{
    i2c::Transfer,
    regs::medium::{
        link_mode,
        AUTOC, //
    },
    sfp::{
        Module,
        Speed, //
    }, //
};

/// Runs of the watchdog for which a module with two speeds tries each of them. The higher one has
/// more, so that a link partner that does the same meets it there.
const TURN_10G: u8 = 2;
const TURN_1G: u8 = 1;

/// Runs of the watchdog for which a backplane negotiates with KR, and without it. The lane may not
/// let the signals of KR pass, although both ends have it. They train within half a second.
const TURN_KR: u8 = 3;
const TURN_OTHERS: u8 = 2;

/// Whether a backplane negotiates with KR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kr {
    /// As the EEPROM has it: there is nothing else, or no KR, or the firmware decides.
    AsIs,
    On,
    Off,
}

impl Kr {
    /// For a port by its EEPROM.
    pub(super) fn of(autoc: AUTOC, firmware_decides: bool) -> Self {
        let negotiates = link_mode::BACKPLANES.contains(&autoc.lms().get());
        let has_others = autoc.kx4_supp() || autoc.kx_supp();

        if negotiates && autoc.kr_supp() && has_others && !firmware_decides {
            Self::On
        } else {
            Self::AsIs
        }
    }
}

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
    /// Of a port without one.
    pub(super) kr: Kr,
    /// The speed that is tried, or that the link has.
    pub(super) speed: Speed,
    /// Runs of the watchdog without a link since then.
    pub(super) waited: u8,
    /// The last attempt to start the link has failed, and the log says so.
    pub(super) fails: bool,
    pub(super) loopback: Loopback,
}

impl Cage {
    pub(super) fn new(kr: Kr) -> Self {
        Self {
            kr,
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

    /// Counts a run of the watchdog of a backplane, with a link or not. Returns whether to try
    /// other lanes, which are in `kr` then.
    pub(super) fn try_other_lanes(&mut self, has_link: bool) -> bool {
        let (turn, other) = match self.kr {
            Kr::AsIs => return false,
            Kr::On => (TURN_KR, Kr::Off),
            Kr::Off => (TURN_OTHERS, Kr::On),
        };

        self.waited = if has_link {
            0
        } else {
            self.waited.saturating_add(1)
        };
        if self.waited < turn {
            return false;
        }
        self.kr = other;
        self.waited = 0;
        true
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
    fn lanes_of_a_backplane_take_turns() {
        let mut cage = Cage::new(Kr::On);
        let mut tried = [Kr::On; 6];

        for lanes in &mut tried {
            cage.try_other_lanes(false);
            *lanes = cage.kr;
        }
        assert_eq!(tried, [Kr::On, Kr::On, Kr::Off, Kr::Off, Kr::On, Kr::On]);
        // A link that is there for a moment is one.
        assert!(!cage.try_other_lanes(true));
        assert!(!cage.try_other_lanes(false));
    }

    #[test]
    fn a_backplane_without_a_choice_stays_as_it_is() {
        let mut cage = Cage::new(Kr::AsIs);
        assert!((0..10).all(|_| !cage.try_other_lanes(false)));

        let of = |bits: u32, firmware| Kr::of(AUTOC::from(4 << 13 | bits), firmware);
        assert_eq!(of(1 << 16 | 1 << 31, false), Kr::On);
        assert_eq!(of(1 << 16 | 1 << 30, false), Kr::On);
        assert_eq!(of(1 << 16 | 1 << 31, true), Kr::AsIs);
        assert_eq!(of(1 << 16, false), Kr::AsIs);
        assert_eq!(of(1 << 31, false), Kr::AsIs);
        // KX4 without negotiation.
        let fixed = AUTOC::from(1 << 13 | 1 << 16 | 1 << 31);
        assert_eq!(Kr::of(fixed, false), Kr::AsIs);
    }

    #[test]
    fn two_speeds_take_turns() {
        let mut cage = Cage::new(Kr::AsIs);
        let mut tried = [Speed::Ten; 6];

        for speed in &mut tried {
            cage.try_other_speed();
            *speed = cage.speed;
        }
        let [ten, one] = [Speed::Ten, Speed::One];
        assert_eq!(tried, [ten, one, ten, ten, one, ten]);
    }
}
