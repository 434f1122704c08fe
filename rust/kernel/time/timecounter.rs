// SPDX-License-Identifier: GPL-2.0

//! Time by the cycles of a counter.
//!
//! C header: [`include/linux/timecounter.h`](srctree/include/linux/timecounter.h)

use crate::{
    bindings,
    prelude::*, //
};

use core::ptr;

/// The cycles of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycles {
    /// The bits of the counter, which wraps around.
    pub mask: u64,
    /// Nanoseconds of a cycle, times two to the power of `shift`.
    pub mult: u32,
    /// See `mult`.
    pub shift: u32,
}

/// The C description of a counter, with the value that reading it returns.
#[repr(C)]
struct Reading {
    cc: bindings::cyclecounter,
    value: u64,
}

/// # Safety
///
/// `cc` must be that of a [`Reading`].
unsafe extern "C" fn read(cc: *mut bindings::cyclecounter) -> u64 {
    // SAFETY: By the safety requirements; it is at the beginning.
    unsafe { (*cc.cast::<Reading>()).value }
}

/// A clock whose time advances by the cycles of a counter.
///
/// Whoever has it reads the counter, and passes what it was. That has to be done again before the
/// counter has passed half of its range: no one can tell what is older from what is newer.
///
/// # Examples
///
/// ```
/// use kernel::time::timecounter::{
///     Cycles,
///     TimeCounter, //
/// };
///
/// // Two nanoseconds a cycle.
/// let cycles = Cycles {
///     mask: u64::MAX,
///     mult: 8,
///     shift: 2,
/// };
/// let mut time = TimeCounter::new(cycles, 100, 1_000)?;
///
/// assert_eq!(time.advance(103), 1_006);
/// // A time stamp of before that.
/// assert_eq!(time.time_of(101), 1_002);
/// time.adjust(-6);
/// assert_eq!(time.time_of(103), 1_000);
/// # Ok::<(), Error>(())
/// ```
pub struct TimeCounter {
    cycles: Cycles,
    tc: bindings::timecounter,
}

// SAFETY: The pointer in it is null, but for calls of C functions.
unsafe impl Send for TimeCounter {}

// SAFETY: As above.
unsafe impl Sync for TimeCounter {}

impl TimeCounter {
    /// Begins at `nanoseconds`, when the counter is at `now`.
    ///
    /// Fails if `cycles` have no fractions that can be computed ([`EINVAL`]).
    pub fn new(cycles: Cycles, now: u64, nanoseconds: u64) -> Result<Self> {
        if cycles.shift >= u64::BITS {
            return Err(EINVAL);
        }
        let mut this = Self {
            cycles,
            tc: pin_init::zeroed(),
        };
        this.set(now, nanoseconds);
        Ok(this)
    }

    /// Calls `f` with the counter at `value`.
    fn with_reading<R>(
        &mut self,
        value: u64,
        f: impl FnOnce(*mut bindings::timecounter, *mut bindings::cyclecounter) -> R,
    ) -> R {
        let mut reading = Reading {
            cc: bindings::cyclecounter {
                read: Some(read),
                mask: self.cycles.mask,
                mult: self.cycles.mult,
                shift: self.cycles.shift,
            },
            value,
        };
        let cc = (&raw mut reading).cast::<bindings::cyclecounter>();

        self.tc.cc = cc;
        let result = f(&raw mut self.tc, cc);
        self.tc.cc = ptr::null_mut();
        result
    }

    /// Sets the time, when the counter is at `now`.
    pub fn set(&mut self, now: u64, nanoseconds: u64) {
        self.with_reading(now, |tc, cc| {
            // SAFETY: Both are valid, and `cc` is read only during the call.
            unsafe { bindings::timecounter_init(tc, cc, nanoseconds) }
        });
    }

    /// Returns the time, when the counter is at `now`, from which it goes on.
    pub fn advance(&mut self, now: u64) -> u64 {
        // SAFETY: It is valid, and so is what it refers to.
        self.with_reading(now, |tc, _| unsafe { bindings::timecounter_read(tc) })
    }

    /// The time when it was advanced or set last, with all adjustments.
    pub fn last(&self) -> u64 {
        self.tc.nsec
    }

    /// Returns the time at which the counter was at `value`, which is half of its range away at
    /// most.
    pub fn time_of(&mut self, value: u64) -> u64 {
        // SAFETY: As above.
        self.with_reading(value, |tc, _| unsafe {
            bindings::timecounter_cyc2time(tc, value)
        })
    }

    /// Shifts the time.
    pub fn adjust(&mut self, nanoseconds: i64) {
        // SAFETY: It is valid.
        unsafe { bindings::timecounter_adjtime(&raw mut self.tc, nanoseconds) };
    }

    /// Goes on with other cycles, when the counter is at `now`.
    ///
    /// Fails as [`Self::new`]. Nothing has changed then.
    pub fn change(&mut self, cycles: Cycles, now: u64) -> Result {
        let time = self.advance(now);

        *self = Self::new(cycles, now, time)?;
        Ok(())
    }
}

#[macros::kunit_tests(rust_timecounter)]
mod tests {
    use super::*;

    const NARROW: Cycles = Cycles {
        mask: 0xff,
        mult: 1,
        shift: 1,
    };

    #[test]
    fn wraps_around() -> Result {
        let mut time = TimeCounter::new(NARROW, 0xf0, 10)?;

        assert_eq!(time.advance(0x10), 26);
        assert_eq!(time.last(), 26);
        assert_eq!(time.time_of(0xf0), 10);
        Ok(())
    }

    #[test]
    fn keeps_fractions() -> Result {
        let mut time = TimeCounter::new(NARROW, 0, 0)?;

        assert_eq!(time.advance(1), 0);
        assert_eq!(time.advance(2), 1);
        assert_eq!(time.advance(3), 1);
        assert_eq!(time.advance(4), 2);
        Ok(())
    }

    #[test]
    fn changes_its_cycles() -> Result {
        let mut time = TimeCounter::new(NARROW, 0, 0)?;
        let cycles = Cycles {
            mult: 10,
            shift: 0,
            ..NARROW
        };

        time.change(cycles, 20)?;
        assert_eq!(time.last(), 10);
        assert_eq!(time.advance(21), 20);

        let bad = Cycles {
            shift: 64,
            ..cycles
        };
        assert_eq!(time.change(bad, 22), Err(EINVAL));
        assert_eq!(time.advance(23), 40);
        assert!(TimeCounter::new(bad, 0, 0).is_err());
        Ok(())
    }
}
