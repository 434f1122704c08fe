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
        device::{
            hwtstamp::{
                HwtstampConfig,
                RxFilter,
                TxType, //
            },
            Device, //
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
        BootTime,
        Delta,
        Instant,
        Jiffies, //
    }, //
};

use core::mem;

use crate::{
    link::Link,
    mmio::Bar0,
    regs::ptp::*,
    stats::StampCounters, //
};

use self::time::{
    counted,
    Time, //
};

mod scale;
mod time;

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

/// Milliseconds from one look to the next at a packet that is late.
const LATE_MS: u32 = 1_000;

/// Milliseconds after which the counter is read if nothing else does that. It wraps around after
/// some two hours.
const PERIOD_MS: u32 = 30_000;

/// A packet that has been sent, or is about to be, whose stamp has not come.
struct Waiting {
    stamp: TxTimestamp,
    since: Instant<BootTime>,
    /// It was given up. As long as a ring has it, its stamp may fill the latch at any time, and no
    /// other packet can be stamped.
    is_late: bool,
}

impl Waiting {
    /// Whether the next stamp may be that of the packet.
    fn has_latch(&self) -> bool {
        !self.is_late || self.stamp.is_pending()
    }
}

struct State {
    time: Time,
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

impl Ptp {
    /// A clock with the time of the system, of a NIC that does not count yet.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            clock: PtpClock::new(),
            is_tx_on: Atomic::new(false),
            is_rx_on: Atomic::new(false),
            counters: StampCounters::default(),
            state <- new_spinlock!(
                State {
                    time: Time::of_system(),
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
        self.hold_with(|time| time.hold(bar));
    }

    /// The same, of a NIC that has been reset already.
    pub(crate) fn was_reset(&self) {
        self.hold_with(Time::lose);
    }

    fn hold_with(&self, f: impl FnOnce(&mut Time)) {
        let waiting = self.with_state(|state| {
            f(&mut state.time);
            if state.waiting.as_ref().is_some_and(|it| !it.is_late) {
                self.counters.tx_hwtstamp_timeouts.add(1);
            }
            state.waiting.take()
        });
        if let Some(waiting) = waiting {
            waiting.stamp.give_up();
        }
    }

    /// Has the NIC count again, which was reset.
    pub(crate) fn count(&self, bar: &Bar0<'_>) {
        self.with_state(|state| state.time.count(bar));
    }

    /// Follows a change of the link.
    pub(crate) fn set_link(&self, bar: &Bar0<'_>, link: Link) {
        self.with_state(|state| state.time.set_link(bar, link));
    }

    /// Sets the offset of the frequency.
    pub(crate) fn adjust_frequency(&self, bar: &Bar0<'_>, offset: ScaledPpm) {
        self.with_state(|state| state.time.adjust_frequency(bar, offset));
    }

    /// Shifts the time.
    pub(crate) fn adjust(&self, nanoseconds: i64) {
        self.with_state(|state| state.time.adjust(nanoseconds));
    }

    /// Sets the time.
    pub(crate) fn set(&self, bar: &Bar0<'_>, nanoseconds: u64) -> Result {
        self.with_state(|state| state.time.set(bar, nanoseconds))
    }

    /// Reads the time.
    pub(crate) fn get(&self, bar: &Bar0<'_>, system: &mut SystemTimestamp<'_>) -> Result<u64> {
        self.with_state(|state| state.time.get(bar, system))
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
        let (stamped, over) = self.with_state(|state| {
            if state.waiting.as_ref().is_some_and(Waiting::has_latch) {
                self.counters.tx_hwtstamp_skipped.add(1);
                return (false, None);
            }
            if bar.read_atomic(TSYNCTXCTL).txtt() {
                // Of a packet that was given up, or of none.
                let _ = bar.read_once(TXSTMPH);
                self.counters.tx_hwtstamp_cleared.add(1);
            }
            let waiting = Waiting {
                stamp: skb.promise_timestamp(),
                since: Instant::now(),
                is_late: false,
            };
            (true, state.waiting.replace(waiting))
        });
        if let Some(over) = over {
            over.stamp.give_up();
        }
        stamped
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
    pub(crate) fn work(&self, bar: &Bar0<'_>, dev: &Device) -> Option<Jiffies> {
        let (done, delay) = self.with_state(|state| {
            let Some(waiting) = state.waiting.as_mut().filter(|it| it.has_latch()) else {
                // A NIC that is gone has nothing to count.
                let _ = state.time.advance(bar);
                let over = state.waiting.take().map(|late| (late.stamp, None));
                return (over, msecs_to_jiffies(PERIOD_MS));
            };
            if waiting.is_late {
                let _ = state.time.advance(bar);
                return (None, msecs_to_jiffies(LATE_MS));
            }
            let waits = waiting.since.elapsed();
            let (time, counter) = if bar.read_atomic(TSYNCTXCTL).txtt() {
                match read_tx(bar).and_then(|stamp| state.time.of_stamp(bar, stamp)) {
                    Ok(time) => (Some(time), &self.counters.tx_hwtstamps),
                    Err(_) => (None, &self.counters.tx_hwtstamp_invalid),
                }
            } else if waits > TX_TIMEOUT {
                waiting.is_late = true;
                self.counters.tx_hwtstamp_timeouts.add(1);
                return (None, 0);
            } else {
                return (None, if waits > TX_SOON { 1 } else { 0 });
            };
            counter.add(1);
            let waited = state.waiting.take();
            (waited.map(|waiting| (waiting.stamp, time)), 0)
        });
        match done {
            Some((stamp, Some(time))) => stamp.report(dev, time),
            Some((stamp, None)) => stamp.give_up(),
            None => (),
        }
        Some(delay)
    }

    /// Returns the time of a received frame, whose descriptor says that it has one. The latch is
    /// empty then.
    #[cold]
    #[inline(never)]
    pub(crate) fn take_rx(&self, bar: &Bar0<'_>) -> Option<u64> {
        self.with_state(|state| {
            let time = if bar.read_atomic(TSYNCRXCTL).rxtt() {
                state.seen = None;
                read_rx(bar)
                    .and_then(|stamp| state.time.of_stamp(bar, stamp))
                    .ok()
            } else {
                None
            };
            let counter = match time {
                Some(_) => &self.counters.rx_hwtstamps,
                None => &self.counters.rx_hwtstamp_invalid,
            };
            counter.add(1);
            time
        })
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
