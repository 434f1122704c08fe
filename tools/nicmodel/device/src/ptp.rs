// SPDX-License-Identifier: GPL-2.0
//! Time stamps (datasheet 7.9): the clock of a port, and the two latches.
//!
//! SYSTIM counts clocks of the MAC, whose period depends on the speed of the link, and moves by
//! TIMINCA. A latch keeps its first stamp until the driver has read the high half of it; frames
//! that come meanwhile have none.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use crate::device::Device;
use crate::fault::Kind;
use crate::link::Speed;
use crate::packet::{UDP, be16, parse};
use crate::regs::offset;
use crate::regs::ptp::{Etqf, Rxmtrl, Timinca, Tsyncrxctl, Tsynctxctl};

/// Parts of a tenth of a nanosecond: the units in which phases are counted.
const BILLION: i128 = 1_000_000_000;
/// Ethernet type of PTP.
const PTP: u16 = 0x88f7;
/// Filters of Ethernet types.
const ETQFS: u32 = 8;

/// The clock: its value at some time.
#[derive(Debug, Default)]
pub(crate) struct Systim {
    /// The model's time.
    since: u64,
    value: u64,
    /// The part of a step that had passed.
    phase: i128,
    /// SYSTIMH as of the last read of SYSTIML.
    high: u32,
}

/// The rate of the clock.
struct Rate {
    /// Units that pass in a nanosecond of the model.
    speed: i128,
    /// Units of a step; 0 if the clock stands still.
    step: i128,
    increment: i128,
}

impl Systim {
    /// The value, and the part of a step, at a time, which may be one before.
    fn at(&self, now: u64, rate: &Rate) -> (u64, i128) {
        if rate.step == 0 {
            return (self.value, self.phase);
        }
        let passed = i128::from(now) - i128::from(self.since);
        let phase = self.phase + passed * rate.speed;
        let moved = phase.div_euclid(rate.step) * rate.increment;
        (
            self.value.wrapping_add(moved as u64),
            phase.rem_euclid(rate.step),
        )
    }
}

/// Which message a frame holds.
#[derive(Debug, PartialEq, Eq)]
enum Message<'a> {
    Ethernet(&'a [u8]),
    Udp(u16, &'a [u8]),
}

fn message(frame: &[u8]) -> Option<Message<'_>> {
    let parsed = parse(frame);
    if parsed.protocol == Some(UDP) {
        let port = be16(frame, parsed.l4 + 2);
        return frame
            .get(parsed.l4 + 8..)
            .map(|body| Message::Udp(port, body));
    }
    frame.get(parsed.l3..).map(Message::Ethernet)
}

impl Device {
    fn rate(&self) -> Rate {
        let timinca = self.regs.get::<Timinca>();
        // Tenths of a nanosecond of one clock.
        let period = match self.speed() {
            Some(Speed::One) => 640,
            // As without a link.
            Some(Speed::Ten) | None => 64,
        };
        let drift = self.faults.lasting(Kind::Drift).unwrap_or(0) as i32;
        Rate {
            speed: 10 * (BILLION + i128::from(drift)),
            step: period * BILLION * i128::from(timinca.incperiod()),
            increment: i128::from(timinca.incvalue().value()),
        }
    }

    /// The clock at a time of the model.
    pub fn systim(&self, now: u64) -> u64 {
        self.time().at(now, &self.rate()).0
    }

    /// To be called before the rate of the clock changes.
    pub(crate) fn settle_systim(&self) {
        let now = self.clock.now();
        let mut time = self.time();
        (time.value, time.phase) = time.at(now, &self.rate());
        time.since = now;
    }

    pub(crate) fn reset_systim(&self) {
        *self.time() = Systim {
            since: self.clock.now(),
            ..Systim::default()
        };
    }

    pub(crate) fn read_systim(&self, at: u32) -> u32 {
        let now = self.clock.now();
        let rate = self.rate();
        let mut time = self.time();
        if at == offset::SYSTIMH {
            return time.high;
        }
        let value = time.at(now, &rate).0;
        time.high = (value >> 32) as u32;
        value as u32
    }

    pub(crate) fn write_systim(&self, at: u32, value: u32) {
        self.settle_systim();
        let mut time = self.time();
        time.value = if at == offset::SYSTIML {
            time.value >> 32 << 32 | u64::from(value)
        } else {
            u64::from(value) << 32 | time.value & u64::from(u32::MAX)
        };
        time.phase = 0;
    }

    /// A latch that has been read can take a stamp again.
    pub(crate) fn read_stamp(&self, at: u32) -> u32 {
        let _time = self.time();
        if at == offset::RXSTMPH {
            let control = self.regs.get::<Tsyncrxctl>();
            self.regs.set(control.with_valid(false));
        } else {
            let control = self.regs.get::<Tsynctxctl>();
            self.regs.set(control.with_valid(false));
        }
        self.regs.load(at)
    }

    pub(crate) fn write_stamping(&self, at: u32, value: u32) {
        let _time = self.time();
        let valid = self.regs.load(at) & 1;
        self.regs.store(at, value & !1 | valid);
    }

    /// Puts the clock's time at `now` into a latch, unless that has one. Returns whether it did.
    fn latch(&self, now: u64, control: u32, low: u32, high: u32) -> bool {
        if self.faults.take(Kind::NoStamp).is_some() {
            return false;
        }
        let ago = self.faults.take(Kind::OldStamp).unwrap_or(0);
        let rate = self.rate();
        let time = self.time();
        let value = self.regs.load(control);
        if value & 1 != 0 {
            return false;
        }
        let ago = u64::from(ago) * 1_000_000;
        let stamp = match now.checked_sub(ago) {
            Some(then) => time.at(then, &rate).0,
            // From before the model's time.
            None => time.at(0, &rate).0.wrapping_sub(1 << 60),
        };
        self.regs.store(low, stamp as u32);
        self.regs.store(high, (stamp >> 32) as u32);
        self.regs.store(control, value | 1);
        true
    }

    /// A frame arrives. Returns whether its descriptor is to say that there is a stamp.
    pub(crate) fn stamp_received(&self, frame: &[u8]) -> bool {
        let control = self.regs.get::<Tsyncrxctl>();
        let delay = self.faults.lasting(Kind::CableDelay).unwrap_or(0);
        let now = self.turn.load(Ordering::Relaxed) + u64::from(delay);
        control.enable()
            && self.is_stamped(control, frame)
            && self.latch(now, offset::TSYNCRXCTL, offset::RXSTMPL, offset::RXSTMPH)
            && self.faults.take(Kind::HiddenStamp).is_none()
    }

    fn is_stamped(&self, control: Tsyncrxctl, frame: &[u8]) -> bool {
        let wanted = self.regs.get::<Rxmtrl>();
        let is_wanted = |body: &[u8]| match control.kind() {
            Tsyncrxctl::L4_V1 => be16(body, 0) == 1 && body.get(32) == Some(&wanted.ctrlt()),
            Tsyncrxctl::EVENTS_V2 => {
                body.first().is_some_and(|kind| kind & 0xf < 4)
                    && body.get(1).is_some_and(|version| version & 0xf == 2)
            }
            Tsyncrxctl::L2_V2 | Tsyncrxctl::ANY_V2 => {
                body.first()
                    .is_some_and(|kind| kind & 0xf == wanted.msgt() & 0xf)
                    && body.get(1).is_some_and(|version| version & 0xf == 2)
            }
            _ => false,
        };
        match message(frame) {
            Some(Message::Udp(port, body)) => {
                control.kind() != Tsyncrxctl::L2_V2 && port == wanted.udpt() && is_wanted(body)
            }
            Some(Message::Ethernet(body)) => {
                control.kind() != Tsyncrxctl::L4_V1 && self.knows_ptp(frame) && is_wanted(body)
            }
            None => false,
        }
    }

    /// Whether a filter of Ethernet types says that this is PTP.
    fn knows_ptp(&self, frame: &[u8]) -> bool {
        let l3 = parse(frame).l3;
        (0..ETQFS).any(|i| {
            let filter = self.regs.nth::<Etqf>(i);
            filter.filter_en()
                && filter.is_1588()
                && filter.etype() == PTP
                && be16(frame, l3 - 2) == PTP
        })
    }

    /// A frame leaves, of which a stamp is asked or not.
    pub(crate) fn stamp_sent(&self, asked: bool) {
        if self.regs.get::<Tsynctxctl>().enable()
            && (asked || self.faults.take(Kind::UnaskedStamp).is_some())
        {
            let now = self.turn.load(Ordering::Relaxed);
            self.latch(now, offset::TSYNCTXCTL, offset::TXSTMPL, offset::TXSTMPH);
        }
    }

    fn time(&self) -> MutexGuard<'_, Systim> {
        self.systim.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
