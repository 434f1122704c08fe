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
//!
//! A CPU that has other work does not idle until the next interrupt, so the loop is not slower if
//! that comes later. What an interrupt brings tells nothing about it then: the interval is
//! lengthened without trial, as long as most interrupts keep a process from running.
//!
//! A CPU that has much to do for each packet may need more time for those of an interrupt than the
//! interval. A slightly longer one would change nothing then. So a trial goes beyond the time that
//! has passed between interrupts.

use kernel::{
    io::{
        register::Array,
        Io, //
    },
    net::{
        device::{
            controls,
            RingLens, //
        },
        napi::Poll, //
    },
    num::Bounded,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    time::{
        ClockSource,
        Monotonic, //
    }, //
};

use crate::{
    mmio::Bar0,
    regs::{
        queue::Pair,
        EITR, //
    }, //
};

mod tests;

/// The longest fixed interval, in µs: the field has 9 bits.
pub(crate) const MAX_USECS: u32 = 2 * 0x1ff;

/// The shortest interval: the latency that moderation may add to a single packet. All intervals are
/// in units of 2 µs.
const MIN_INTERVAL: u16 = 5;
/// The longest interval, well below the time in which a ring fills up: at 10 Gb/s, 65 frames of
/// full size come in it.
const MAX_INTERVAL: u16 = 40;
/// The same while the CPU has other work: the longest one of `ixgbe`. 101 frames come in it.
const MAX_WORKING_INTERVAL: u16 = 62;

/// The shortest interval in which the card joins packets, in the same unit, as with `ixgbe`.
const MIN_JOINING_INTERVAL: u16 = 4;

/// The same in µs.
pub(crate) const MIN_JOINING_USECS: u32 = 2 * MIN_JOINING_INTERVAL as u32;

const _: () = assert!(MIN_JOINING_INTERVAL <= MIN_INTERVAL);
/// Fewer packets than this in an interrupt, several times in a row, reset the interval: the load is
/// latency-bound. A stream has such interrupts now and then, for an acknowledgment.
const FEW_PACKETS: usize = 4;
const FEW_IN_A_ROW: u8 = 4;
/// This many received packets share the cost of an interrupt well enough, if most of the ring stays
/// free.
const ENOUGH_RECEIVED: usize = 64;
/// Number of interrupts over which packets are averaged.
const SAMPLE: usize = 16;
/// So many of them, if a process had to wait, tell that the CPU has other work.
const MOST_OF_SAMPLE: usize = SAMPLE / 4 * 3;
/// Nanoseconds per unit of intervals.
const UNIT: u32 = 2000;
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

/// Numbers of packets, as they are on the wire: one that the card splits is many.
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
        cx: &Poll<'_>,
    ) {
        self.since.add(packets);
        if !all {
            return;
        }
        let packets = core::mem::take(&mut self.since);
        let before = self.rule.interval;
        self.rule
            .interrupt(packets, cx.delays_process(), Monotonic::ktime_get);
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

    /// Returns whether the card can join packets: it does so between two interrupts (datasheet
    /// 7.11). The datasheet has them end some time before the interrupt.
    pub(crate) fn allows_joining(&self) -> bool {
        self.fixed()
            .is_none_or(|interval| interval >= MIN_JOINING_INTERVAL)
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
    /// The last interrupts, all of which had few packets.
    few: u8,
    /// The sample that is being taken, and those of its interrupts for which a process had to wait.
    interrupts: usize,
    packets: Packets,
    working: usize,
    /// Whether the CPU had other work during the last one.
    works: bool,
    /// The time of its beginning in nanoseconds, if it is known.
    since: Option<i64>,
    /// Packets of the last sample with a shorter interval, if a longer one is on trial.
    shorter: Option<usize>,
    /// Samples since the interval was the shortest.
    age: u16,
    /// Samples until the next trial, and the number of them after the next one that fails.
    wait: u16,
    pause: u16,
    /// Packets of the sample before the last trial that has failed. With another load, there is no
    /// reason to wait.
    failed: usize,
}

impl Rule {
    fn new(enough: Packets) -> Self {
        Self {
            enough,
            interval: MIN_INTERVAL,
            few: 0,
            interrupts: 0,
            packets: Packets {
                received: 0,
                sent: 0,
            },
            working: 0,
            works: false,
            since: None,
            shorter: None,
            age: 0,
            wait: 0,
            pause: 1,
            failed: 0,
        }
    }

    /// Accounts an interrupt and its packets. `works`: the CPU had other work. `now` tells the time
    /// in nanoseconds.
    #[inline]
    fn interrupt(&mut self, packets: Packets, works: bool, now: impl FnOnce() -> i64) {
        match packets.all() {
            // Polling has already handled what the card raised it for.
            0 => return,
            few if few < FEW_PACKETS => {
                self.few = self.few.saturating_add(1);
                if self.few >= FEW_IN_A_ROW && self.interval > MIN_INTERVAL {
                    return self.reset();
                }
            }
            _ => self.few = 0,
        }
        self.packets.add(packets);
        self.interrupts += 1;
        self.working += usize::from(works);
        if self.interrupts >= SAMPLE {
            self.judge(now());
        }
    }

    /// Goes back to the shortest interval.
    fn shortest(&mut self) {
        self.interval = MIN_INTERVAL;
        self.shorter = None;
        self.age = 0;
    }

    /// Does so in the middle of a sample, also of one that is a trial.
    fn reset(&mut self) {
        self.fail();
        self.interrupts = 0;
        self.working = 0;
        self.packets = Packets::default();
        self.since = None;
    }

    /// Goes back to the shortest interval. If there was a trial, it has failed: the next one is put
    /// off.
    fn fail(&mut self) {
        if let Some(shorter) = self.shorter {
            self.failed = shorter;
            self.wait = self.pause;
            self.pause = self.pause.saturating_mul(2).min(MAX_PAUSE);
        }
        self.shortest();
    }

    /// Whether a sample is from another load than the one of the last trial that has failed.
    fn is_another_load(&self, packets: usize) -> bool {
        packets > self.failed.saturating_mul(2) || packets < self.failed / 2
    }

    /// Chooses the next interval, after a whole sample.
    #[inline(never)]
    fn judge(&mut self, now: i64) {
        let sample = core::mem::take(&mut self.packets);
        let since = self.since.replace(now);
        let works = core::mem::take(&mut self.working) >= MOST_OF_SAMPLE;
        let worked = core::mem::replace(&mut self.works, works);
        self.interrupts = 0;
        // Without its time, a sample says nothing about longer intervals.
        let Some(since) = since else {
            return;
        };
        let longest = if works {
            MAX_WORKING_INTERVAL
        } else {
            MAX_INTERVAL
        };
        let between = self.between_interrupts(now.wrapping_sub(since), longest);
        let packets = sample.all();
        // Completions that nobody waits for can as well wait for the longest time at once: several
        // turns of a closed loop may fit into that.
        let (enough, longer) = if sample.received == 0 {
            (SAMPLE * self.enough.sent, longest)
        } else {
            (SAMPLE * self.enough.received, longer_than(between, longest))
        };
        self.age = self.age.saturating_add(1);

        if packets >= 2 * enough {
            self.shorter = None;
            self.interval = (self.interval / 2).max(MIN_INTERVAL);
        } else if works {
            // The CPU does not idle until the next interrupt, so a longer interval slows nothing.
            self.shorter = None;
            if packets < enough {
                self.interval = longer;
            }
        } else if worked {
            self.shortest();
        } else if self
            .shorter
            .is_some_and(|shorter| !is_more(packets, shorter))
        {
            // Waiting for longer was of no use.
            self.fail();
        } else if packets >= enough || self.interval >= MAX_INTERVAL {
            if self.shorter.take().is_some() {
                self.pause = 1;
            }
            // The load may have become another one.
            if self.age >= MAX_AGE {
                self.shortest();
            }
        } else if self.wait > 0 && !self.is_another_load(packets) {
            self.wait -= 1;
        } else {
            if self.wait > 0 {
                self.wait = 0;
                self.pause = 1;
            }
            self.shorter = Some(packets);
            self.interval = longer;
        }
    }

    /// The interval, or the time from an interrupt to the next if that was longer, for a sample
    /// that took so long. At most `longest`.
    fn between_interrupts(&self, nanos: i64, longest: u16) -> u16 {
        // Without a division of 64 bits, which some CPUs do not have.
        let units = u32::try_from(nanos).unwrap_or(u32::MAX) / (UNIT * SAMPLE as u32);

        // CAST: It is in the range of an interval. Not `clamp()`, which can panic.
        units.max(self.interval.into()).min(longest.into()) as u16
    }
}

/// The next interval to try. It is longer by half, or up to twice as long if that is the longest: a
/// step to that one must not be so small that it shows nothing.
fn longer_than(interval: u16, longest: u16) -> u16 {
    let longer = interval + interval / 2;

    if longer + longer / 3 >= longest {
        longest
    } else {
        longer
    }
}

/// Whether an interval that is longer by two fifths at least has brought more packets.
fn is_more(packets: usize, shorter: usize) -> bool {
    packets.saturating_mul(5) >= shorter.saturating_mul(6)
}
