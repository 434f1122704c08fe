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
mod tests {
    use super::*;
    use crate::packet::be16;
    use crate::testing::tcp_frame;

    fn good() -> RxStatus {
        RxStatus::ZERO.with_ipcs(true).with_l4cs(true)
    }

    fn is_candidate(frame: &[u8]) -> bool {
        look(frame, good(), false)
            .expect("TCP over IPv4")
            .segment
            .is_some()
    }

    #[test]
    fn plain_segments_are_joined() {
        assert!(is_candidate(&tcp_frame(1, &[7; 100], false)));
        assert!(is_candidate(&tcp_frame(1, &[7; 100], true)));
    }

    #[test]
    fn segments_stay_alone_for_a_reason() {
        let frame = tcp_frame(1, &[7; 100], true);
        let changed = |at: usize, value: u8| {
            let mut frame = frame.clone();
            frame[at] = value;
            frame
        };
        // Flags: FIN, SYN, RST, URG, ECE, CWR, none, and NS.
        for flags in [0x11, 0x12, 0x14, 0x30, 0x50, 0x90, 0x00] {
            assert!(!is_candidate(&changed(47, flags)), "{flags:#x}");
        }
        assert!(!is_candidate(&changed(46, 0x81)));
        // Congestion experienced, another option, padding behind the packet, no payload.
        assert!(!is_candidate(&changed(15, 3)));
        assert!(!is_candidate(&changed(56, 5)));
        let mut padded = frame.clone();
        padded.push(0);
        assert!(!is_candidate(&padded));
        assert!(!is_candidate(&tcp_frame(1, &[], true)));
        assert!(
            look(&tcp_frame(1, &[], true), good(), true)
                .expect("TCP")
                .segment
                .is_some()
        );
        // Checksums.
        for status in [good().with_l4e(true), good().with_ipe(true), RxStatus::ZERO] {
            let look = look(&frame, status, false).expect("TCP");
            assert!(look.segment.is_none());
        }
        // A fragment, and another protocol.
        assert!(look(&changed(20, 0x20), good(), false).is_none());
        assert!(look(&changed(23, 17), good(), false).is_none());
    }

    #[test]
    fn every_truncation_is_survived() {
        let frame = tcp_frame(1, &[7; 100], true);
        for end in 0..frame.len() {
            let found = look(&frame[..end], good(), true);
            assert!(found.is_none_or(|look| look.segment.is_none()));
        }
    }

    #[test]
    fn segments_follow_each_other() {
        let first = tcp_frame(100, &[1; 50], true);
        let look_at = |frame: &[u8]| look(frame, good(), false).expect("TCP");
        let begun = look_at(&first);
        let segment = begun.segment.expect("a candidate");
        let mut headers = Headers::new(begun.flow, segment, &first, None);
        let takes = |headers: &Headers, frame: &[u8], vlan| {
            let segment = look_at(frame).segment.expect("a candidate");
            headers.takes(&segment, frame, vlan)
        };
        let next = tcp_frame(150, &[2; 60], true);
        assert!(takes(&headers, &next, None));
        assert!(!takes(&headers, &next, Some(5)), "another VLAN");
        assert!(!takes(&headers, &tcp_frame(151, &[2; 60], true), None));
        assert!(!takes(&headers, &tcp_frame(100, &[2; 60], true), None));
        assert!(!takes(&headers, &tcp_frame(150, &[2; 60], false), None));
        let mut other = next.clone();
        other[15] = 4;
        assert!(!takes(&headers, &other, None), "another service");
        let segment = look_at(&next).segment.expect("a candidate");
        let mut last = next.clone();
        last[42..46].copy_from_slice(&[9, 9, 9, 9]);
        last[47] = ACK | PSH;
        last[48] = 3;
        last[60] = 77;
        headers.append(&segment, &last);
        let bytes = headers.bytes();
        assert_eq!(be16(bytes, 16), 20 + 32 + 110);
        assert_eq!(bytes[42..48], [9, 9, 9, 9, 0x80, ACK | PSH]);
        assert_eq!((bytes[48], bytes[60]), (3, 77));
        assert_eq!(bytes[38..42], 100_u32.to_be_bytes());
    }
}
