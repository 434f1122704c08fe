// SPDX-License-Identifier: GPL-2.0

//! Interrupt moderation (datasheet 7.3): the minimum interval between two interrupts of a queue
//! vector. Users fix it for all vectors, or that of each vector adapts to its load.

use kernel::{
    io::register::Array,
    net::{
        device::ethtool::coalesce::Coalesce,
        dim::{
            Dim,
            Moderate,
            Moderation, //
        },
        napi::{
            Napi,
            Poll, //
        }, //
    },
    num::Bounded,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

use crate::{
    mmio::Bar0,
    regs::{
        queue::Pair,
        EITR, //
    },
    stats::{
        Counter,
        PollCounters, //
    }, //
};

/// The longest fixed interval, in µs: the field has 9 bits.
pub(crate) const MAX_USECS: u32 = 2 * 0x1ff;

/// The shortest interval in which the NIC aggregates packets, as with `ixgbe`. All intervals are in
/// units of 2 µs.
const MIN_LRO_INTERVAL: u16 = 4;

/// The same in µs.
pub(crate) const MIN_LRO_USECS: u32 = 2 * MIN_LRO_INTERVAL as u32;

/// The interval for a decision. The NIC does not count packets.
fn interval(decision: Moderation) -> u16 {
    decision.usecs.div_ceil(2).max(MIN_LRO_INTERVAL)
}

/// The interval that was decided on last, which the next poll passes to the NIC.
struct Decided(Atomic<u32>);

impl Moderate for Decided {
    fn moderate(&self, moderation: Moderation) {
        self.0.store(interval(moderation).into(), Relaxed);
    }
}

/// The moderation of one queue vector, which has a single interrupt for both of its queues.
pub(crate) struct PairModeration {
    pair: Pair,
    dim: Dim<Decided>,
    /// The interval that we have passed to the NIC, if users have fixed none since.
    interval: Option<u16>,
}

impl PairModeration {
    /// Starts with the interval that [`Setting::apply`] sets.
    pub(crate) fn new(napi: &Napi, pair: Pair) -> Result<Self> {
        let first = interval(Moderation::default_of_dim());

        Ok(Self {
            pair,
            dim: Dim::new(napi, Decided(Atomic::new(first.into())))?,
            interval: None,
        })
    }

    /// Accounts the packets of a poll that has emptied the rings, and passes a new interval to the
    /// NIC before the interrupt is unmasked.
    #[inline]
    pub(crate) fn polled(
        &mut self,
        bar: &Bar0<'_>,
        setting: &Setting,
        counters: &PollCounters,
        cx: &Poll<'_>,
    ) {
        if setting.fixed().is_some() {
            self.interval = None;
            return;
        }
        let sum = |rx: &Counter, tx: &Counter| rx.get().wrapping_add(tx.get());
        let packets = sum(&counters.rx_packets, &counters.tx_packets);
        let bytes = sum(&counters.rx_bytes, &counters.tx_bytes);
        self.dim.update(cx.interrupts(), packets, bytes);

        // CAST: It has 9 bits.
        let decided = self.dim.target().0.load(Relaxed) as u16;
        if self.interval != Some(decided) {
            self.interval = Some(decided);
            self.adapt(bar, setting, decided);
        }
    }

    /// Passes a new interval to the NIC, unless users have fixed it.
    #[inline(never)]
    fn adapt(&self, bar: &Bar0<'_>, setting: &Setting, interval: u16) {
        set(bar, self.pair, interval);
        // If it has been fixed meanwhile, the last write must be that of the fixed one.
        if let Some(interval) = setting.fixed() {
            set(bar, self.pair, interval);
        }
    }
}

/// The moderation that users have set, for all vectors. Changes with the lock of the
/// device's operations held.
pub(crate) struct Setting {
    /// The fixed interval in units of 2 µs.
    interval: Atomic<u32>,
    adaptive: Atomic<bool>,
}

impl Setting {
    /// The default: it adapts.
    pub(crate) fn new() -> Self {
        Self {
            interval: Atomic::new(interval(Moderation::default_of_dim()).into()),
            adaptive: Atomic::new(true),
        }
    }

    /// Returns the interval, if it is fixed.
    #[inline]
    fn fixed(&self) -> Option<u16> {
        // CAST: It has 9 bits.
        (!self.adaptive.load(Relaxed)).then(|| self.interval.load(Relaxed) as u16)
    }

    /// Returns whether the NIC can aggregate packets: it does so between two interrupts (datasheet
    /// 7.11). The datasheet has them end some time before the interrupt.
    pub(crate) fn allows_lro(&self) -> bool {
        self.fixed()
            .is_none_or(|interval| interval >= MIN_LRO_INTERVAL)
    }

    /// Returns the setting as users see it.
    pub(crate) fn get(&self) -> Coalesce {
        Coalesce {
            usecs: 2 * self.interval.load(Relaxed),
            adaptive: self.adaptive.load(Relaxed),
        }
    }

    /// Changes the setting. The time is rounded up to what the NIC can do.
    pub(crate) fn set(&self, wanted: Coalesce) {
        let usecs = wanted.usecs.min(MAX_USECS);

        self.interval.store(usecs.div_ceil(2), Relaxed);
        self.adaptive.store(wanted.adaptive, Relaxed);
    }

    /// Passes the setting to the NIC: the fixed interval, or the one that each vector begins with.
    pub(crate) fn apply(&self, bar: &Bar0<'_>, pairs: u16) {
        let first = || interval(Moderation::default_of_dim());

        for pair in Pair::first(pairs) {
            set(bar, pair, self.fixed().unwrap_or_else(first));
        }
    }
}

fn set(bar: &Bar0<'_>, pair: Pair, interval: u16) {
    bar.write(
        EITR::at(pair.at()),
        EITR::zeroed()
            .with_itr_interval(Bounded::<u32, 9>::from_expr(u32::from(interval & 0x1ff)))
            .with_cnt_wdis(true),
    );
}

#[kunit_tests(ixgbe_rust_moderation)]
mod tests {
    use super::*;

    #[test]
    fn users_can_fix_it() {
        let setting = Setting::new();
        let set = |usecs, adaptive| {
            setting.set(Coalesce { usecs, adaptive });
            (setting.get().usecs, setting.fixed())
        };

        assert!(setting.get().adaptive && setting.fixed().is_none());
        assert_eq!(set(50, false), (50, Some(25)));
        assert_eq!(set(51, false), (52, Some(26)));
        assert_eq!(set(0, false), (0, Some(0)));
        assert_eq!(set(u32::MAX, false), (MAX_USECS, Some(0x1ff)));
        assert_eq!(set(20, true), (20, None));
        assert!(setting.allows_lro());
        for (usecs, allows) in [(0, false), (6, false), (MIN_LRO_USECS, true), (100, true)] {
            set(usecs, false);
            assert_eq!(setting.allows_lro(), allows);
        }
        set(0, true);
        assert!(setting.allows_lro());
    }

    #[test]
    fn decisions_allow_lro() {
        let interval = |usecs| interval(Moderation { usecs, pkts: 1 });

        assert_eq!([0, 2, 8, 9, 64].map(interval), [4, 4, 4, 5, 32]);
    }
}
