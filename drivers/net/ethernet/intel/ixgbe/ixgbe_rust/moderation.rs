// SPDX-License-Identifier: GPL-2.0

//! Interrupt moderation (datasheet 7.3): how long a queue vector is quiet after an interrupt.
//!
//! Short for who waits for an answer to a single packet, longer for who gets several with each
//! interrupt anyway: then fewer interrupts do. It grows slowly and falls at once.

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

/// Intervals are in units of 2 µs: this is what a packet on its own may have to wait.
const SHORTEST: u16 = 5;
/// Well below the time in which a ring fills up.
const LONGEST: u16 = 31;
const STEP: u16 = 2;
/// An interrupt for fewer packets than this is for somebody who waits.
const FEW: usize = 8;
/// An interrupt for as many could have come later.
const MANY: usize = 32;

/// The moderation of one queue vector.
pub(crate) struct Moderation {
    pair: Pair,
    interval: u16,
    /// Received and sent since the last interrupt.
    packets: usize,
}

impl Moderation {
    /// Begins as [`configure`] leaves it.
    pub(crate) const fn new(pair: Pair) -> Self {
        Self {
            pair,
            interval: SHORTEST,
            packets: 0,
        }
    }

    /// Takes notice of what was polled. If that was all, the interrupt is about to be unmasked.
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

/// Sets the interval that a vector begins with.
pub(crate) fn configure(bar: &Bar0<'_>, pair: Pair) {
    set(bar, pair, SHORTEST);
}

fn set(bar: &Bar0<'_>, pair: Pair, interval: u16) {
    bar.write(
        EITR::at(pair.at()),
        EITR::zeroed()
            .with_itr_interval(Bounded::<u32, 9>::from_expr(u32::from(interval & 0x1ff)))
            .with_cnt_wdis(true),
    );
}

/// Returns the interval after one in which there were so many packets.
#[inline]
fn next(interval: u16, packets: usize) -> u16 {
    if packets >= MANY {
        (interval + STEP).min(LONGEST)
    } else if packets < FEW {
        SHORTEST
    } else {
        interval
    }
}

#[kunit_tests(ixgbe_rust_moderation)]
mod tests {
    use super::*;

    #[test]
    fn intervals_grow_slowly_up_to_a_limit() {
        let mut interval = SHORTEST;

        for _ in 0..100 {
            let longer = next(interval, MANY);

            assert!(longer == interval + STEP || longer == LONGEST);
            interval = longer;
        }
        assert_eq!(interval, LONGEST);
    }

    #[test]
    fn they_fall_at_once_and_stay_in_between() {
        assert_eq!(next(LONGEST, FEW - 1), SHORTEST);
        assert_eq!(next(LONGEST, 0), SHORTEST);
        assert_eq!(next(LONGEST, FEW), LONGEST);
        assert_eq!(next(15, MANY - 1), 15);
    }
}
