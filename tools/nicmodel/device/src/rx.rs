// SPDX-License-Identifier: GPL-2.0
//! Receive rings: a frame in, write-backs out.

use arbitrary_int::traits::Integer;

use crate::checksum;
use crate::counters::bump;
use crate::descriptor::{RssType, RxInfo, RxLegacy, RxResult, RxStatus};
use crate::device::Device;
use crate::fault::Kind;
use crate::fdir::Match;
use crate::filter::RxConfig;
use crate::judge::{receive_label, rules};
use crate::memory::{DmaError, View};
use crate::packet::{Network, Parsed, SCTP, TCP, UDP, be16, parse};
use crate::regs::bits::{Psrtype, Rfctl, Rscctl, Rscdbu, Rxdctl, Srrctl};
use crate::regs::offset;
use crate::ring::{Fetched, Ring};
use crate::rsc;
use crate::rss::Hash;

mod contexts;

use self::contexts::{Arrival, Contexts, Fate};

/// The fate of a frame at a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// In guest memory; the length that was written.
    Done(usize),
    /// Part of a packet that is coalesced, and that the driver does not know of.
    Held(usize),
    /// No descriptor; the frame may wait.
    Full,
    /// No descriptor, and the queue is set to drop.
    Drop,
    /// The queue is disabled, or its registers make no sense.
    Disabled,
    /// A filter drops it.
    Filtered,
}

/// The write-back without lengths.
#[derive(Debug, Clone, Copy)]
struct Report {
    /// First quadword of an advanced write-back.
    info: RxInfo,
    status: RxStatus,
    vlan: u16,
}

/// Where a frame goes, and what a driver is told about its contents.
pub(crate) struct Sorted {
    /// The queue, unless the frame is dropped.
    pub queue: Option<u32>,
    /// The filter that has chosen it.
    pub filter: Option<Match>,
    /// It has a time stamp.
    pub stamped: bool,
    parsed: Parsed,
    hash: Option<Hash>,
}

/// Looks at the headers of a frame, which goes by a filter, else by the hash.
pub(crate) fn sort(config: &RxConfig, frame: &[u8], stamped: bool) -> Sorted {
    let parsed = parse(frame);
    let hash = config.rss.as_ref().map(|rss| rss.hash(frame, &parsed));
    let filter = config
        .director
        .as_ref()
        .and_then(|director| director.find(frame, &parsed));
    let queue = match (filter, &config.rss, hash) {
        (Some(found), _, _) => found.queue,
        (None, Some(rss), Some(hash)) => Some(rss.queue(hash)),
        _ => Some(0),
    };
    Sorted {
        queue,
        filter,
        stamped,
        parsed,
        hash,
    }
}

/// Receive queues that a frame can be sorted into.
const QUEUES: usize = 64;

/// A receive ring during a turn: its registers, and some of its descriptors, are read once.
#[derive(Debug)]
struct RxQueue {
    ring: Ring,
    /// Taken after the tail: behind an IOMMU, buffers bring mappings of their own.
    view: View,
    control: Rxdctl,
    srrctl: Srrctl,
    fetched: Fetched,
    /// RDH as the driver sees it.
    published: u32,
    /// The most descriptors of a coalesced packet; 0 if the queue does not coalesce.
    most: u32,
    /// So are segments without payload.
    acknowledges: bool,
}

impl RxQueue {
    /// None if the queue is disabled, or its registers make no sense.
    fn open(device: &Device, number: u32) -> Option<Self> {
        let control = device.regs.nth::<Rxdctl>(number);
        if !control.enable() {
            return None;
        }
        let srrctl = device.regs.nth::<Srrctl>(number);
        let ring = Ring::receive(&device.regs, number);
        let (Some(ring), true) = (ring, srrctl.bsizepacket().as_usize() != 0) else {
            bump(&device.totals.malformed, 1);
            return None;
        };
        let coalescing = device.regs.nth::<Rscctl>(number);
        let coalesces = coalescing.rscen()
            && srrctl.desctype() == Srrctl::ADVANCED
            && !device.regs.get::<Rfctl>().rsc_dis()
            && device.regs.nth::<Psrtype>(0).tcphdr();
        Some(Self {
            most: if coalesces {
                coalescing.descriptors()
            } else {
                0
            },
            acknowledges: coalesces && !device.regs.get::<Rscdbu>().rscackdis(),
            published: ring.head,
            ring,
            view: device.memory.view(),
            control,
            srrctl,
            fetched: Fetched::default(),
        })
    }

    /// Shows the driver how far the ring is used, unless it has set the head meanwhile.
    fn publish(&self, device: &Device, number: u32) {
        let at = offset::RDH + number * offset::QUEUE;
        if self.ring.head != self.published && device.regs.load(at) == self.published {
            device.regs.store(at, self.ring.head);
        }
    }

    /// Bytes of a buffer.
    fn size(&self) -> usize {
        self.srrctl.bsizepacket().as_usize() * 1024
    }

    /// Fills one descriptor after the other, of which there are enough. Returns a buffer that the
    /// card could have left, with `longest` as the limit to what it writes.
    fn write(
        &mut self,
        device: &Device,
        frame: &[u8],
        report: &Report,
        longest: usize,
    ) -> Result<Option<u64>, DmaError> {
        let view = &self.view;
        let legacy = self.srrctl.desctype() == Srrctl::LEGACY;
        let size = self.size();
        let mut left = None;
        let mut rest = frame;
        loop {
            let (chunk, more) = rest.split_at(rest.len().min(size));
            let at = self.ring.descriptor(self.ring.head);
            let [buffer, _] = self.fetched.next(view, &self.ring)?;
            view.write(buffer, chunk)?;
            if leaves_half(buffer, size.min(longest)) {
                left = Some(buffer);
            }
            let last = more.is_empty();
            let mut status = report.status.with_eop(last);
            let mut length = chunk.len() as u16;
            let mut ones = false;
            if last {
                (status, length, ones) = lie(device, status, length);
            }
            let descriptor = if ones {
                [u64::MAX; 2]
            } else if legacy {
                let high = legacy_high(status, length, report.vlan);
                [buffer, high.raw_value()]
            } else {
                let result = RxResult::ZERO
                    .with_status(status)
                    .with_pkt_len(length)
                    .with_vlan(report.vlan);
                [report.info.raw_value(), result.raw_value()]
            };
            view.store_descriptor(at, descriptor)?;
            self.ring.head = self.ring.next(self.ring.head);
            if last {
                return Ok(left);
            }
            rest = more;
        }
    }
}

/// Whether so many bytes at an address leave the second half of a page. A buffer that begins there
/// shares the page with another one.
fn leaves_half(buffer: u64, bytes: usize) -> bool {
    const PAGE: u64 = 4096;
    let start = buffer % PAGE;
    start >= PAGE / 2 && start + bytes as u64 > PAGE
}

/// The receive rings of the frames of one turn.
#[derive(Debug)]
pub(crate) struct RxQueues {
    queues: [Option<RxQueue>; QUEUES],
    /// Which of them there are, a bit for each.
    open: u64,
    /// Packets that are being coalesced, also from one turn to the next.
    contexts: Contexts,
}

impl Default for RxQueues {
    fn default() -> Self {
        Self {
            queues: [const { None }; QUEUES],
            open: 0,
            contexts: Contexts::default(),
        }
    }
}

impl RxQueues {
    /// Puts a frame into its ring.
    pub(crate) fn deliver(
        &mut self,
        device: &Device,
        config: &RxConfig,
        sorted: &Sorted,
        frame: &[u8],
        scratch: &mut Vec<u8>,
    ) -> Outcome {
        let Some(number) = sorted.queue else {
            return Outcome::Filtered;
        };
        let Some(slot) = self.queues.get_mut(number as usize) else {
            return Outcome::Disabled;
        };
        if slot.is_none() {
            *slot = RxQueue::open(device, number);
        }
        let Some(queue) = slot else {
            return Outcome::Disabled;
        };
        self.open |= 1 << number;

        let report = report(queue.control, frame, sorted);
        let frame = body(config, report.vlan_stripped(), frame, scratch);
        let needed = frame.len().div_ceil(queue.size()).max(1);
        if queue.most != 0
            && config.strip_fcs
            && let Some(look) = rsc::look(frame, report.status, queue.acknowledges)
        {
            if queue.ring.filled() < needed {
                queue.publish(device, number);
                *slot = RxQueue::open(device, number);
            }
            let Some(queue) = slot else {
                self.contexts.forget(number);
                return Outcome::Disabled;
            };
            let arrival = Arrival {
                number,
                look,
                report,
                frame,
            };
            match self.contexts.take(device, queue, &arrival) {
                Ok(Fate::Held) => return Outcome::Held(frame.len()),
                Ok(Fate::Ended) => return Outcome::Done(frame.len()),
                Ok(Fate::Alone) => {}
                Err(error) => {
                    queue.fetched.clear();
                    note_dma_error(device, number, error);
                    return Outcome::Disabled;
                }
            }
        }
        let Some(queue) = slot else {
            return Outcome::Disabled;
        };
        if queue.ring.filled() < needed {
            // The driver may have added some since.
            queue.publish(device, number);
            *slot = RxQueue::open(device, number);
        }
        let Some(queue) = slot else {
            return Outcome::Disabled;
        };
        if queue.ring.filled() < needed {
            return if queue.srrctl.drop_en() {
                Outcome::Drop
            } else {
                Outcome::Full
            };
        }
        let before = queue.ring.head;
        match queue.write(device, frame, &report, config.longest()) {
            Ok(left) => {
                if let (Some(buffer), Some(judge)) = (left, device.judge()) {
                    let queue = Some(receive_label(number));
                    judge.note(rules::RX_HALF, queue, format!("{buffer:#x}"));
                }
                Outcome::Done(frame.len())
            }
            Err(error) => {
                queue.ring.head = before;
                queue.fetched.clear();
                note_dma_error(device, number, error);
                Outcome::Disabled
            }
        }
    }

    /// Ends the coalesced packets of queues whose interrupts are due. Returns these queues, a bit
    /// for each, and when the next one is due. With `enabled` false, nothing is written any more.
    pub(crate) fn end_due(
        &mut self,
        device: &Device,
        now: u64,
        enabled: bool,
    ) -> (u64, Option<u64>) {
        if !enabled {
            self.contexts.clear();
        }
        let mut next: Option<u64> = None;
        let mut left = self.contexts.queues();
        while left != 0 {
            let number = left.trailing_zeros();
            left &= left - 1;
            if let Some(time) = device.irq.receive_held_until(&device.regs, number, now) {
                next = Some(next.map_or(time, |next| next.min(time)));
                continue;
            }
            let Some(slot) = self.queues.get_mut(number as usize) else {
                continue;
            };
            if slot.is_none() {
                *slot = RxQueue::open(device, number);
                self.open |= 1 << number;
            }
            let Some(queue) = slot else {
                self.contexts.forget(number);
                continue;
            };
            if let Err(error) = self.contexts.end(device, number, queue) {
                note_dma_error(device, number, error);
            }
        }
        (self.contexts.take_ended(), next)
    }

    /// Forgets all coalesced packets: the card was reset.
    pub(crate) fn forget(&mut self) {
        self.contexts.clear();
    }

    /// The turn ends: the registers count again.
    pub(crate) fn close(&mut self, device: &Device) {
        while self.open != 0 {
            let number = self.open.trailing_zeros();
            self.open &= self.open - 1;
            if let Some(queue) = self.queues[number as usize].take() {
                queue.publish(device, number);
            }
        }
    }
}

impl Report {
    fn vlan_stripped(&self) -> bool {
        self.status.vp()
    }
}

fn note_dma_error(device: &Device, number: u32, error: DmaError) {
    bump(&device.totals.dma_errors, 1);
    if let Some(judge) = device.judge() {
        let queue = Some(receive_label(number));
        judge.note(rules::DMA_OUTSIDE, queue, error.to_string());
    }
}

/// The bytes that go to memory: without the tag, with the FCS where the driver wants it.
fn body<'a>(config: &RxConfig, strip: bool, frame: &'a [u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
    if !strip && config.strip_fcs {
        return frame;
    }
    scratch.clear();
    if strip {
        scratch.extend_from_slice(&frame[..12]);
        scratch.extend_from_slice(&frame[16..]);
    } else {
        scratch.extend_from_slice(frame);
    }
    if !config.strip_fcs {
        scratch.extend_from_slice(&checksum::fcs(frame).to_le_bytes());
    }
    scratch
}

fn report(control: Rxdctl, frame: &[u8], sorted: &Sorted) -> Report {
    let parsed = &sorted.parsed;
    let verdict = checksum::verify(frame, parsed);
    let mut info = match parsed.network {
        Network::Other => RxInfo::ZERO,
        Network::V4 if parsed.l4 > parsed.l3 + 20 => RxInfo::ZERO.with_ipv4e(true),
        Network::V4 => RxInfo::ZERO.with_ipv4(true),
        Network::V6 => RxInfo::ZERO.with_ipv6(true),
    };
    info = match parsed.protocol {
        Some(TCP) => info.with_tcp(true),
        Some(UDP) => info.with_udp(true),
        Some(SCTP) => info.with_sctp(true),
        _ => info,
    };
    let mut status = RxStatus::ZERO
        .with_dd(true)
        .with_ipcs(verdict.ip_checked)
        .with_ipe(verdict.ip_bad)
        .with_ts(sorted.stamped)
        .with_l4cs(verdict.l4_checked)
        .with_udpcs(verdict.l4_checked && parsed.protocol == Some(UDP))
        .with_l4e(verdict.l4_bad);
    if let Some(hash) = sorted.hash {
        info = info.with_rss_hash(hash.value).with_rss_type(hash.kind);
    }
    if let Some(report) = sorted.filter.and_then(|filter| filter.report) {
        info = info.with_rss_hash(report).with_rss_type(RssType::Filter);
        status = status.with_flm(true);
    }
    let tagged = be16(frame, 12) == 0x8100 && frame.len() >= 18;
    let vlan = if tagged && control.vme() {
        status = status.with_vp(true);
        be16(frame, 14)
    } else {
        0
    };
    Report { info, status, vlan }
}

fn legacy_high(status: RxStatus, length: u16, vlan: u16) -> RxLegacy {
    RxLegacy::ZERO
        .with_length(length)
        .with_status(status.raw_value() as u8)
        .with_l4e(status.l4e())
        .with_ipe(status.ipe())
        .with_vlan(vlan)
}

/// Status and length under the faults that are armed, and whether the write-back is all ones.
fn lie(device: &Device, mut status: RxStatus, mut length: u16) -> (RxStatus, u16, bool) {
    if let Some(value) = device.faults.take(Kind::RxLength) {
        length = value as u16;
    }
    if device.faults.take(Kind::RxNoEop).is_some() {
        status = status.with_eop(false);
    }
    if let Some(value) = device.faults.take(Kind::RxError) {
        let errors = RxStatus::new_with_raw_value(value).errors();
        status = status.with_errors(status.errors() | errors);
    }
    (status, length, device.faults.take(Kind::RxOnes).is_some())
}
