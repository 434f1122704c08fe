// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `kernel::time`: it passes while the driver sleeps.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{Add, Sub};

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(0) };
}

/// A span of nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Delta(i64);

impl Delta {
    pub(crate) const ZERO: Self = Self(0);

    pub(crate) const fn from_micros(micros: i64) -> Self {
        Self(micros * 1000)
    }

    pub(crate) const fn from_millis(millis: i64) -> Self {
        Self(millis * 1_000_000)
    }

    pub(crate) const fn from_secs(secs: i64) -> Self {
        Self(secs * 1_000_000_000)
    }
}

/// The clock.
#[derive(Clone, Copy)]
pub(crate) struct Monotonic;

/// A point in time.
#[derive(Clone, Copy)]
pub(crate) struct Instant<C>(i64, PhantomData<C>);

impl<C> Instant<C> {
    pub(crate) fn now() -> Self {
        Self(NOW.get(), PhantomData)
    }

    pub(crate) fn elapsed(self) -> Delta {
        Delta(NOW.get() - self.0)
    }
}

impl<C> Add<Delta> for Instant<C> {
    type Output = Self;

    fn add(self, delta: Delta) -> Self {
        Self(self.0 + delta.0, PhantomData)
    }
}

impl<C> Sub for Instant<C> {
    type Output = Delta;

    fn sub(self, other: Self) -> Delta {
        Delta(self.0 - other.0)
    }
}

pub(crate) mod delay {
    //! Stand-in for `kernel::time::delay`.

    use super::{Delta, NOW};

    pub(crate) fn fsleep(delta: Delta) {
        NOW.set(NOW.get() + delta.0);
    }

    pub(crate) use fsleep as sleep_at_least;
}
