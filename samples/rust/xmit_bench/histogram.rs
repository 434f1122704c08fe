// SPDX-License-Identifier: GPL-2.0

//! Counters by powers of two.

use kernel::fmt;

/// Number of values in each interval from one power of two to the next.
#[derive(Clone, Copy)]
pub(crate) struct Histogram([u32; 32]);

impl Histogram {
    pub(crate) const fn new() -> Self {
        Self([0; 32])
    }

    /// Counts a value.
    #[inline(always)]
    pub(crate) fn add(&mut self, value: u64) {
        let power = value.max(1).ilog2() as usize;

        if let Some(counter) = self.0.get_mut(power) {
            *counter += 1;
        }
    }

    /// Adds the counts of another histogram.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (counter, more) in self.0.iter_mut().zip(other.0) {
            *counter += more;
        }
    }
}

impl fmt::Display for Histogram {
    /// Writes `power:count` for each count that is not zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (power, counter) in self
            .0
            .iter()
            .enumerate()
            .filter(|(_, counter)| **counter != 0)
        {
            write!(f, " {power}:{counter}")?;
        }
        Ok(())
    }
}
