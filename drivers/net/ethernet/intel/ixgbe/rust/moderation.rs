// SPDX-License-Identifier: GPL-2.0

//! Interrupt moderation (datasheet 7.3): the minimum interval between two interrupts of a queue
//! vector.
//!
//! A request-response workload needs a short interval. With many packets per interrupt, a longer
//! interval saves interrupts and costs no latency that matters. The interval grows in small steps
//! and drops to the minimum at once.

use kernel::{
    io::{
        register::Array,
        Io, //
    },
    num::Bounded,
    prelude::*, //
};

use crate::{
    hw::Bar0,
    regs::{
        queue::Pair,
        EITR, //
    }, //
};

/// The shortest interval: the latency that moderation may add to a single packet. All intervals are
/// in units of 2 µs.
const MIN_INTERVAL: u16 = 5;
/// The longest interval, well below the time in which a ring fills up.
const MAX_INTERVAL: u16 = 31;
/// The interval grows by this.
const STEP: u16 = 2;
/// Fewer packets per interrupt than this reset the interval: the load is latency-bound.
const FEW_PACKETS: usize = 8;
/// As many packets per interrupt as this lengthen the interval: the load is throughput-bound.
const MANY_PACKETS: usize = 32;

/// The moderation of one queue vector.
pub(crate) struct Moderation {
    pair: Pair,
    interval: u16,
    /// Packets received and sent since the last interrupt.
    packets: usize,
}

impl Moderation {
    /// Starts with the interval that [`configure`] sets.
    pub(crate) const fn new(pair: Pair) -> Self {
        Self {
            pair,
            interval: MIN_INTERVAL,
            packets: 0,
        }
    }

    /// Accounts the packets of one poll. If `all` is set, the rings are empty, and the interval is
    /// updated before the interrupt is unmasked.
    #[inline]
    pub(crate) fn polled(&mut self, bar: &Bar0<'_>, packets: usize, all: bool) {
        self.packets = self.packets.saturating_add(packets);
        if !all {
            return;
        }
        let interval = next(self.interval, self.packets);
        self.packets = 0;
        if interval != self.interval {
            self.interval = interval;
            set(bar, self.pair, interval);
        }
    }
}

/// Sets the initial interval of a vector.
pub(crate) fn configure(bar: &Bar0<'_>, pair: Pair) {
    set(bar, pair, MIN_INTERVAL);
}

fn set(bar: &Bar0<'_>, pair: Pair, interval: u16) {
    bar.write(
        EITR::at(pair.at()),
        EITR::zeroed()
            .with_itr_interval(Bounded::<u32, 9>::from_expr(u32::from(interval & 0x1ff)))
            .with_cnt_wdis(true),
    );
}

/// Returns the next interval, after one with `packets` packets.
#[inline]
fn next(interval: u16, packets: usize) -> u16 {
    if packets >= MANY_PACKETS {
        (interval + STEP).min(MAX_INTERVAL)
    } else if packets < FEW_PACKETS {
        MIN_INTERVAL
    } else {
        interval
    }
}

#[kunit_tests(ixgbe_rust_moderation)]
mod tests {
    use super::*;

    #[test]
    fn intervals_grow_slowly_up_to_a_limit() {
        let mut interval = MIN_INTERVAL;

        for _ in 0..100 {
            let longer = next(interval, MANY_PACKETS);

            assert!(longer == interval + STEP || longer == MAX_INTERVAL);
            interval = longer;
        }
        assert_eq!(interval, MAX_INTERVAL);
    }

    #[test]
    fn they_fall_at_once_and_stay_in_between() {
        assert_eq!(next(MAX_INTERVAL, FEW_PACKETS - 1), MIN_INTERVAL);
        assert_eq!(next(MAX_INTERVAL, 0), MIN_INTERVAL);
        assert_eq!(next(MAX_INTERVAL, FEW_PACKETS), MAX_INTERVAL);
        assert_eq!(next(15, MANY_PACKETS - 1), 15);
    }
}
