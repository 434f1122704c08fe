// SPDX-License-Identifier: GPL-2.0

//! Waiting for the answers to packets that a poll function has transmitted.
//!
//! To wait is to poll again. It is worth its time if it saves an interrupt, which is not known
//! before. So a CPU waits for as long as an interrupt takes, not longer, and as long as it has
//! been worth it: where answers come later than that, or not at all, it does so now and then, to
//! find out whether that is still so. A CPU with other work does not wait, or no longer than until
//! it has some: it would gain an interrupt at most, and a process would lose that time.

use crate::time::{
    ClockSource,
    Monotonic, //
};

use core::cell::Cell;

#[cfg(CONFIG_KUNIT)]
use super::tests;

/// The longest time without a packet, in nanoseconds.
pub(super) const PATIENCE: i64 = 2000;

/// Whether it is worth waiting, by the past of a CPU.
///
/// A wait in vain costs little, but where nearly all are, so does the trial that shows it, now and
/// then, with another wait or two after a trial that succeeds by chance. So trials become rarer
/// until two waits in a row are worth it.
pub(super) struct Prospect {
    /// Not negative: it is. Negative: it was not; so many poll functions do not wait before one
    /// tries again.
    credit: Cell<i8>,
    /// The poll functions that do not wait after the next trial that is in vain.
    pause: Cell<i8>,
}

impl Prospect {
    /// The greatest credit.
    const MOST: i8 = 8;
    /// The credit for packets that came. A wait in vain takes one.
    const GAIN: i8 = 2;
    /// The poll functions that do not wait between two trials at first.
    const PAUSE: i8 = 15;

    pub(super) const fn new() -> Self {
        Self {
            credit: Cell::new(0),
            pause: Cell::new(Self::PAUSE),
        }
    }

    /// Whether a poll function should wait.
    fn is_good(&self) -> bool {
        #[cfg(CONFIG_KUNIT)]
        if tests::is_hopeful() {
            return true;
        }
        let credit = self.credit.get();

        if credit < 0 {
            self.credit.set(credit + 1);
        }
        credit >= 0
    }

    /// Accounts the result of a poll function that has waited.
    fn add(&self, found: bool) {
        let credit = self.credit.get();

        self.credit.set(match (found, credit) {
            (true, credit) => {
                if credit > 0 {
                    self.pause.set(Self::PAUSE);
                }
                credit.saturating_add(Self::GAIN).min(Self::MOST)
            }
            (false, credit) if credit > 0 => credit - 1,
            (false, _) => {
                let pause = self.pause.get();

                self.pause.set(pause.saturating_mul(2).saturating_add(1));
                -pause
            }
        });
    }
}

/// The wait of one run of a poll function.
pub(super) struct Wait<'a> {
    prospect: &'a Prospect,
    /// Whether packets have been transmitted.
    is_on: bool,
    /// Whether the CPU waits, once that is decided.
    waits: Option<bool>,
    /// The time of the first poll without packets since the last ones came.
    since: Option<i64>,
    /// Whether packets came meanwhile.
    found: bool,
}

impl<'a> Wait<'a> {
    /// `has_work`: the CPU has other work. `goes_on`: a run that has transmitted was interrupted.
    #[inline]
    pub(super) fn new(prospect: &'a Prospect, has_work: bool, goes_on: bool) -> Self {
        Self {
            prospect,
            is_on: goes_on,
            waits: has_work.then_some(false),
            since: None,
            found: false,
        }
    }

    /// Answers may come from now on, if a poll has transmitted.
    #[inline]
    pub(super) fn begin(&mut self, has_transmitted: bool) {
        self.is_on |= has_transmitted;
    }

    /// Whether answers may come.
    #[inline]
    pub(super) fn has_begun(&self) -> bool {
        self.is_on
    }

    /// Accounts a poll that has received packets or not, and transmitted or not. Returns whether to
    /// poll again. `needs_resched`: there is other work for the CPU by now.
    #[inline]
    pub(super) fn goes_on(
        &mut self,
        has_received: bool,
        has_transmitted: bool,
        needs_resched: impl FnOnce() -> bool,
    ) -> bool {
        self.begin(has_transmitted);
        if !self.is_on {
            return false;
        }
        if has_received || has_transmitted {
            self.found |= self.since.take().is_some();
            return true;
        }
        if needs_resched() {
            if !self.found {
                // This tells nothing about the wait.
                self.waits = None;
            }
            return false;
        }
        self.is_in_time()
    }

    /// Whether it is worth waiting for longer.
    fn is_in_time(&mut self) -> bool {
        let prospect = self.prospect;

        if !*self.waits.get_or_insert_with(|| prospect.is_good()) {
            return false;
        }
        let now = now();
        now.wrapping_sub(*self.since.get_or_insert(now)) < PATIENCE
    }
}

impl Drop for Wait<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.waits == Some(true) {
            self.prospect.add(self.found);
        }
    }
}

/// The time, in nanoseconds.
fn now() -> i64 {
    #[cfg(CONFIG_KUNIT)]
    if let Some(now) = tests::now() {
        return now;
    }
    Monotonic::ktime_get()
}

#[macros::kunit_tests(rust_net_patience)]
mod cases {
    use super::*;

    /// The number of poll functions that wait, of so many whose wait is worth it or not.
    fn waits(prospect: &Prospect, polls: usize, found: impl Fn(usize) -> bool) -> usize {
        (0..polls)
            .filter(|poll| {
                let waits = prospect.is_good();

                if waits {
                    prospect.add(found(*poll));
                }
                waits
            })
            .count()
    }

    #[test]
    fn it_waits_where_answers_come() {
        let prospect = Prospect::new();

        assert_eq!(waits(&prospect, 100, |_| true), 100);
        // Also where every second one is in time.
        assert_eq!(waits(&prospect, 100, |poll| poll % 2 == 0), 100);
    }

    #[test]
    fn it_stops_where_none_comes() {
        let prospect = Prospect::new();

        waits(&prospect, 100, |_| true);
        // The credit, and then one of 16, of 32, of 64, and of 128 from then on.
        assert_eq!(waits(&prospect, 8 + 16 + 32 + 64, |_| false), 8 + 3);
        assert_eq!(waits(&prospect, 10 * 128, |_| false), 10);
        // Few answers are not worth it, by chance or not.
        assert!(waits(&prospect, 1280, |poll| poll % 8 == 0) < 80);
        // Two in a row are, and what it had learned is forgotten.
        waits(&prospect, 128 + 8, |_| true);
        assert_eq!(waits(&prospect, 8 + 16, |_| false), 8 + 1);
    }

    #[test]
    fn a_cpu_with_other_work_does_not_wait() {
        let prospect = Prospect::new();

        for has_work in [false, true] {
            let mut wait = Wait::new(&prospect, has_work, false);

            // Packets that have come already are no wait.
            assert!(wait.goes_on(true, true, || false) && wait.goes_on(true, false, || false));
            assert_eq!(wait.goes_on(false, false, || false), !has_work);
        }
    }

    #[test]
    fn a_cpu_that_gets_other_work_waits_no_longer() {
        let prospect = Prospect::new();
        let mut wait = Wait::new(&prospect, false, false);

        assert!(wait.goes_on(false, true, || false));
        assert!(wait.goes_on(false, false, || false));
        // Packets that have come already are no wait.
        assert!(wait.goes_on(true, false, || true));
        assert!(!wait.goes_on(false, false, || true));
        drop(wait);
        assert_eq!(prospect.credit.get(), Prospect::GAIN);

        // A wait that it has ended is not in vain.
        let mut wait = Wait::new(&prospect, false, true);

        assert!(wait.goes_on(false, false, || false));
        assert!(!wait.goes_on(false, false, || true));
        drop(wait);
        assert_eq!(prospect.credit.get(), Prospect::GAIN);
    }

    #[test]
    fn a_trial_that_succeeds_makes_it_wait_again() {
        let prospect = Prospect::new();

        waits(&prospect, 1, |_| false);
        assert_eq!(waits(&prospect, 115, |_| true), 100);
    }
}
