// SPDX-License-Identifier: GPL-2.0

//! The cycles of a NIC's clock, and the increments that make nanoseconds of them.

use kernel::{
    prelude::*,
    ptp_clock::ScaledPpm,
    time::timecounter::Cycles, //
};

use crate::link::Link;

/// The length of the NIC's cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    /// A cycle adds this to the counter.
    increment: u32,
    /// Bits of a nanosecond's fraction in the counter.
    shift: u32,
}

impl Scale {
    /// At 10 Gb/s and without a link: 64 tenths of a nanosecond. In the 24 bits of an increment,
    /// there are 21 for fractions then.
    pub(super) const FAST: Self = Self {
        increment: 0xcc_cccc,
        shift: 21,
    };
    /// At 1 Gb/s: ten times as long.
    const GIGABIT: Self = Self {
        increment: 0x80_0000,
        shift: 17,
    };
    /// At 100 Mb/s: a hundred times as long.
    const SLOW: Self = Self {
        increment: 0xa0_0000,
        shift: 14,
    };

    pub(super) fn of(link: Link) -> Self {
        match link {
            Link::Up(1_000) => Self::GIGABIT,
            Link::Up(100) => Self::SLOW,
            Link::Up(_) | Link::Down => Self::FAST,
        }
    }

    pub(super) fn cycles(self) -> Cycles {
        Cycles {
            mask: u64::MAX,
            mult: 1,
            shift: self.shift,
        }
    }

    /// The increment for a frequency, as far as it goes.
    pub(super) fn increment(self, offset: ScaledPpm) -> u32 {
        const MAX: u64 = (1 << 24) - 1;

        // CAST: By the limit.
        offset.adjust(self.increment).min(MAX) as u32
    }
}

#[kunit_tests(ixgbe_rust_ptp)]
mod tests {
    use super::*;

    #[test]
    fn increments_are_those_of_the_cycle() {
        for (scale, tenths) in [
            (Scale::FAST, 64),
            (Scale::GIGABIT, 640),
            (Scale::SLOW, 6_400),
        ] {
            // Less than a millionth is cut off.
            let exact = (tenths << scale.shift) / 10;
            assert!(exact - u64::from(scale.increment) <= 1);
        }
    }

    #[test]
    fn increments_fit_with_any_offset() -> Result {
        let most = ScaledPpm::from_raw(250_000 << 16)?;

        assert_eq!(Scale::FAST.increment(most), 0xff_ffff);
        assert_eq!(Scale::GIGABIT.increment(most), 0xa0_0000);
        assert_eq!(Scale::SLOW.increment(most), 0xc8_0000);
        let more = ScaledPpm::from_raw(900_000 << 16)?;
        assert_eq!(Scale::SLOW.increment(more), 0xff_ffff);
        let least = ScaledPpm::from_raw(-(250_000 << 16))?;
        assert_eq!(Scale::GIGABIT.increment(least), 0x60_0000);
        Ok(())
    }

    #[test]
    fn the_scale_is_that_of_the_link() {
        assert_eq!(Scale::of(Link::Down), Scale::FAST);
        assert_eq!(Scale::of(Link::Up(10_000)), Scale::FAST);
        assert_eq!(Scale::of(Link::Up(1_000)), Scale::GIGABIT);
        assert_eq!(Scale::of(Link::Up(100)), Scale::SLOW);
    }
}
