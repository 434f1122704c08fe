// SPDX-License-Identifier: GPL-2.0
//! Receive side coalescing (data sheet 7.11): the segments that the card joins, and the rules by
//! which it does so.
//!
//! A context is a packet that the card has begun to write to a ring, and to which it appends the
//! segments that follow in the same connection. [`rx`](crate::rx) has the ring's side of it.

use crate::checksum::{finish, insert_ipv4, sum};
use crate::descriptor::RxStatus;
use crate::packet::{Network, TCP, parse, put_be16};

/// Contexts of a port.
pub(crate) const CONTEXTS: usize = 32;
/// The most packets that begin in one descriptor: RSCCNT counts no more.
pub(crate) const PACKETS: u8 = 14;
/// The most bytes of a packet from the IP header on: its length has 16 bits.
const LONGEST: usize = u16::MAX as usize;

const ACK: u8 = 0x10;
const PSH: u8 = 0x08;
/// A timestamp behind two bytes of padding: the one option that the card knows.
const STAMP: [u8; 4] = [1, 1, 8, 10];
const TCP_HEADER: usize = 20;
const STAMPED_HEADER: usize = TCP_HEADER + 12;
/// Both bits of ECN: congestion was experienced.
const CE: u8 = 3;

/// A connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flow {
    addresses: [u8; 8],
    ports: [u8; 4],
}

/// A segment that may be part of a larger packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    /// Offsets of the headers, and of the payload.
    l3: usize,
    l4: usize,
    pub(crate) payload: usize,
    seq: u32,
    service: u8,
    /// The last of its kind: it has been pushed.
    pub(crate) pushed: bool,
}

/// The card's look at a frame for a queue that coalesces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) flow: Flow,
    /// None if the frame stays alone.
    pub(crate) segment: Option<Segment>,
}

fn array<const N: usize>(frame: &[u8], at: usize) -> Option<[u8; N]> {
    frame.get(at..at + N)?.try_into().ok()
}

/// Looks at a frame as it goes to memory, with the verdict on its checksums. None if it is not one
/// of TCP over IPv4. With `acknowledged`, segments without payload are joined, too.
pub(crate) fn look(frame: &[u8], status: RxStatus, acknowledged: bool) -> Option<Look> {
    let parsed = parse(frame);
    if parsed.network != Network::V4 || parsed.protocol != Some(TCP) {
        return None;
    }
    let (l3, l4) = (parsed.l3, parsed.l4);
    let header = frame.get(l4..parsed.end)?;
    let flow = Flow {
        addresses: array(frame, l3 + 12)?,
        ports: array(header, 0)?,
    };
    let seq = u32::from_be_bytes(array(header, 4)?);
    let [offset, flags]: [u8; 2] = array(header, 12)?;
    let length = usize::from(offset >> 4) * 4;
    let payload = l4 + length;
    let service = *frame.get(l3 + 1)?;

    let plain = match length {
        TCP_HEADER => true,
        STAMPED_HEADER => array(header, TCP_HEADER) == Some(STAMP),
        _ => false,
    };
    let good = plain
        && l4 == l3 + 20
        && payload <= parsed.end
        && (acknowledged || payload < parsed.end)
        // Padding would become part of the data.
        && parsed.end == frame.len()
        && status.ipcs()
        && status.l4cs()
        && !status.ipe()
        && !status.l4e()
        // The reserved bits, and one more flag, are in the byte before.
        && offset & 0xf == 0
        && flags & !PSH == ACK
        && service & CE != CE;
    Some(Look {
        flow,
        segment: good.then_some(Segment {
            l3,
            l4,
            payload,
            seq,
            service,
            pushed: flags & PSH != 0,
        }),
    })
}

/// The headers of a packet that grows.
#[derive(Debug)]
pub(crate) struct Headers {
    pub(crate) flow: Flow,
    first: Segment,
    /// All of them, as they go to memory.
    bytes: Vec<u8>,
    /// The tag that was stripped.
    vlan: Option<u16>,
    /// The sequence number of the next segment.
    next: u32,
    /// Bytes of the packet, headers and all.
    length: usize,
}

impl Headers {
    /// Begins with the first segment.
    pub(crate) fn new(flow: Flow, segment: Segment, frame: &[u8], vlan: Option<u16>) -> Self {
        let payload = frame.len() - segment.payload;
        Self {
            flow,
            first: segment,
            bytes: frame[..segment.payload].to_vec(),
            vlan,
            next: segment.seq.wrapping_add(payload as u32),
            length: frame.len(),
        }
    }

    /// Whether a segment of the same connection goes on where this one ends, and is alike.
    pub(crate) fn takes(&self, segment: &Segment, frame: &[u8], vlan: Option<u16>) -> bool {
        let payload = frame.len() - segment.payload;
        segment.seq == self.next
            && segment.payload == self.first.payload
            && segment.l3 == self.first.l3
            && segment.service == self.first.service
            && vlan == self.vlan
            && frame[..segment.l3] == self.bytes[..segment.l3]
            && self.length + payload - self.first.l3 <= LONGEST
    }

    /// Takes over a segment: the acknowledgement, window and timestamp are those of the last one.
    pub(crate) fn append(&mut self, segment: &Segment, frame: &[u8]) {
        let payload = frame.len() - segment.payload;
        let l4 = self.first.l4;
        self.next = self.next.wrapping_add(payload as u32);
        self.length += payload;
        for at in [
            l4 + 8..l4 + 12,
            l4 + 14..l4 + 16,
            l4 + TCP_HEADER..self.first.payload,
        ] {
            self.bytes[at.clone()].copy_from_slice(&frame[at]);
        }
        self.bytes[l4 + 13] |= frame[l4 + 13] & PSH;
        // Not the checksum of TCP: the card does not calculate one (7.11.5).
        let total = (self.length - self.first.l3) as u16;
        put_be16(&mut self.bytes, self.first.l3 + 2, total);
        insert_ipv4(&mut self.bytes, self.first.l3, 20);
        debug_assert_eq!(
            finish(sum(&self.bytes[self.first.l3..l4], 0)),
            0,
            "a right checksum"
        );
    }

    /// The bytes of the headers as they are now.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests;
