// SPDX-License-Identifier: GPL-2.0
//! Transmit rings: descriptors in, frames out.

use crate::checksum::{ends_with_fcs, finish, sum};
use crate::counters::bump;
use crate::descriptor::{TxContextHigh, TxContextLow, TxData, TxLegacy, TxType};
use crate::device::Device;
use crate::fault::Kind;
use crate::judge::{Packet, rules, transmit_label};
use crate::memory::{DmaError, View};
use crate::packet::{MIN_FRAME, put_be16};
use crate::regs::bits::{Dtxtcpflgh, Dtxtcpflgl, Hlreg0, Tdwbal, Txdctl};
use crate::regs::offset;
use crate::ring::{Fetched, Ring};
use crate::tso::{Context, FlagMasks, Nonsense, checksums, segment};

/// The reported status: the upper half of a data descriptor with nothing but DD.
const DONE: u32 = (TxData::ZERO.with_dd(true).raw_value() >> 32) as u32;

/// Largest send that can be cut into segments.
pub const MAX_SEND: usize = 256 * 1024;
/// Largest frame.
pub(crate) const MAX_FRAME: usize = 15 * 1024 + 512;
/// Largest buffer of an advanced descriptor. The model sends larger ones.
pub(crate) const MAX_BUFFER: usize = 16 * 1024;
/// Smallest segment: the card's limit is of this order, and without one a single send could
/// become a quarter of a million frames.
pub(crate) const MIN_MSS: usize = 32;
/// Most descriptors of one packet whose status is reported with its end.
const MAX_REPORTS: usize = 256;
/// Bytes of a run's budget that a descriptor costs.
const DESCRIPTOR_COST: usize = 64;
/// Bytes of the budget that a frame costs besides its own.
const FRAME_COST: usize = 128;

/// Bytes of a turn's budget that a frame of one descriptor costs.
pub(crate) const fn cost_of(length: usize) -> usize {
    DESCRIPTOR_COST + FRAME_COST + length
}

/// State of a transmit queue between descriptors.
#[derive(Debug, Default)]
pub(crate) struct TxQueue {
    contexts: [Context; 2],
    /// Which contexts were sent.
    sent_contexts: [bool; 2],
    /// Data of the packet whose last descriptor has not come yet.
    data: Vec<u8>,
    /// The first data descriptor of that packet.
    first: Option<TxData>,
    /// Data descriptors of that packet.
    parts: usize,
    /// Bytes of the largest buffer of that packet.
    largest: usize,
    /// The packet cannot be sent: too long, or not in memory.
    broken: bool,
    /// Descriptors of that packet that want their status reported.
    report: Vec<u64>,
    head: u32,
    fetched: Fetched,
}

/// The result of a run of a queue.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Progress {
    /// Descriptors consumed.
    pub descriptors: usize,
    /// Something was reported: raise the cause.
    pub reported: bool,
}

impl TxQueue {
    fn forget_packet(&mut self) {
        self.data.clear();
        self.first = None;
        self.parts = 0;
        self.largest = 0;
        self.broken = false;
        self.report.clear();
    }

    #[cfg(test)]
    pub(crate) fn gathered(&self) -> usize {
        self.data.len()
    }

    /// As after reset.
    pub(crate) fn reset(&mut self) {
        self.forget_packet();
        self.contexts = Default::default();
        self.sent_contexts = Default::default();
        self.head = 0;
    }

    /// Whether the driver has enabled the queue.
    pub(crate) fn enabled(device: &Device, queue: u32) -> bool {
        device.regs.nth::<Txdctl>(queue).enable()
    }

    /// Whether the queue has something to do, cheaply.
    pub(crate) fn pending(device: &Device, queue: u32) -> bool {
        let base = queue * offset::QUEUE;
        device.regs.load(offset::TDT + base) != device.regs.load(offset::TDH + base)
            && Self::enabled(device, queue)
    }

    /// Sends queued packets until `budget` (in bytes) is used up; one packet may overdraw it.
    pub(crate) fn run(
        &mut self,
        device: &Device,
        queue: u32,
        scratch: &mut Vec<u8>,
        budget: &mut usize,
        out: &mut dyn FnMut(u32, &[u8]),
    ) -> Progress {
        let mut progress = Progress::default();
        let Some(mut ring) = Ring::transmit(&device.regs, queue) else {
            bump(&device.totals.malformed, 1);
            return progress;
        };
        // After the tail: behind an IOMMU, packets bring mappings of their own.
        let view = &device.memory.view();
        if ring.head != self.head {
            // The driver set the ring up anew.
            self.forget_packet();
            self.head = ring.head;
        }
        self.fetched.clear();
        let mut cost = 0;
        while self.head != ring.tail && cost < *budget {
            cost += DESCRIPTOR_COST;
            let mut counted = |queue: u32, frame: &[u8]| {
                cost += frame.len() + FRAME_COST;
                out(queue, frame);
            };
            ring.head = self.head;
            match self.step(device, view, &ring, queue, scratch, &mut counted) {
                Ok(reported) => progress.reported |= reported,
                Err(error) => {
                    bump(&device.totals.dma_errors, 1);
                    note(device, rules::DMA_OUTSIDE, queue, || error.to_string());
                    break;
                }
            }
            progress.descriptors += 1;
        }
        *budget = budget.saturating_sub(cost);
        if progress.descriptors != 0 {
            self.publish_head(device, view, queue);
        }
        progress
    }

    fn publish_head(&self, device: &Device, view: &View, queue: u32) {
        let base = queue * offset::QUEUE;
        let head = device.faults.take(Kind::TxHead).unwrap_or(self.head);
        device.regs.store(offset::TDH + base, self.head);
        let low = device.regs.nth::<Tdwbal>(queue);
        if low.head_wb_en() {
            let high = device.regs.load(offset::TDWBAH + base);
            let at = u64::from(high) << 32 | u64::from(low.address());
            if let Err(error) = view.store32(at, head) {
                bump(&device.totals.dma_errors, 1);
                note(device, rules::DMA_OUTSIDE, queue, || error.to_string());
            }
        }
    }

    /// Consumes one descriptor; true when a status was reported.
    fn step(
        &mut self,
        device: &Device,
        view: &View,
        ring: &Ring,
        queue: u32,
        scratch: &mut Vec<u8>,
        out: &mut dyn FnMut(u32, &[u8]),
    ) -> Result<bool, DmaError> {
        let at = ring.descriptor(self.head);
        if self.fetched.rest().is_empty() {
            self.fetched.fetch(view, ring)?;
            // All packets begin to travel before the first one is needed.
            for [buffer, _] in self.fetched.rest() {
                view.touch(*buffer);
            }
        }
        let [low, raw] = self.fetched.next(view, ring)?;
        let high = TxData::new_with_raw_value(raw);
        self.head = ring.next(self.head);
        if high.dext() {
            match high.dtyp() {
                Ok(TxType::Context) => {
                    let low = TxContextLow::new_with_raw_value(low);
                    let high = TxContextHigh::new_with_raw_value(raw);
                    self.contexts[usize::from(high.idx())] = Context::decode(low, high);
                    self.sent_contexts[usize::from(high.idx())] = true;
                    return Ok(false);
                }
                Ok(TxType::Data) => {}
                Err(_) => {
                    bump(&device.totals.malformed, 1);
                    note(device, rules::TX_TYPE, queue, || format!("{raw:#018x}"));
                    return Ok(false);
                }
            }
        }
        let first = *self.first.get_or_insert(high);
        self.parts += 1;
        let length = usize::from(high.dtalen());
        self.largest = self.largest.max(length);
        self.gather(device, view, queue, low, length);
        if high.rs() {
            if !high.eop() {
                note(device, rules::TX_RS, queue, || format!("{raw:#018x}"));
            }
            self.report.push(at + 12);
        }
        if !high.eop() {
            if self.report.len() > MAX_REPORTS {
                // No driver needs that many: report these and go on.
                return Ok(self.write_reports(device, view, queue));
            }
            return Ok(false);
        }
        self.judge(device, queue, first, high.rs());
        let sent = if self.broken {
            Err(Nonsense)
        } else if first.dext() {
            self.emit(device, queue, first, scratch, out)
        } else {
            self.emit_legacy(queue, TxLegacy::new_with_raw_value(raw), out)
        };
        match sent {
            Ok(()) => device.stamp_sent(first.dext() && first.tstamp()),
            Err(Nonsense) => bump(&device.totals.malformed, 1),
        }
        let reported = self.write_reports(device, view, queue);
        self.forget_packet();
        Ok(reported)
    }

    fn write_reports(&mut self, device: &Device, view: &View, queue: u32) -> bool {
        let reported = !self.report.is_empty();
        for at in self.report.drain(..) {
            if device.faults.take(Kind::TxNoDone).is_some() {
                continue;
            }
            if let Err(error) = report(device, view, at) {
                bump(&device.totals.dma_errors, 1);
                note(device, rules::DMA_OUTSIDE, queue, || error.to_string());
            }
        }
        reported
    }

    /// Shows the packet to the judge.
    fn judge(&self, device: &Device, queue: u32, first: TxData, reported: bool) {
        let Some(judge) = device.judge() else {
            return;
        };
        let context = usize::from(first.idx());
        let packet = Packet {
            first,
            data: &self.data,
            descriptors: self.parts,
            largest: self.largest,
            wthresh: device.regs.nth::<Txdctl>(queue).wthresh().value().into(),
            reported,
            context: self.sent_contexts[context].then_some(self.contexts[context]),
            appends_fcs: device.regs.get::<Hlreg0>().txcrcen(),
            pads: device.regs.get::<Hlreg0>().txpaden(),
        };
        if !self.broken {
            judge.packet(queue, &packet);
        }
    }

    fn gather(&mut self, device: &Device, view: &View, queue: u32, address: u64, length: usize) {
        let start = self.data.len();
        if self.broken || start + length > MAX_SEND {
            self.broken = true;
            return;
        }
        self.data.resize(start + length, 0);
        if view.read(address, &mut self.data[start..]).is_err() {
            bump(&device.totals.dma_errors, 1);
            note(device, rules::DMA_OUTSIDE, queue, || {
                format!("{length} bytes at {address:#x}")
            });
            self.broken = true;
        }
    }

    fn emit(
        &mut self,
        device: &Device,
        queue: u32,
        first: TxData,
        scratch: &mut Vec<u8>,
        out: &mut dyn FnMut(u32, &[u8]),
    ) -> Result<(), Nonsense> {
        let context = self.contexts[usize::from(first.idx())];
        let tag = first.vle().then_some(context.vlan);
        if first.tse() {
            let low = device.regs.get::<Dtxtcpflgl>();
            let masks = FlagMasks {
                first: low.first_seg().value(),
                middle: low.mid_seg().value(),
                last: device.regs.get::<Dtxtcpflgh>().last_seg().value(),
            };
            return segment(&self.data, &context, masks, scratch, |frame| {
                finish_frame(frame, tag);
                out(queue, frame);
            });
        }
        let (ip, transport) = (first.ixsm(), first.txsm());
        if ip || transport {
            checksums(&mut self.data, &context, ip, transport)?;
        }
        if !first.ifcs() && ends_with_fcs(&self.data) {
            // Frames have none here.
            self.data.truncate(self.data.len() - 4);
        }
        self.send_one(queue, tag, out)
    }

    /// Legacy descriptors: the last one has the requests.
    fn emit_legacy(
        &mut self,
        queue: u32,
        last: TxLegacy,
        out: &mut dyn FnMut(u32, &[u8]),
    ) -> Result<(), Nonsense> {
        if last.ic() {
            let start = usize::from(last.css());
            let field = usize::from(last.cso());
            if start >= self.data.len() || field + 2 > self.data.len() {
                return Err(Nonsense);
            }
            let value = finish(sum(&self.data[start..], 0));
            put_be16(&mut self.data, field, value);
        }
        let tag = last.vle().then_some(last.vlan());
        self.send_one(queue, tag, out)
    }

    fn send_one(
        &mut self,
        queue: u32,
        tag: Option<u16>,
        out: &mut dyn FnMut(u32, &[u8]),
    ) -> Result<(), Nonsense> {
        if self.data.len() < crate::packet::ETH_HEADER || self.data.len() > MAX_FRAME {
            return Err(Nonsense);
        }
        finish_frame(&mut self.data, tag);
        out(queue, &self.data);
        Ok(())
    }
}

/// Reports the status of the descriptor whose upper status word is at `at`.
fn report(device: &Device, view: &View, at: u64) -> Result<(), DmaError> {
    if let Some(judge) = device.judge() {
        // A card writes back all of the descriptor, and only the status has a meaning.
        view.store64(at - 12, judge.garbage())?;
        view.store32(at - 4, 0)?;
    }
    view.store32(at, DONE)
}

fn note(device: &Device, rule: &'static str, queue: u32, detail: impl FnOnce() -> String) {
    if let Some(judge) = device.judge() {
        judge.note(rule, Some(transmit_label(queue)), detail());
    }
}

/// Inserts the VLAN tag, and pads to the smallest frame.
fn finish_frame(frame: &mut Vec<u8>, tag: Option<u16>) {
    if let Some(tag) = tag {
        let tag = tag.to_be_bytes();
        frame.splice(12..12, [0x81, 0x00, tag[0], tag[1]]);
    }
    if frame.len() < MIN_FRAME {
        frame.resize(MIN_FRAME, 0);
    }
}
