// SPDX-License-Identifier: GPL-2.0
//! A run of the generator with its checker: every frame is accounted for one by one.

use nicmodel_device::port::Loss;

use crate::answer::{Damages, Losses, Report};
use crate::frames::{Damage, Maker, Mark, compare, mark, of_another_run, resembles};
use crate::pace::{Pace, Times};
use crate::spec::Generate;

const MS: u64 = 1_000_000;
/// Pause after the port refused frames, so that a closed port does not eat the whole run.
const REFUSED_PAUSE: u64 = MS;
/// Frames sent into a refusing port before the pause.
const REFUSED_BURST: u32 = 32;
/// Frames made in one turn of the engine, which must be short.
const BATCH: u32 = 16;

/// One run.
#[derive(Debug)]
pub(crate) struct Run {
    pub id: u16,
    pub spec: Generate,
    maker: Maker,
    started: u64,
    first_sent: Option<u64>,
    last_back: u64,
    last_event: u64,
    resume: u64,
    refused: u32,
    sent: u32,
    /// Frames that came back, each counted once.
    back: u32,
    lost: u32,
    /// Frames under way that the window no longer counts.
    written_off: u32,
    /// Frames before this one may have been written off.
    written_off_until: u32,
    forwarded: u32,
    losses: [u32; 4],
    duplicated: u64,
    damaged: u64,
    damage: Damages,
    reordered: u64,
    other: u64,
    seen: Vec<u64>,
    last: Vec<Option<u32>>,
    scratch: Vec<u8>,
    pace: Pace,
    times: Option<Times>,
}

impl Run {
    pub(crate) fn new(spec: Generate, id: u16, port_mac: [u8; 6], now: u64) -> Self {
        let dst_mac = spec.dst_mac.map_or(port_mac, |mac| mac.0);
        Self {
            id,
            maker: Maker::new(&spec, id, dst_mac),
            started: now,
            first_sent: None,
            last_back: now,
            last_event: now,
            resume: 0,
            refused: 0,
            sent: 0,
            back: 0,
            lost: 0,
            written_off: 0,
            written_off_until: 0,
            forwarded: 0,
            losses: [0; 4],
            duplicated: 0,
            damaged: 0,
            damage: Damages::default(),
            reordered: 0,
            other: 0,
            seen: vec![0; spec.count.div_ceil(64) as usize],
            last: vec![None; usize::from(spec.flows)],
            scratch: Vec::new(),
            pace: Pace::new(spec.rate),
            times: spec.latency.then(Times::default),
            spec,
        }
    }

    fn under_way(&self) -> u32 {
        self.sent.saturating_sub(self.back + self.lost)
    }

    /// How many frames may go out now.
    pub(crate) fn allowance(&mut self, now: u64) -> u32 {
        if now < self.resume {
            return 0;
        }
        let due = self.pace.due(now).min(BATCH);
        let left = (self.spec.count - self.sent).min(due);
        if self.spec.window == 0 {
            return left;
        }
        self.written_off = self.written_off.min(self.under_way());
        let open = self.under_way() - self.written_off;
        let stall = self.spec.stall_ms.saturating_mul(MS);
        if open >= self.spec.window && now.saturating_sub(self.last_event) > stall {
            self.written_off += open;
            self.written_off_until = self.sent;
            self.last_event = now;
        }
        let open = self.under_way() - self.written_off;
        self.spec.window.saturating_sub(open).min(left)
    }

    /// The next frame.
    pub(crate) fn next(&mut self, now: u64, frame: &mut Vec<u8>) {
        self.maker.make(self.sent, frame);
        self.sent += 1;
        self.pace.sent(now);
        if let Some(times) = &mut self.times {
            times.sent(now);
        }
        self.first_sent.get_or_insert(now);
        self.last_event = now;
    }

    /// The port had no room for the next frame.
    pub(crate) fn held(&mut self, now: u64) {
        self.pace.held(now);
    }

    /// A frame of the run is known to be lost. False: stop sending for a moment.
    pub(crate) fn lose(&mut self, loss: Loss, now: u64) -> bool {
        self.lost += 1;
        self.losses[loss as usize] += 1;
        if !matches!(loss, Loss::Disabled | Loss::LinkDown) {
            return true;
        }
        self.refused += 1;
        if self.refused < REFUSED_BURST {
            return true;
        }
        self.refused = 0;
        self.resume = now + REFUSED_PAUSE;
        false
    }

    /// A frame left port `to`; `link` says whether anything was there to carry it.
    pub(crate) fn check(&mut self, frame: &[u8], link: bool, now: u64) {
        let Some(mark) = self.own(frame) else {
            if resembles(&self.spec, frame) && !of_another_run(frame, self.id) {
                // It cannot be identified, but it is one of those under way.
                if self.under_way() != 0 {
                    self.back += 1;
                }
                self.damaged += 1;
                self.damage.count(Damage::Payload);
            } else {
                self.other += 1;
            }
            return;
        };
        let (word, bit) = ((mark.sequence / 64) as usize, 1_u64 << (mark.sequence % 64));
        if self.seen[word] & bit != 0 {
            self.duplicated += 1;
            return;
        }
        self.seen[word] |= bit;
        self.last_event = now;
        if mark.sequence < self.written_off_until {
            self.written_off = self.written_off.saturating_sub(1);
        }
        if !link {
            self.lost += 1;
            self.losses[Loss::LinkDown as usize] += 1;
            return;
        }
        self.back += 1;
        self.last_back = now;
        if let Some(times) = &mut self.times {
            times.back(mark.sequence, now);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        self.maker
            .expect(mark.sequence, &self.spec, frame, &mut scratch);
        match compare(frame, &scratch) {
            None => self.forwarded += 1,
            Some(damage) => {
                self.damaged += 1;
                self.damage.count(damage);
            }
        }
        self.scratch = scratch;
        let last = &mut self.last[usize::from(mark.flow)];
        match *last {
            Some(highest) if highest > mark.sequence => self.reordered += 1,
            _ => *last = Some(mark.sequence),
        }
    }

    fn own(&self, frame: &[u8]) -> Option<Mark> {
        mark(frame).filter(|mark| self.maker.consistent(mark) && mark.sequence < self.sent)
    }

    /// Whether there is nothing left to wait for.
    pub(crate) fn finished(&self, now: u64) -> bool {
        let drained = self.sent == self.spec.count
            && (self.under_way() == 0
                || now.saturating_sub(self.last_event) > self.spec.drain_ms.saturating_mul(MS));
        drained || self.timed_out(now)
    }

    fn timed_out(&self, now: u64) -> bool {
        now.saturating_sub(self.started) > self.spec.timeout_ms.saturating_mul(MS)
    }

    /// When [`Self::finished`] or the allowance may change without a frame coming.
    pub(crate) fn deadline(&self, now: u64) -> u64 {
        let next = if now < self.resume {
            self.resume
        } else {
            (now + MS).min(self.pace.next(now))
        };
        next.max(now + 1)
    }

    /// The answer to the request.
    pub(crate) fn report(&self, now: u64) -> Report {
        let seconds = self
            .last_back
            .saturating_sub(self.first_sent.unwrap_or(now)) as f64
            / 1e9;
        let pps = if seconds > 0.0 {
            f64::from(self.forwarded) / seconds
        } else {
            0.0
        };
        let loss = |loss: Loss| self.losses[loss as usize];
        Report {
            sent: self.sent,
            forwarded: self.forwarded,
            lost: Losses {
                no_rx_descriptor: loss(Loss::NoDescriptor),
                rx_disabled: loss(Loss::Disabled),
                filtered: loss(Loss::Filtered),
                link_down: loss(Loss::LinkDown),
                in_guest: self.under_way(),
            },
            duplicated: self.duplicated,
            damaged: self.damaged,
            damage: self.damage,
            reordered: self.reordered,
            other: self.other,
            seconds,
            pps: pps.round(),
            timed_out: self.sent < self.spec.count,
            offered_pps: self.pace.offered().round(),
            taken_pps: self.pace.taken().map(f64::round),
            latency_ns: self.times.as_ref().map(Times::report),
        }
    }
}

impl Damages {
    fn count(&mut self, damage: Damage) {
        *match damage {
            Damage::Length => &mut self.length,
            Damage::Mac => &mut self.mac,
            Damage::Ttl => &mut self.ttl,
            Damage::IpChecksum => &mut self.ip_checksum,
            Damage::Payload => &mut self.payload,
        } += 1;
    }
}

#[cfg(test)]
mod tests;
