// SPDX-License-Identifier: GPL-2.0

//! The time of a NIC's clock, whether the NIC counts or not.

use kernel::{
    prelude::*,
    ptp_clock::{
        ScaledPpm,
        SystemTimestamp, //
    },
    time::{
        timecounter::TimeCounter,
        BootTime,
        ClockSource,
        Instant,
        RealTime, //
    }, //
};

use crate::{
    link::Link,
    mmio::Bar0,
    regs::ptp::*, //
};

use super::scale::Scale;

/// Stamps are not older than this: a latch that is full for longer is emptied.
const MAX_AGE_NS: i64 = 10_000_000_000;

/// The source of the time.
enum Source {
    /// The NIC counts.
    Counted(TimeCounter),
    /// The port is down, or its NIC being reset: the time was this at that moment.
    Held(u64, Instant<BootTime>),
}

/// The time of a clock, and its frequency.
pub(super) struct Time {
    source: Source,
    /// When the counter was read last, for a time that goes on from there.
    advanced: Instant<BootTime>,
    scale: Scale,
    offset: ScaledPpm,
}

/// Reads the counter.
fn read_counter(bar: &Bar0<'_>, system: &mut SystemTimestamp<'_>) -> Result<u64> {
    let low = system.around(|| bar.read_atomic(SYSTIML)).into_raw();

    counted(low, bar.read_atomic(SYSTIMH).into_raw())
}

/// The value of two registers. The upper one would be all ones after centuries only.
pub(super) fn counted(low: u32, high: u32) -> Result<u64> {
    if high == u32::MAX {
        return Err(ENODEV);
    }
    Ok(u64::from(high) << 32 | u64::from(low))
}

/// The time when the NIC does not count.
fn held(nanoseconds: u64, since: Instant<BootTime>) -> u64 {
    // CAST: Time does not go back.
    nanoseconds.wrapping_add(since.elapsed().as_nanos() as u64)
}

impl Time {
    /// That of the system, of a NIC that does not count yet.
    pub(super) fn of_system() -> Self {
        // CAST: After 1970.
        let now = RealTime::ktime_get() as u64;

        Self {
            source: Source::Held(now, Instant::now()),
            advanced: Instant::now(),
            scale: Scale::FAST,
            offset: ScaledPpm::ZERO,
        }
    }

    /// Reads the time.
    pub(super) fn get(&mut self, bar: &Bar0<'_>, system: &mut SystemTimestamp<'_>) -> Result<u64> {
        match &mut self.source {
            Source::Counted(counter) => Ok(counter.time_of(read_counter(bar, system)?)),
            Source::Held(time, since) => Ok(system.around(|| held(*time, *since))),
        }
    }

    /// Reads the time, and lets the counter go on from it.
    pub(super) fn advance(&mut self, bar: &Bar0<'_>) -> Result<u64> {
        match &mut self.source {
            Source::Counted(counter) => {
                let now = read_counter(bar, &mut SystemTimestamp::none())?;
                self.advanced = Instant::now();
                Ok(counter.advance(now))
            }
            Source::Held(nanoseconds, since) => Ok(held(*nanoseconds, *since)),
        }
    }

    /// Sets the time.
    pub(super) fn set(&mut self, bar: &Bar0<'_>, nanoseconds: u64) -> Result {
        let now = Instant::now();

        match &mut self.source {
            Source::Counted(counter) => {
                let read = read_counter(bar, &mut SystemTimestamp::none())?;
                counter.set(read, nanoseconds);
                self.advanced = now;
            }
            Source::Held(..) => self.source = Source::Held(nanoseconds, now),
        }
        Ok(())
    }

    /// Shifts the time.
    pub(super) fn adjust(&mut self, nanoseconds: i64) {
        match &mut self.source {
            Source::Counted(counter) => counter.adjust(nanoseconds),
            // CAST: Sums wrap around.
            Source::Held(time, _) => *time = time.wrapping_add(nanoseconds as u64),
        }
    }

    /// Has the clock go on without the NIC.
    pub(super) fn hold(&mut self, bar: &Bar0<'_>) {
        // A NIC that is gone has not been read.
        let _ = self.advance(bar);
        self.lose();
    }

    /// The same, of a NIC that has been reset already.
    pub(super) fn lose(&mut self) {
        if let Source::Counted(counter) = &self.source {
            self.source = Source::Held(counter.last(), self.advanced);
        }
    }

    /// Has the NIC count from zero, which was reset, and has no link.
    pub(super) fn count(&mut self, bar: &Bar0<'_>) {
        self.scale = Scale::FAST;
        if let Source::Held(nanoseconds, since) = self.source {
            self.set_rate(bar);
            bar.write_reg(SYSTIML::zeroed());
            bar.write_reg(SYSTIMH::zeroed());
            let now = held(nanoseconds, since);
            // All shifts are valid.
            if let Ok(counter) = TimeCounter::new(self.scale.cycles(), 0, now) {
                self.source = Source::Counted(counter);
                self.advanced = Instant::now();
            }
        }
    }

    /// Follows a change of the link.
    pub(super) fn set_link(&mut self, bar: &Bar0<'_>, link: Link) {
        let scale = Scale::of(link);
        if self.scale == scale {
            return;
        }
        if let Source::Counted(counter) = &mut self.source {
            // A NIC that is gone does not count.
            let Ok(now) = read_counter(bar, &mut SystemTimestamp::none()) else {
                return;
            };
            if counter.change(scale.cycles(), now).is_err() {
                return;
            }
            self.advanced = Instant::now();
        }
        self.scale = scale;
        self.set_rate(bar);
    }

    /// Sets the offset of the frequency.
    pub(super) fn adjust_frequency(&mut self, bar: &Bar0<'_>, offset: ScaledPpm) {
        self.offset = offset;
        self.set_rate(bar);
    }

    /// Sets the frequency.
    fn set_rate(&self, bar: &Bar0<'_>) {
        bar.write_reg(
            TIMINCA::zeroed()
                .with_const_incperiod::<1>()
                .try_with_incvalue(self.scale.increment(self.offset))
                .unwrap_or(TIMINCA::zeroed()),
        );
    }

    /// Returns the time of a stamp that was taken in the last seconds. [`EINVAL`] for any other.
    pub(super) fn of_stamp(&mut self, bar: &Bar0<'_>, stamp: u64) -> Result<u64> {
        // The stamps are before that.
        let now = self.advance(bar)?;
        let Source::Counted(counter) = &mut self.source else {
            return Err(EINVAL);
        };
        let time = counter.time_of(stamp);
        // CAST: A difference in either direction.
        let age = now.wrapping_sub(time) as i64;

        if (0..=MAX_AGE_NS).contains(&age) {
            Ok(time)
        } else {
            Err(EINVAL)
        }
    }
}
