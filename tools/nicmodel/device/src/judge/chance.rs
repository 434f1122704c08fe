// SPDX-License-Identifier: GPL-2.0
//! Chance: all that a card may decide for itself, drawn from one seed so that a run repeats.
//!
//! Delays are counted in reads of the register that is polled. Time would be another one in each
//! kind of machine, and an emulated guest polls too slowly to ever see a delay that a fast one
//! notices.

/// A number of reads after which something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Delay(u32);

impl Delay {
    /// It never ends.
    pub(crate) const NEVER: Self = Self(u32::MAX);

    /// It ends after so many reads.
    #[cfg(test)]
    pub(crate) fn reads(count: u32) -> Self {
        Self(count)
    }

    /// Counts a read; true when the delay is over.
    pub(crate) fn is_over(&mut self) -> bool {
        match self.0 {
            0 => true,
            u32::MAX => false,
            left => {
                self.0 = left - 1;
                false
            }
        }
    }
}

/// A source of decisions (xorshift*).
#[derive(Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        // Neighbouring seeds begin far apart.
        Self((seed.wrapping_add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Any word.
    pub(crate) fn word(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }

    /// True once in `times`, on average.
    pub(crate) fn once_in(&mut self, times: u32) -> bool {
        self.word().is_multiple_of(times)
    }

    /// A delay: mostly of at most two reads, now and then of `longest`.
    pub(crate) fn delay(&mut self, longest: u32) -> Delay {
        if self.once_in(8) {
            Delay(longest)
        } else {
            Delay(self.word() % 3)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_another_differs() {
        let draw = |seed| -> Vec<u32> {
            let mut chance = Chance::new(seed);
            (0..8).map(|_| chance.word()).collect()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn delays_end_but_for_the_one_that_does_not() {
        let mut delay = Delay::reads(2);
        assert_eq!(
            [(); 4].map(|()| delay.is_over()),
            [false, false, true, true]
        );
        let mut never = Delay::NEVER;
        assert!((0..1000).all(|_| !never.is_over()));
        let mut chance = Chance::new(1);
        let delays: Vec<_> = (0..64).map(|_| chance.delay(40)).collect();
        assert!(delays.contains(&Delay(40)) && delays.contains(&Delay(0)));
    }
}
