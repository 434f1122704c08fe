// SPDX-License-Identifier: GPL-2.0
//! The one clock of the model, so that a test can drive time by hand.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Source of monotonic time.
pub trait Clock: Send + Sync {
    /// Nanoseconds since some fixed point.
    fn now(&self) -> u64;
}

/// The host's monotonic clock.
#[derive(Debug)]
pub struct RealClock(Instant);

impl RealClock {
    /// A clock that starts at zero now.
    pub fn new() -> Self {
        Self(Instant::now())
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RealClock {
    fn now(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// A clock that stands still until it is told to move.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// Lets `nanoseconds` pass.
    pub fn advance(&self, nanoseconds: u64) {
        self.0.fetch_add(nanoseconds, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}
