// SPDX-License-Identifier: GPL-2.0
//! When frames of a generator go out, how fast they did, and how long they took.

use crate::answer::Latency;

const SECOND: f64 = 1e9;
/// Most frames that go out at once after a pause; the rest of the delay is not made up for. Else a
/// moment in which the host gives the model no CPU would end in a burst beyond the rate.
const BURST: f64 = 64.0;

/// Sends at a rate, and knows which one it was.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Nanoseconds from frame to frame; none without a rate.
    step: Option<f64>,
    /// When the next frame is due.
    due: Option<f64>,
    count: u64,
    first: u64,
    last: u64,
    /// How many frames were out, and when, as the port was first found full.
    full: Option<(u64, u64)>,
}

impl Pace {
    pub(crate) fn new(rate: u32) -> Self {
        Self {
            step: (rate != 0).then(|| SECOND / f64::from(rate)),
            due: None,
            count: 0,
            first: 0,
            last: 0,
            full: None,
        }
    }

    /// How many frames may go out now.
    pub(crate) fn due(&mut self, now: u64) -> u32 {
        let Some(step) = self.step else {
            return u32::MAX;
        };
        let now = now as f64;
        let due = self.due.get_or_insert(now);
        *due = due.max(now - (BURST - 1.0) * step);
        if *due > now {
            return 0;
        }
        ((now - *due) / step) as u32 + 1
    }

    /// When [`Self::due`] is not zero any more.
    pub(crate) fn next(&self, now: u64) -> u64 {
        self.due
            .filter(|due| *due > now as f64)
            .map_or(u64::MAX, |due| due as u64 + 1)
    }

    /// A frame went out.
    pub(crate) fn sent(&mut self, now: u64) {
        if self.count == 0 {
            self.first = now;
        }
        self.count += 1;
        self.last = now;
        if let (Some(due), Some(step)) = (&mut self.due, self.step) {
            *due += step;
        }
    }

    /// The port had no room.
    pub(crate) fn held(&mut self, now: u64) {
        self.full.get_or_insert((self.count, now));
    }

    /// Frames per second that went out.
    pub(crate) fn offered(&self) -> f64 {
        rate(self.count.saturating_sub(1), self.first, self.last)
    }

    /// Frames per second that went out once the port was full: as fast as the guest took them.
    pub(crate) fn taken(&self) -> Option<f64> {
        self.full
            .map(|(count, since)| rate(self.count - count, since, self.last))
    }
}

fn rate(count: u64, from: u64, to: u64) -> f64 {
    let span = to.saturating_sub(from);
    if span == 0 {
        return 0.0;
    }
    count as f64 * SECOND / span as f64
}

/// How long each frame was under way.
#[derive(Debug, Default)]
pub(crate) struct Times {
    sent: Vec<u64>,
    took: Vec<u64>,
}

impl Times {
    /// The next frame went out.
    pub(crate) fn sent(&mut self, now: u64) {
        self.sent.push(now);
    }

    /// A frame came back.
    pub(crate) fn back(&mut self, sequence: u32, now: u64) {
        if let Some(sent) = self.sent.get(sequence as usize) {
            self.took.push(now.saturating_sub(*sent));
        }
    }

    /// The median and the 99th percentile.
    pub(crate) fn report(&self) -> Latency {
        let mut took = self.took.clone();
        took.sort_unstable();
        let share = |percent: usize| took.get(took.len() * percent / 100).copied();
        Latency {
            median: share(50),
            p99: share(99),
        }
    }
}

#[cfg(test)]
mod tests;
