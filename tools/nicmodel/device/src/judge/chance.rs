// SPDX-License-Identifier: GPL-2.0
//! Chance: all that a card may decide for itself, drawn from one seed so that a run repeats.
//!
//! Delays are counted in reads of the register that is polled: an emulated guest polls too slowly
//! to see one that is a matter of time.

/// Nanoseconds that a card needs at most for what takes one read longer.
const READ: u64 = 20_000;

/// A number of reads after which something is done.
///
/// The first read always sees it. After that it also ends with the time that a card would need: a
/// guest whose timers are coarse polls seldom, and would give up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Delay {
    left: u32,
    end: Option<u64>,
}

impl Delay {
    /// It never ends.
    pub(crate) const NEVER: Self = Self::reads(u32::MAX);

    /// It ends after so many reads.
    pub(crate) const fn reads(count: u32) -> Self {
        Self {
            left: count,
            end: None,
        }
    }

    /// Counts a read; true when the delay is over.
    pub(crate) fn is_over(&mut self, now: u64) -> bool {
        if self.left == 0 {
            return true;
        }
        if self.left == u32::MAX {
            return false;
        }
        let end = *self.end.get_or_insert(now + u64::from(self.left) * READ);
        self.left = if now >= end { 0 } else { self.left - 1 };
        now >= end
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
            Delay::reads(longest)
        } else {
            Delay::reads(self.word() % 3)
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
            [(); 4].map(|()| delay.is_over(0)),
            [false, false, true, true]
        );
        let mut never = Delay::NEVER;
        assert!((0..1000).all(|now| !never.is_over(now << 32)));
        let mut chance = Chance::new(1);
        let delays: Vec<_> = (0..64).map(|_| chance.delay(40)).collect();
        assert!(delays.contains(&Delay::reads(40)) && delays.contains(&Delay::reads(0)));
    }

    #[test]
    fn a_guest_that_polls_seldom_sees_a_delay_once() {
        let mut delay = Delay::reads(40);
        assert!(!delay.is_over(0));
        assert!(!delay.is_over(READ));
        assert!(delay.is_over(40 * READ));
        assert!(delay.is_over(0));
    }
}
