// SPDX-License-Identifier: GPL-2.0
//! The one clock of the model, so that a test can drive time by hand.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Source of monotonic time.
pub trait Clock: Send + Sync {
    /// Nanoseconds since the clock's zero.
    fn now(&self) -> u64;

    /// The clock's zero, in nanoseconds since the beginning of 1970 (UTC). It does not change: the
    /// wall clock may be set while the model runs, and its time still does not jump.
    fn epoch(&self) -> u64;
}

/// The host's monotonic clock.
#[derive(Debug)]
pub struct RealClock {
    zero: Instant,
    epoch: u64,
}

impl RealClock {
    /// A clock that starts at zero now.
    pub fn new() -> Self {
        let epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, nanoseconds);
        Self {
            zero: Instant::now(),
            epoch,
        }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RealClock {
    fn now(&self) -> u64 {
        nanoseconds(self.zero.elapsed())
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A clock that stands still until a test moves it. Its zero is the beginning of 1970, or a time of
/// the test's choice, and never the host's, so that results repeat.
#[derive(Debug, Default)]
pub struct ManualClock {
    now: AtomicU64,
    epoch: u64,
}

impl ManualClock {
    /// A clock whose zero is so many nanoseconds after the beginning of 1970.
    pub fn since(epoch: u64) -> Self {
        Self {
            now: AtomicU64::new(0),
            epoch,
        }
    }

    /// Lets `nanoseconds` pass.
    pub fn advance(&self, nanoseconds: u64) {
        self.now.fetch_add(nanoseconds, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> u64 {
        self.now.load(Ordering::SeqCst)
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_clock_tells_the_time_of_day() {
        let clock = RealClock::new();
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, nanoseconds);
        let apart = wall.abs_diff(clock.epoch() + clock.now());
        assert!(apart < 1_000_000_000, "{apart} ns");
        assert_eq!(clock.epoch(), clock.epoch());
    }
}
