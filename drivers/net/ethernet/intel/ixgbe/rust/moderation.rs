// SPDX-License-Identifier: GPL-2.0

//! Interrupt moderation (datasheet 7.3): the minimum interval between two interrupts of a queue
//! vector.
//!
//! A longer interval is worth its latency if more packets come per interrupt. They do in a stream
//! that does not wait for us. They do not in a closed loop, where the sender has a window, as TCP
//! has: there, the next packets come after the last ones were answered, and an interval that is
//! longer than that takes does nothing but slow the loop down.
//!
//! So the interval is lengthened on trial, and stays longer only if each interrupt brings more
//! packets by about as much. It ends where an interrupt brings enough. A vector that only completes
//! sent packets finds more of them the longer it waits, as long as the stack goes on sending: it
//! waits for longer than one that receives, by the same rule.

use kernel::{
    io::{
        register::Array,
        Io, //
    },
    net::device::{
        controls,
        RingLens, //
    },
    num::Bounded,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

use crate::{
    hw::Bar0,
    regs::{
        queue::Pair,
        EITR, //
    }, //
};

/// The longest fixed interval, in µs: the field has 9 bits.
pub(crate) const MAX_USECS: u32 = 2 * 0x1ff;

/// The shortest interval: the latency that moderation may add to a single packet. All intervals are
/// in units of 2 µs.
const MIN_INTERVAL: u16 = 5;
/// The longest interval, well below the time in which a ring fills up.
const MAX_INTERVAL: u16 = 31;
/// Fewer packets than this in an interrupt reset the interval: the load is latency-bound.
const FEW_PACKETS: usize = 4;
/// This many received packets share the cost of an interrupt well enough, if most of the ring stays
/// free.
const ENOUGH_RECEIVED: usize = 64;
/// Number of interrupts over which packets are averaged.
const SAMPLE: usize = 16;
/// Number of samples after which a longer interval has to prove itself again.
const MAX_AGE: u16 = 64;
/// Greatest number of samples between a trial that failed and the next one.
const MAX_PAUSE: u16 = 1024;

/// The moderation of one queue vector.
pub(crate) struct PairModeration {
    pair: Pair,
    /// Packets since the last interrupt.
    since: Packets,
    rule: Rule,
}

/// Numbers of packets.
#[derive(Clone, Copy, Default)]
pub(crate) struct Packets {
    pub(crate) received: usize,
    pub(crate) sent: usize,
}

impl Packets {
    fn all(self) -> usize {
        self.received.saturating_add(self.sent)
    }

    fn add(&mut self, other: Self) {
        self.received = self.received.saturating_add(other.received);
        self.sent = self.sent.saturating_add(other.sent);
    }
}

/// The packets of an interrupt that share its cost well enough. Nobody waits for those that were
/// sent, so they can be more.
fn enough(lens: RingLens) -> Packets {
    Packets {
        received: ENOUGH_RECEIVED.min(lens.rx.get() / 4),
        sent: lens.tx.get() / 4,
    }
}

impl PairModeration {
    /// Starts with the interval that [`configure`] sets.
    pub(crate) fn new(pair: Pair, lens: RingLens) -> Self {
        Self {
            pair,
            since: Packets {
                received: 0,
                sent: 0,
            },
            rule: Rule::new(enough(lens)),
        }
    }

    /// Accounts the packets of one poll. If `all` is set, the rings are empty, and the interval is
    /// updated before the interrupt is unmasked.
    #[inline]
    pub(crate) fn polled(
        &mut self,
        bar: &Bar0<'_>,
        setting: &Setting,
        packets: Packets,
        all: bool,
        is_repeated: bool,
    ) {
        self.since.add(packets);
        if !all {
            return;
        }
        let packets = core::mem::take(&mut self.since);
        if is_repeated {
            return self.rule.more(packets);
        }
        let before = self.rule.interval;
        self.rule.interrupt(packets);
        if self.rule.interval != before {
            self.adapt(bar, setting);
        }
    }

    /// Passes a new interval to the card, unless users have fixed it.
    #[inline(never)]
    fn adapt(&self, bar: &Bar0<'_>, setting: &Setting) {
        if setting.fixed().is_some() {
            return;
        }
        set(bar, self.pair, self.rule.interval);
        // If it has been fixed meanwhile, the last write must be that of the fixed one.
        if let Some(interval) = setting.fixed() {
            set(bar, self.pair, interval);
        }
    }
}

/// The moderation that users have set, for all vectors. Changes with RTNL held.
pub(crate) struct Setting {
    /// The fixed interval in units of 2 µs.
    interval: Atomic<u32>,
    adaptive: Atomic<bool>,
}

impl Setting {
    /// The default: it adapts.
    pub(crate) fn new() -> Self {
        Self {
            interval: Atomic::new(MIN_INTERVAL.into()),
            adaptive: Atomic::new(true),
        }
    }

    /// Returns the interval, if it is fixed.
    fn fixed(&self) -> Option<u16> {
        // CAST: It has 9 bits.
        (!self.adaptive.load(Relaxed)).then(|| self.interval.load(Relaxed) as u16)
    }

    /// Returns the setting as users see it.
    pub(crate) fn get(&self) -> controls::Moderation {
        controls::Moderation {
            usecs: 2 * self.interval.load(Relaxed),
            adaptive: self.adaptive.load(Relaxed),
        }
    }

    /// Changes the setting. The time is rounded up to what the card can do.
    pub(crate) fn set(&self, wanted: controls::Moderation) {
        let usecs = wanted.usecs.min(MAX_USECS);

        self.interval.store(usecs.div_ceil(2), Relaxed);
        self.adaptive.store(wanted.adaptive, Relaxed);
    }

    /// Passes the setting to the card: the fixed interval, or the one that the rule begins with.
    pub(crate) fn apply(&self, bar: &Bar0<'_>, pairs: u16) {
        for pair in Pair::first(pairs) {
            set(bar, pair, self.fixed().unwrap_or(MIN_INTERVAL));
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

/// The rule that chooses the interval.
struct Rule {
    /// The packets that are enough for an interrupt.
    enough: Packets,
    interval: u16,
    /// The sample that is being taken.
    interrupts: usize,
    packets: Packets,
    /// Packets of the last sample with a shorter interval, if a longer one is on trial.
    shorter: Option<usize>,
    /// Samples since the interval was the shortest.
    age: u16,
    /// Samples until the next trial, and the number of them after the next one that fails.
    wait: u16,
    pause: u16,
}

impl Rule {
    fn new(enough: Packets) -> Self {
        Self {
            enough,
            interval: MIN_INTERVAL,
            interrupts: 0,
            packets: Packets {
                received: 0,
                sent: 0,
            },
            shorter: None,
            age: 0,
            wait: 0,
            pause: 1,
        }
    }

    /// Accounts an interrupt and its packets.
    #[inline]
    fn interrupt(&mut self, packets: Packets) {
        match packets.all() {
            // Polling has already handled what the card raised it for.
            0 => return,
            few if few < FEW_PACKETS => return self.reset(),
            _ => (),
        }
        self.packets.add(packets);
        self.interrupts += 1;
        if self.interrupts >= SAMPLE {
            self.judge();
        }
    }

    /// Accounts packets that came right after those of the last interrupt, and without another one.
    #[inline]
    fn more(&mut self, packets: Packets) {
        self.packets.add(packets);
    }

    /// Goes back to the shortest interval.
    fn reset(&mut self) {
        self.interval = MIN_INTERVAL;
        self.shorter = None;
        self.age = 0;
        self.interrupts = 0;
        self.packets = Packets::default();
    }

    /// Chooses the next interval, after a whole sample.
    #[inline(never)]
    fn judge(&mut self) {
        let sample = core::mem::take(&mut self.packets);
        let packets = sample.all();
        // Completions that nobody waits for can as well wait for the longest time at once: several
        // turns of a closed loop may fit into that.
        let (enough, longer) = if sample.received == 0 {
            (SAMPLE * self.enough.sent, MAX_INTERVAL)
        } else {
            (
                SAMPLE * self.enough.received,
                self.interval + self.interval / 2,
            )
        };
        self.interrupts = 0;
        self.age = self.age.saturating_add(1);

        if packets >= 2 * enough {
            self.shorter = None;
            self.interval = (self.interval / 2).max(MIN_INTERVAL);
        } else if self
            .shorter
            .is_some_and(|shorter| !is_more(packets, shorter))
        {
            // Waiting for longer was of no use.
            self.reset();
            self.wait = self.pause;
            self.pause = self.pause.saturating_mul(2).min(MAX_PAUSE);
        } else if packets >= enough || self.interval >= MAX_INTERVAL {
            if self.shorter.take().is_some() {
                self.pause = 1;
            }
            // The load may have become another one.
            if self.age >= MAX_AGE {
                self.reset();
            }
        } else if self.wait > 0 {
            self.wait -= 1;
        } else {
            self.shorter = Some(packets);
            self.interval = longer.min(MAX_INTERVAL);
        }
    }
}

/// Whether an interval that is longer by two fifths at least has brought more packets.
fn is_more(packets: usize, shorter: usize) -> bool {
    packets.saturating_mul(5) >= shorter.saturating_mul(6)
}

#[kunit_tests(ixgbe_rust_moderation)]
mod tests {
    use super::*;
    use kernel::net::queue::RingLen;

    fn received(received: usize) -> Packets {
        Packets { received, sent: 0 }
    }

    fn rule() -> Rule {
        let len = RingLen::of::<512>();

        Rule::new(enough(RingLens { rx: len, tx: len }))
    }

    #[test]
    fn most_of_a_short_ring_stays_free() {
        let enough = |rx, tx| {
            let enough = enough(RingLens { rx, tx });
            (enough.received, enough.sent)
        };

        let (short, long) = (RingLen::of::<64>(), RingLen::of::<4096>());
        assert_eq!(enough(short, long), (16, 1024));
        assert_eq!(enough(long, short), (64, 16));
    }

    fn sent(sent: usize) -> Packets {
        Packets { received: 0, sent }
    }

    /// A sample of interrupts, each with the packets that come within the interval.
    fn sample(rule: &mut Rule, packets: impl Fn(u16) -> Packets) {
        for _ in 0..SAMPLE {
            let interval = rule.interval;
            rule.interrupt(packets(interval));
        }
    }

    #[test]
    fn users_can_fix_it() {
        let setting = Setting::new();
        let set = |usecs, adaptive| {
            setting.set(controls::Moderation { usecs, adaptive });
            (setting.get().usecs, setting.fixed())
        };

        assert!(setting.get().adaptive && setting.fixed().is_none());
        assert_eq!(set(50, false), (50, Some(25)));
        assert_eq!(set(51, false), (52, Some(26)));
        assert_eq!(set(0, false), (0, Some(0)));
        assert_eq!(set(u32::MAX, false), (MAX_USECS, Some(0x1ff)));
        assert_eq!(set(20, true), (20, None));
    }

    #[test]
    fn a_stream_lengthens_the_interval_until_there_are_enough() {
        let mut rule = rule();
        let stream = |interval| received(4 * usize::from(interval));

        for _ in 0..8 {
            sample(&mut rule, stream);
        }
        let packets = 4 * usize::from(rule.interval);
        assert!((ENOUGH_RECEIVED..2 * ENOUGH_RECEIVED).contains(&packets));
    }

    #[test]
    fn a_slow_stream_gets_the_longest_interval() {
        let mut rule = rule();

        for _ in 0..8 {
            sample(&mut rule, |interval| received(usize::from(interval)));
        }
        assert_eq!(rule.interval, MAX_INTERVAL);
    }

    #[test]
    fn a_closed_loop_keeps_the_shortest_interval() {
        for window in [FEW_PACKETS, 8, 16, 24, 32, 48] {
            let mut rule = rule();
            let mut longer = 0;

            for _ in 0..1000 {
                sample(&mut rule, |_| received(window));
                longer += u32::from(rule.interval > MIN_INTERVAL);
            }
            // The trials: each takes a sample, and the pauses between them grow.
            assert!((1..=11).contains(&longer));
        }
    }

    #[test]
    fn a_loop_of_many_packets_does_not_wait() {
        let mut rule = rule();

        for _ in 0..100 {
            sample(&mut rule, |_| received(ENOUGH_RECEIVED));
            assert_eq!(rule.interval, MIN_INTERVAL);
        }
    }

    #[test]
    fn a_stream_that_becomes_a_closed_loop_is_found_out() {
        let mut rule = rule();

        for _ in 0..8 {
            sample(&mut rule, |interval| received(usize::from(interval)));
        }
        assert_eq!(rule.interval, MAX_INTERVAL);

        let mut samples = 0;
        while rule.interval > MIN_INTERVAL {
            sample(&mut rule, |_| received(16));
            samples += 1;
            assert!(samples <= MAX_AGE);
        }
        sample(&mut rule, |_| received(16));
        sample(&mut rule, |_| received(16));
        assert_eq!(rule.interval, MIN_INTERVAL);
    }

    #[test]
    fn too_many_packets_shorten_it() {
        let mut rule = rule();
        rule.interval = MAX_INTERVAL;

        sample(&mut rule, |_| received(2 * ENOUGH_RECEIVED));
        assert_eq!(rule.interval, MAX_INTERVAL / 2);
    }

    #[test]
    fn completions_wait_for_longer() {
        let mut rule = rule();
        let stream = |interval| sent(6 * usize::from(interval));

        for _ in 0..8 {
            sample(&mut rule, stream);
        }
        let packets = 6 * usize::from(rule.interval);
        assert!((128..256).contains(&packets));
    }

    #[test]
    fn a_single_packet_resets_it_at_once() {
        let mut rule = rule();
        rule.interval = MAX_INTERVAL;

        rule.interrupt(received(FEW_PACKETS));
        assert_eq!(rule.interval, MAX_INTERVAL);
        rule.interrupt(received(1));
        assert_eq!(rule.interval, MIN_INTERVAL);
        // The sample begins anew.
        assert_eq!((rule.interrupts, rule.packets.all()), (0, 0));
    }

    #[test]
    fn packets_of_a_repeated_poll_belong_to_the_interrupt() {
        let mut rule = rule();
        rule.interval = MAX_INTERVAL;

        rule.interrupt(received(16));
        rule.more(received(1));
        assert_eq!((rule.interval, rule.interrupts), (MAX_INTERVAL, 1));
        assert_eq!(rule.packets.all(), 17);
    }

    #[test]
    fn an_interrupt_without_packets_says_nothing() {
        let mut rule = rule();
        rule.interval = MAX_INTERVAL;

        for _ in 0..2 * SAMPLE {
            rule.interrupt(received(0));
        }
        assert_eq!((rule.interval, rule.interrupts), (MAX_INTERVAL, 0));
    }
}
