// SPDX-License-Identifier: GPL-2.0

//! The clock of a port, and time stamps of packets (datasheet 7.9, Time SYNC).
//!
//! The NIC counts cycles, whose length depends on the speed of the link, and has one latch for
//! stamps in each direction. A latch is full until it is read: if a packet is lost, or its stamp
//! does not come, [`Ptp::check_up`] and [`Ptp::work`] empty it. All registers of the clock are
//! accessed with the state locked.

use kernel::{
    io::register::Array,
    net::{
        device::hwtstamp::{
            HwtstampConfig,
            RxFilter,
            TxType, //
        },
        skbuff::{
            SkBuff,
            TxTimestamp, //
        }, //
    },
    prelude::*,
    ptp_clock::{
        PtpClock,
        ScaledPpm,
        SystemTimestamp, //
    },
    softirq::BhGuard,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        new_spinlock,
        SpinLock, //
    },
    time::{
        msecs_to_jiffies,
        timecounter::{
            Cycles,
            TimeCounter, //
        },
        BootTime,
        ClockSource,
        Delta,
        Instant,
        Jiffies,
        RealTime, //
    }, //
};

use core::mem;

use crate::{
    link::Link,
    mmio::Bar0,
    regs::ptp::*,
    stats::StampCounters, //
};

/// The greatest offset of the frequency, in parts per billion: with it, the increment of 10 Gb/s
/// has as many bits as there are. That of the slower ones is lower.
pub(crate) const MAX_ADJ: i32 = 250_000_000;

/// The filters of received frames. That of all events of version 2 stands for each one of them: the
/// NIC stamps those that measure the delay between neighbours with any filter.
pub(crate) const RX_FILTERS: &[RxFilter] = &[
    RxFilter::PtpV1L4Sync,
    RxFilter::PtpV1L4DelayReq,
    RxFilter::PtpV2Event,
];

/// The filter of Ethernet types that is for PTP, as with `ixgbe`.
const FILTER: usize = 3;

/// The type of PTP over Ethernet, and its port of UDP for events.
const ETHERTYPE: u32 = 0x88f7;
const EVENT_PORT: u32 = 319;

/// Time after which a stamp of a sent packet does not come any more.
const TX_TIMEOUT: Delta = Delta::from_millis(1_000);

/// Time during which the latch is looked at again and again.
const TX_SOON: Delta = Delta::from_millis(2);

/// Stamps are not older than this: a latch that is full for longer is emptied.
const MAX_AGE_NS: i64 = 10_000_000_000;

/// Milliseconds after which the counter is read if nothing else does that. It wraps around after
/// some two hours.
const PERIOD_MS: u32 = 30_000;

/// The length of the NIC's cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scale {
    /// A cycle adds this to the counter.
    increment: u32,
    /// Bits of a nanosecond's fraction in the counter.
    shift: u32,
}

impl Scale {
    /// At 10 Gb/s and without a link: 64 tenths of a nanosecond. In the 24 bits of an increment,
    /// there are 21 for fractions then.
    const FAST: Self = Self {
        increment: 0xcc_cccc,
        shift: 21,
    };
    /// At 1 Gb/s: ten times as long.
    const GIGABIT: Self = Self {
        increment: 0x80_0000,
        shift: 17,
    };
    /// At 100 Mb/s: a hundred times as long.
    const SLOW: Self = Self {
        increment: 0xa0_0000,
        shift: 14,
    };

    fn of(link: Link) -> Self {
        match link {
            Link::Up(1_000) => Self::GIGABIT,
            Link::Up(100) => Self::SLOW,
            Link::Up(_) | Link::Down => Self::FAST,
        }
    }

    fn cycles(self) -> Cycles {
        Cycles {
            mask: u64::MAX,
            mult: 1,
            shift: self.shift,
        }
    }

    /// The increment for a frequency, as far as it goes.
    fn increment(self, offset: ScaledPpm) -> u32 {
        const MAX: u64 = (1 << 24) - 1;

        // CAST: By the limit.
        offset.adjust(self.increment).min(MAX) as u32
    }
}

/// The time of the clock.
enum Time {
    /// The NIC counts.
    Counted(TimeCounter),
    /// The port is down, or its NIC being reset: the time was this at that moment.
    Held(u64, Instant<BootTime>),
}

/// A packet that has been sent, or is about to be, whose stamp has not come.
struct Waiting {
    stamp: TxTimestamp,
    since: Instant<BootTime>,
}

struct State {
    time: Time,
    /// When the counter was read last, for a time that goes on from there.
    advanced: Instant<BootTime>,
    scale: Scale,
    offset: ScaledPpm,
    waiting: Option<Waiting>,
    /// The lower half of a stamp of a received frame that was there when it was looked for last.
    seen: Option<u32>,
}

/// The clock of a port, and its stamps.
#[pin_data]
pub(crate) struct Ptp {
    pub(crate) clock: PtpClock,
    /// Packets are stamped when they are sent.
    is_tx_on: Atomic<bool>,
    is_rx_on: Atomic<bool>,
    pub(crate) counters: StampCounters,
    #[pin]
    state: SpinLock<State>,
}

/// Reads the counter.
fn read_counter(bar: &Bar0<'_>, system: &mut SystemTimestamp<'_>) -> Result<u64> {
    let low = system.around(|| bar.read_atomic(SYSTIML)).into_raw();

    counted(low, bar.read_atomic(SYSTIMH).into_raw())
}

/// The value of two registers. The upper one would be all ones after centuries only.
fn counted(low: u32, high: u32) -> Result<u64> {
    if high == u32::MAX {
        return Err(ENODEV);
    }
    Ok(u64::from(high) << 32 | u64::from(low))
}

/// Reads the latch of sent packets, which empties it.
fn read_tx(bar: &Bar0<'_>) -> Result<u64> {
    let low = bar.read_atomic(TXSTMPL).into_raw();

    counted(low, bar.read_once(TXSTMPH).ok_or(ENODEV)?.into_raw())
}

/// The same of received ones.
fn read_rx(bar: &Bar0<'_>) -> Result<u64> {
    let low = bar.read_atomic(RXSTMPL).into_raw();

    counted(low, bar.read_once(RXSTMPH).ok_or(ENODEV)?.into_raw())
}

impl State {
    /// The time when the NIC does not count.
    fn held(nanoseconds: u64, since: Instant<BootTime>) -> u64 {
        // CAST: Time does not go back.
        nanoseconds.wrapping_add(since.elapsed().as_nanos() as u64)
    }

    /// Reads the time, and lets the counter go on from it.
    fn advance(&mut self, bar: &Bar0<'_>) -> Result<u64> {
        match &mut self.time {
            Time::Counted(counter) => {
                let now = read_counter(bar, &mut SystemTimestamp::none())?;
                self.advanced = Instant::now();
                Ok(counter.advance(now))
            }
            Time::Held(nanoseconds, since) => Ok(Self::held(*nanoseconds, *since)),
        }
    }

    /// Has the clock go on without the NIC.
    fn hold(&mut self, bar: &Bar0<'_>) {
        // A NIC that is gone has not been read.
        let _ = self.advance(bar);
        self.lose();
    }

    /// The same, of a NIC that has been reset already.
    fn lose(&mut self) {
        if let Time::Counted(counter) = &self.time {
            self.time = Time::Held(counter.last(), self.advanced);
        }
    }

    /// Has the NIC count from zero.
    fn count(&mut self, bar: &Bar0<'_>) {
        if let Time::Held(nanoseconds, since) = self.time {
            self.set_rate(bar);
            bar.write_reg(SYSTIML::zeroed());
            bar.write_reg(SYSTIMH::zeroed());
            let now = Self::held(nanoseconds, since);
            // All shifts are valid.
            if let Ok(counter) = TimeCounter::new(self.scale.cycles(), 0, now) {
                self.time = Time::Counted(counter);
                self.advanced = Instant::now();
            }
        }
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
    fn time_of(&mut self, bar: &Bar0<'_>, stamp: u64) -> Result<u64> {
        // The stamps are before that.
        let now = self.advance(bar)?;
        let Time::Counted(counter) = &mut self.time else {
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

impl Ptp {
    /// A clock with the time of the system, of a NIC that does not count yet.
    pub(crate) fn new() -> impl PinInit<Self> {
        // CAST: After 1970.
        let now = RealTime::ktime_get() as u64;

        pin_init!(Self {
            clock: PtpClock::new(),
            is_tx_on: Atomic::new(false),
            is_rx_on: Atomic::new(false),
            counters: StampCounters::default(),
            state <- new_spinlock!(
                State {
                    time: Time::Held(now, Instant::now()),
                    advanced: Instant::now(),
                    scale: Scale::FAST,
                    offset: ScaledPpm::ZERO,
                    waiting: None,
                    seen: None,
                },
                "ixgbe_rust::ptp"
            ),
        })
    }

    /// Lets `f` use the state, in any context but a hard interrupt.
    fn with_state<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        // Poll functions take the lock, too. There is no guard where softirqs are threads.
        let _guard = BhGuard::new();
        // A variable: it is unlocked before the guard is dropped, and lets softirqs run.
        let mut state = self.state.lock();

        f(&mut state)
    }

    /// Has the clock go on while the port is down, or the NIC reset. A packet that waits gets no
    /// stamp.
    pub(crate) fn hold(&self, bar: &Bar0<'_>) {
        self.hold_with(|state| state.hold(bar));
    }

    /// The same, of a NIC that has been reset already.
    pub(crate) fn was_reset(&self) {
        self.hold_with(State::lose);
    }

    fn hold_with(&self, f: impl FnOnce(&mut State)) {
        let waiting = self.with_state(|state| {
            f(state);
            state.waiting.take()
        });
        if let Some(waiting) = waiting {
            self.counters.tx_hwtstamp_timeouts.add(1);
            waiting.stamp.give_up();
        }
    }

    /// Has the NIC count again, which was reset.
    pub(crate) fn count(&self, bar: &Bar0<'_>) {
        self.with_state(|state| {
            state.scale = Scale::FAST;
            state.count(bar);
        });
    }

    /// Follows a change of the link.
    pub(crate) fn set_link(&self, bar: &Bar0<'_>, link: Link) {
        self.with_state(|state| {
            let scale = Scale::of(link);
            if state.scale == scale {
                return;
            }
            if let Time::Counted(counter) = &mut state.time {
                // A NIC that is gone does not count.
                let Ok(now) = read_counter(bar, &mut SystemTimestamp::none()) else {
                    return;
                };
                if counter.change(scale.cycles(), now).is_err() {
                    return;
                }
                state.advanced = Instant::now();
            }
            state.scale = scale;
            state.set_rate(bar);
        });
    }

    /// Sets the offset of the frequency.
    pub(crate) fn adjust_frequency(&self, bar: &Bar0<'_>, offset: ScaledPpm) {
        self.with_state(|state| {
            state.offset = offset;
            state.set_rate(bar);
        });
    }

    /// Shifts the time.
    pub(crate) fn adjust(&self, nanoseconds: i64) {
        self.with_state(|state| match &mut state.time {
            Time::Counted(counter) => counter.adjust(nanoseconds),
            // CAST: Sums wrap around.
            Time::Held(time, _) => *time = time.wrapping_add(nanoseconds as u64),
        });
    }

    /// Sets the time.
    pub(crate) fn set(&self, bar: &Bar0<'_>, nanoseconds: u64) -> Result {
        self.with_state(|state| {
            let now = Instant::now();

            match &mut state.time {
                Time::Counted(counter) => {
                    let read = read_counter(bar, &mut SystemTimestamp::none())?;
                    counter.set(read, nanoseconds);
                    state.advanced = now;
                }
                Time::Held(..) => state.time = Time::Held(nanoseconds, now),
            }
            Ok(())
        })
    }

    /// Reads the time.
    pub(crate) fn get(&self, bar: &Bar0<'_>, system: &mut SystemTimestamp<'_>) -> Result<u64> {
        self.with_state(|state| match &mut state.time {
            Time::Counted(counter) => Ok(counter.time_of(read_counter(bar, system)?)),
            Time::Held(time, since) => Ok(system.around(|| State::held(*time, *since))),
        })
    }

    /// Has the NIC stamp what `config` says. Returns what it stamps, which may be more.
    pub(crate) fn configure(
        &self,
        bar: &Bar0<'_>,
        config: HwtstampConfig,
    ) -> Result<HwtstampConfig> {
        let (kind, control, rx) = match config.rx {
            RxFilter::None => (0, 0, RxFilter::None),
            RxFilter::PtpV1L4Sync => (rx_kind::V1, 0, config.rx),
            RxFilter::PtpV1L4DelayReq => (rx_kind::V1, 1, config.rx),
            RxFilter::All | RxFilter::Some | RxFilter::PtpV1L4Event | RxFilter::NtpAll => {
                return Err(ERANGE);
            }
            // The others are events of version 2.
            _ => (rx_kind::V2_EVENTS, 0, RxFilter::PtpV2Event),
        };
        let (is_rx_on, is_tx_on) = (rx != RxFilter::None, config.tx == TxType::On);

        self.with_state(|state| {
            bar.write(
                ETQF::at(FILTER),
                if rx == RxFilter::PtpV2Event {
                    ETQF::zeroed()
                        .with_filter_en(true)
                        .with_is_1588(true)
                        .with_const_etype::<ETHERTYPE>()
                } else {
                    ETQF::zeroed()
                },
            );
            bar.write_reg(
                RXMTRL::zeroed()
                    .with_const_udpt::<EVENT_PORT>()
                    .try_with_ctrlt(control)
                    .unwrap_or(RXMTRL::zeroed()),
            );
            bar.write_reg(TSYNCTXCTL::zeroed().with_en(is_tx_on));
            bar.write_reg(
                TSYNCRXCTL::zeroed()
                    .with_en(is_rx_on)
                    .try_with_kind(kind)
                    .unwrap_or(TSYNCRXCTL::zeroed()),
            );
            // The stamps in the latches are of before.
            let _ = bar.read_once(RXSTMPH);
            if state.waiting.is_none() {
                let _ = bar.read_once(TXSTMPH);
            }
            state.seen = None;
        });
        self.is_rx_on.store(is_rx_on, Relaxed);
        self.is_tx_on.store(is_tx_on, Relaxed);
        Ok(HwtstampConfig { tx: config.tx, rx })
    }

    /// Whether a packet has to be stamped when it is sent.
    #[inline(always)]
    pub(crate) fn is_wanted(&self, skb: &SkBuff) -> bool {
        self.is_tx_on.load(Relaxed) && skb.wants_timestamp()
    }

    /// Gets ready for the stamp of a packet that is about to be sent. Returns whether it is to be
    /// stamped: only one at a time can be.
    pub(crate) fn begin_tx(&self, bar: &Bar0<'_>, skb: &mut SkBuff) -> bool {
        self.with_state(|state| {
            if state.waiting.is_some() {
                self.counters.tx_hwtstamp_skipped.add(1);
                return false;
            }
            if bar.read_atomic(TSYNCTXCTL).txtt() {
                // Of a packet that was given up, or of none.
                let _ = bar.read_once(TXSTMPH);
                self.counters.tx_hwtstamp_cleared.add(1);
            }
            state.waiting = Some(Waiting {
                stamp: skb.promise_timestamp(),
                since: Instant::now(),
            });
            true
        })
    }

    /// The packet was sent.
    pub(crate) fn sent(&self) {
        self.clock.schedule_worker(0);
    }

    /// The packet could not be sent.
    pub(crate) fn cancel_tx(&self) {
        if let Some(waiting) = self.with_state(|state| state.waiting.take()) {
            waiting.stamp.give_up();
        }
    }

    /// Looks for the stamp of a packet that was sent, and reads the counter in time. Returns when
    /// to do so again.
    pub(crate) fn work(&self, bar: &Bar0<'_>) -> Option<Jiffies> {
        let (done, delay) = self.with_state(|state| {
            let Some(waiting) = &state.waiting else {
                // A NIC that is gone has nothing to count.
                let _ = state.advance(bar);
                return (None, msecs_to_jiffies(PERIOD_MS));
            };
            let waits = waiting.since.elapsed();
            let result = if bar.read_atomic(TSYNCTXCTL).txtt() {
                read_tx(bar).and_then(|stamp| state.time_of(bar, stamp))
            } else if waits > TX_TIMEOUT {
                Err(ETIMEDOUT)
            } else if waits > TX_SOON {
                return (None, 1);
            } else {
                return (None, 0);
            };
            let waited = state.waiting.take();
            (waited.map(|waiting| (waiting.stamp, result)), 0)
        });
        match done {
            Some((stamp, Ok(time))) => {
                self.counters.tx_hwtstamps.add(1);
                stamp.report(time);
            }
            Some((stamp, Err(error))) => {
                if error == ETIMEDOUT {
                    self.counters.tx_hwtstamp_timeouts.add(1);
                } else {
                    self.counters.tx_hwtstamp_invalid.add(1);
                }
                stamp.give_up();
            }
            None => (),
        }
        Some(delay)
    }

    /// Returns the time of a received frame, whose descriptor says that it has one. The latch is
    /// empty then.
    #[cold]
    #[inline(never)]
    pub(crate) fn take_rx(&self, bar: &Bar0<'_>) -> Option<u64> {
        let time = self.with_state(|state| {
            if !bar.read_atomic(TSYNCRXCTL).rxtt() {
                return Err(EINVAL);
            }
            state.seen = None;
            read_rx(bar).and_then(|stamp| state.time_of(bar, stamp))
        });
        let counter = match time {
            Ok(_) => &self.counters.rx_hwtstamps,
            Err(_) => &self.counters.rx_hwtstamp_invalid,
        };
        counter.add(1);
        time.ok()
    }

    /// Empties the latch of received frames if a stamp was left in it: its frame was lost. Once a
    /// second.
    pub(crate) fn check_up(&self, bar: &Bar0<'_>) {
        if !self.is_rx_on.load(Relaxed) {
            return;
        }
        self.with_state(|state| {
            // All ones, if the NIC is gone, are not seen twice.
            if !bar.read_atomic(TSYNCRXCTL).rxtt() {
                state.seen = None;
                return;
            }
            let low = Some(bar.read_atomic(RXSTMPL).into_raw());
            if mem::replace(&mut state.seen, low) == low {
                state.seen = None;
                let _ = bar.read_once(RXSTMPH);
                self.counters.rx_hwtstamp_cleared.add(1);
            }
        });
    }
}

/// Stamps for the frames that a poll function receives.
#[derive(Clone, Copy)]
pub(crate) struct RxStamps<'a> {
    pub(crate) ptp: &'a Ptp,
    pub(crate) bar: &'a Bar0<'a>,
}

impl RxStamps<'_> {
    /// See [`Ptp::take_rx`].
    pub(crate) fn take(self) -> Option<u64> {
        self.ptp.take_rx(self.bar)
    }
}

#[kunit_tests(ixgbe_rust_ptp)]
mod tests {
    use super::*;

    #[test]
    fn increments_are_those_of_the_cycle() {
        for (scale, tenths) in [
            (Scale::FAST, 64),
            (Scale::GIGABIT, 640),
            (Scale::SLOW, 6_400),
        ] {
            // Less than a millionth is cut off.
            let exact = (tenths << scale.shift) / 10;
            assert!(exact - u64::from(scale.increment) <= 1);
        }
    }

    #[test]
    fn increments_fit_with_any_offset() -> Result {
        let most = ScaledPpm::from_raw(250_000 << 16)?;

        assert_eq!(Scale::FAST.increment(most), 0xff_ffff);
        assert_eq!(Scale::GIGABIT.increment(most), 0xa0_0000);
        assert_eq!(Scale::SLOW.increment(most), 0xc8_0000);
        let more = ScaledPpm::from_raw(900_000 << 16)?;
        assert_eq!(Scale::SLOW.increment(more), 0xff_ffff);
        let least = ScaledPpm::from_raw(-(250_000 << 16))?;
        assert_eq!(Scale::GIGABIT.increment(least), 0x60_0000);
        Ok(())
    }

    #[test]
    fn the_scale_is_that_of_the_link() {
        assert_eq!(Scale::of(Link::Down), Scale::FAST);
        assert_eq!(Scale::of(Link::Up(10_000)), Scale::FAST);
        assert_eq!(Scale::of(Link::Up(1_000)), Scale::GIGABIT);
        assert_eq!(Scale::of(Link::Up(100)), Scale::SLOW);
    }
}
