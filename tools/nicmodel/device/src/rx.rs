// SPDX-License-Identifier: GPL-2.0
//! Receive rings: a frame in, write-backs out.

use arbitrary_int::traits::Integer;

use crate::checksum;
use crate::counters::bump;
use crate::descriptor::{RxInfo, RxLegacy, RxResult, RxStatus};
use crate::device::Device;
use crate::fault::Kind;
use crate::filter::RxConfig;
use crate::judge::{receive_label, rules};
use crate::memory::{DmaError, View};
use crate::packet::{Network, SCTP, TCP, UDP, be16, parse};
use crate::regs::bits::{Rxdctl, Srrctl};
use crate::regs::offset;
use crate::ring::Ring;

/// The fate of a frame at a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// In guest memory; the length that was written.
    Done(usize),
    /// No descriptor; the frame may wait.
    Full,
    /// No descriptor, and the queue is set to drop.
    Drop,
    /// The queue is disabled, or its registers make no sense.
    Disabled,
}

/// The write-back without lengths.
struct Report {
    /// First quadword of an advanced write-back.
    info: RxInfo,
    status: RxStatus,
    vlan: u16,
}

/// Queue of a frame.
pub(crate) fn queue_of(config: &RxConfig, frame: &[u8]) -> u32 {
    config
        .rss
        .as_ref()
        .map_or(0, |rss| rss.queue(rss.hash(frame, &parse(frame))))
}

/// Puts a frame into the ring of `queue`.
pub(crate) fn deliver(
    device: &Device,
    view: &View,
    config: &RxConfig,
    queue: u32,
    frame: &[u8],
    scratch: &mut Vec<u8>,
) -> Outcome {
    let control = device.regs.nth::<Rxdctl>(queue);
    if !control.enable() {
        return Outcome::Disabled;
    }
    let srrctl = device.regs.nth::<Srrctl>(queue);
    let size = srrctl.bsizepacket().as_usize() * 1024;
    let ring = Ring::receive(&device.regs, queue);
    let (Some(ring), true) = (ring, size != 0) else {
        bump(&device.totals.malformed, 1);
        return Outcome::Disabled;
    };

    let report = report(config, control, frame);
    let frame = body(config, report.vlan_stripped(), frame, scratch);
    let needed = frame.len().div_ceil(size).max(1);
    if ring.filled() < needed {
        return if srrctl.drop_en() {
            Outcome::Drop
        } else {
            Outcome::Full
        };
    }
    let legacy = srrctl.desctype() == Srrctl::LEGACY;
    match write(device, view, &ring, legacy, size, frame, &report) {
        Ok(head) => {
            device.regs.store(offset::RDH + queue * offset::QUEUE, head);
            Outcome::Done(frame.len())
        }
        Err(error) => {
            bump(&device.totals.dma_errors, 1);
            if let Some(judge) = device.judge() {
                let queue = Some(receive_label(queue));
                judge.note(rules::DMA_OUTSIDE, queue, error.to_string());
            }
            Outcome::Disabled
        }
    }
}

impl Report {
    fn vlan_stripped(&self) -> bool {
        self.status.vp()
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

fn report(config: &RxConfig, control: Rxdctl, frame: &[u8]) -> Report {
    let parsed = parse(frame);
    let verdict = checksum::verify(frame, &parsed);
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
        .with_l4cs(verdict.l4_checked)
        .with_udpcs(verdict.l4_checked && parsed.protocol == Some(UDP))
        .with_l4e(verdict.l4_bad);
    if let Some(rss) = &config.rss {
        let hash = rss.hash(frame, &parsed);
        info = info.with_rss_hash(hash.value).with_rss_type(hash.kind);
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

/// Fills one descriptor after the other; returns the new head.
fn write(
    device: &Device,
    view: &View,
    ring: &Ring,
    legacy: bool,
    size: usize,
    frame: &[u8],
    report: &Report,
) -> Result<u32, DmaError> {
    let mut head = ring.head;
    let mut rest = frame;
    loop {
        let (chunk, more) = rest.split_at(rest.len().min(size));
        let at = ring.descriptor(head);
        let buffer = view.load64(at)?;
        view.write(buffer, chunk)?;
        let last = more.is_empty();
        let mut status = report.status.with_eop(last);
        let mut length = chunk.len() as u16;
        let mut ones = false;
        if last {
            (status, length, ones) = lie(device, status, length);
        }
        let (low, high) = if ones {
            (u64::MAX, u64::MAX)
        } else if legacy {
            (buffer, legacy_high(status, length, report.vlan).raw_value())
        } else {
            let result = RxResult::ZERO
                .with_status(status)
                .with_pkt_len(length)
                .with_vlan(report.vlan);
            (report.info.raw_value(), result.raw_value())
        };
        view.store64(at, low)?;
        // Drivers poll this half: it is written last, and in one store.
        view.store64(at + 8, high)?;
        head = ring.next(head);
        if last {
            return Ok(head);
        }
        rest = more;
    }
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
