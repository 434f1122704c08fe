// SPDX-License-Identifier: GPL-2.0
//! Receive rings: a frame in, write-backs out.

use crate::checksum;
use crate::counters::bump;
use crate::device::Device;
use crate::fault::Kind;
use crate::filter::RxConfig;
use crate::memory::{DmaError, View};
use crate::packet::{Network, SCTP, TCP, UDP, be16, parse};
use crate::regs::offset;
use crate::ring::Ring;

const RXDCTL_ENABLE: u32 = 1 << 25;
const RXDCTL_VME: u32 = 1 << 30;
const SRRCTL_DROP_EN: u32 = 1 << 28;
const SRRCTL_TYPE: u32 = 0x0e00_0000;

const STATUS_DD: u32 = 1 << 0;
const STATUS_EOP: u32 = 1 << 1;
const STATUS_VP: u32 = 1 << 3;
const STATUS_UDPCS: u32 = 1 << 4;
const STATUS_L4CS: u32 = 1 << 5;
const STATUS_IPCS: u32 = 1 << 6;
const ERROR_L4: u32 = 1 << 30;
const ERROR_IP: u32 = 1 << 31;

const TYPE_IPV4: u64 = 1 << 4;
const TYPE_IPV4_OPTIONS: u64 = 1 << 5;
const TYPE_IPV6: u64 = 1 << 6;
const TYPE_TCP: u64 = 1 << 8;
const TYPE_UDP: u64 = 1 << 9;
const TYPE_SCTP: u64 = 1 << 10;

/// What became of a frame at a ring.
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

/// What the write-back says besides lengths.
struct Report {
    /// Lower quadword of an advanced write-back.
    low: u64,
    status: u32,
    vlan: u16,
}

fn srrctl(device: &Device, queue: u32) -> u32 {
    device.regs.load(if queue < 16 {
        offset::SRRCTL + queue * 4
    } else {
        offset::SRRCTL_HIGH + queue * offset::QUEUE
    })
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
    let control = device.regs.load(offset::RXDCTL + queue * offset::QUEUE);
    if control & RXDCTL_ENABLE == 0 {
        return Outcome::Disabled;
    }
    let srrctl = srrctl(device, queue);
    let size = (srrctl & 0x1f) as usize * 1024;
    let ring = Ring::receive(&device.regs, queue);
    let (Some(ring), true) = (ring, size != 0) else {
        bump(&device.totals.malformed, 1);
        return Outcome::Disabled;
    };

    let report = report(config, control, frame);
    let frame = body(config, report.vlan_stripped(), frame, scratch);
    let needed = frame.len().div_ceil(size).max(1);
    if ring.filled() < needed {
        return if srrctl & SRRCTL_DROP_EN != 0 {
            Outcome::Drop
        } else {
            Outcome::Full
        };
    }
    let legacy = srrctl & SRRCTL_TYPE == 0;
    match write(device, view, &ring, legacy, size, frame, &report) {
        Ok(head) => {
            device.regs.store(offset::RDH + queue * offset::QUEUE, head);
            Outcome::Done(frame.len())
        }
        Err(_) => {
            bump(&device.totals.dma_errors, 1);
            Outcome::Disabled
        }
    }
}

impl Report {
    fn vlan_stripped(&self) -> bool {
        self.status & STATUS_VP != 0
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

fn report(config: &RxConfig, control: u32, frame: &[u8]) -> Report {
    let parsed = parse(frame);
    let verdict = checksum::verify(frame, &parsed);
    let mut status = STATUS_DD;
    let mut low = match parsed.network {
        Network::Other => 0,
        Network::V4 if parsed.l4 > parsed.l3 + 20 => TYPE_IPV4_OPTIONS,
        Network::V4 => TYPE_IPV4,
        Network::V6 => TYPE_IPV6,
    };
    low |= match parsed.protocol {
        Some(TCP) => TYPE_TCP,
        Some(UDP) => TYPE_UDP,
        Some(SCTP) => TYPE_SCTP,
        _ => 0,
    };
    if verdict.ip_checked {
        status |= STATUS_IPCS;
    }
    if verdict.ip_bad {
        status |= ERROR_IP;
    }
    if verdict.l4_checked {
        status |= STATUS_L4CS;
        if parsed.protocol == Some(UDP) {
            status |= STATUS_UDPCS;
        }
    }
    if verdict.l4_bad {
        status |= ERROR_L4;
    }
    if let Some(rss) = &config.rss {
        let hash = rss.hash(frame, &parsed);
        low |= u64::from(hash.value) << 32 | u64::from(hash.kind);
    }
    let tagged = be16(frame, 12) == 0x8100 && frame.len() >= 18;
    let vlan = if tagged && control & RXDCTL_VME != 0 {
        status |= STATUS_VP;
        be16(frame, 14)
    } else {
        0
    };
    Report { low, status, vlan }
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
        let mut status = report.status;
        if last {
            status |= STATUS_EOP;
        }
        let mut length = chunk.len() as u32;
        let mut ones = false;
        if last {
            (status, length, ones) = lie(device, status, length);
        }
        let (low, high) = if ones {
            (u64::MAX, u64::MAX)
        } else if legacy {
            (buffer, legacy_high(status, length, report.vlan))
        } else {
            let high = u64::from(status) | u64::from(length & 0xffff) << 32;
            (report.low, high | u64::from(report.vlan) << 48)
        };
        view.store64(at, low)?;
        // The driver looks at this half: it comes last, and in one piece.
        view.store64(at + 8, high)?;
        head = ring.next(head);
        if last {
            return Ok(head);
        }
        rest = more;
    }
}

fn legacy_high(status: u32, length: u32, vlan: u16) -> u64 {
    // Length, checksum, status byte, error byte, tag.
    let errors = u64::from(status >> 24 & 0xc0);
    u64::from(length & 0xffff)
        | u64::from(status & 0xff) << 32
        | errors << 40
        | u64::from(vlan) << 48
}

fn lie(device: &Device, mut status: u32, mut length: u32) -> (u32, u32, bool) {
    if let Some(value) = device.faults.take(Kind::RxLength) {
        length = value;
    }
    if device.faults.take(Kind::RxNoEop).is_some() {
        status &= !STATUS_EOP;
    }
    if let Some(value) = device.faults.take(Kind::RxError) {
        status |= value & 0xfff0_0000;
    }
    (status, length, device.faults.take(Kind::RxOnes).is_some())
}
