// SPDX-License-Identifier: GPL-2.0
//! The frames of the generator: every byte follows from the run and the sequence number, so
//! that the checker can make the same frame again and compare.

use nicmodel_device::checksum::{finish, sum};
use nicmodel_device::packet::{MIN_FRAME, be16, put_be16};

use crate::spec::Generate;

const MAGIC: [u8; 4] = *b"skbw";
const L3: usize = 14;
const ADDRESSES: usize = 26;
const L4: usize = 34;
const MARK: usize = 42;
const PATTERN: usize = 54;
const TTL: u8 = 64;
const FIRST_PORT: u16 = 1024;
/// The discard port.
const TO_PORT: u16 = 9;

/// The identity of a frame of a generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub run: u16,
    pub flow: u16,
    pub sequence: u32,
}

/// Reads the mark of a frame.
pub(crate) fn mark(frame: &[u8]) -> Option<Mark> {
    let data = frame.get(MARK..PATTERN)?;
    if data[..4] != MAGIC {
        return None;
    }
    Some(Mark {
        run: be16(data, 4),
        flow: be16(data, 6),
        sequence: u32::from(be16(data, 8)) << 16 | u32::from(be16(data, 10)),
    })
}

/// Whether a frame without a readable mark looks as if it had had one.
pub(crate) fn resembles(spec: &Generate, frame: &[u8]) -> bool {
    frame.len() >= MARK
        && be16(frame, 12) == 0x0800
        && frame[L3 + 9] == 17
        && frame[L3 + 16..L3 + 20] == spec.dst_ip.octets()
        && be16(frame, L4 + 2) == TO_PORT
}

/// Whether a frame is a whole one of another run: a straggler of an earlier run, or one that
/// goes on at the same time. Its checksum covers the mark.
pub(crate) fn of_another_run(frame: &[u8], run: u16) -> bool {
    let length = usize::from(be16(frame, L4 + 4));
    let Some(datagram) = frame.get(ADDRESSES..L4 + length) else {
        return false;
    };
    mark(frame).is_some_and(|mark| mark.run != run)
        && finish(sum(datagram, 17 + length as u32)) == 0
}

/// Makes frames of one run.
#[derive(Debug, Clone)]
pub(crate) struct Maker {
    template: Vec<u8>,
    /// Sums of what is the same in all frames, for their checksums.
    header: u32,
    datagram: u32,
    run: u16,
    flows: u16,
}

impl Maker {
    pub(crate) fn new(spec: &Generate, run: u16, dst_mac: [u8; 6]) -> Self {
        let mut template = vec![0; spec.size];
        template[..6].copy_from_slice(&dst_mac);
        template[6..12].copy_from_slice(&spec.src_mac.0);
        put_be16(&mut template, 12, 0x0800);
        template[L3] = 0x45;
        put_be16(&mut template, L3 + 2, (spec.size - L3) as u16);
        put_be16(&mut template, L3 + 6, 0x4000);
        template[L3 + 9] = 17;
        template[ADDRESSES..ADDRESSES + 4].copy_from_slice(&spec.src_ip.octets());
        template[ADDRESSES + 4..L4].copy_from_slice(&spec.dst_ip.octets());
        put_be16(&mut template, L4 + 2, TO_PORT);
        put_be16(&mut template, L4 + 4, (spec.size - L4) as u16);
        template[MARK..MARK + 4].copy_from_slice(&MAGIC);
        put_be16(&mut template, MARK + 4, run);
        // The addresses of the pseudo header stand in front of the datagram.
        let length = (spec.size - L4) as u32;
        Self {
            header: sum(&template[L3..L4], 0),
            datagram: sum(&template[ADDRESSES..], 17 + length),
            template,
            run,
            flows: spec.flows,
        }
    }

    pub(crate) fn flow(&self, sequence: u32) -> u16 {
        (sequence % u32::from(self.flows)) as u16
    }

    /// Whether a mark can be of this run.
    pub(crate) fn consistent(&self, mark: &Mark) -> bool {
        mark.run == self.run && mark.flow == self.flow(mark.sequence)
    }

    /// The frame as it goes into the first port.
    pub(crate) fn make(&self, sequence: u32, frame: &mut Vec<u8>) {
        self.build(sequence, TTL, frame);
    }

    fn build(&self, sequence: u32, ttl: u8, frame: &mut Vec<u8>) {
        frame.clear();
        frame.extend_from_slice(&self.template);
        let [id, flow] = [sequence as u16, self.flow(sequence)];
        let port = FIRST_PORT.wrapping_add(flow);
        let [high, low] = [(sequence >> 16) as u16, sequence as u16];
        put_be16(frame, L3 + 4, id);
        frame[L3 + 8] = ttl;
        put_be16(frame, L4, port);
        put_be16(frame, MARK + 6, flow);
        put_be16(frame, MARK + 8, high);
        put_be16(frame, MARK + 10, low);
        for (i, byte) in frame[PATTERN..].iter_mut().enumerate() {
            *byte = (sequence as u8).wrapping_mul(31).wrapping_add(i as u8);
        }
        let header = self.header + u32::from(id) + (u32::from(ttl) << 8);
        put_be16(frame, L3 + 10, finish(header));
        let marks: u32 = [port, flow, high, low].map(u32::from).iter().sum();
        let value = match finish(sum(&frame[PATTERN..], self.datagram + marks)) {
            0 => 0xffff,
            value => value,
        };
        put_be16(frame, L4 + 6, value);
    }

    /// The frame as it must leave the last port. Addresses that are not checked are those of
    /// the frame that came.
    pub(crate) fn expect(&self, sequence: u32, spec: &Generate, came: &[u8], frame: &mut Vec<u8>) {
        self.build(sequence, spec.expect_ttl, frame);
        match spec.expect_dst_mac {
            Some(mac) => frame[..6].copy_from_slice(&mac.0),
            None => frame[..6].copy_from_slice(&came[..6]),
        }
        match spec.expect_src_mac {
            Some(mac) => frame[6..12].copy_from_slice(&mac.0),
            None => frame[6..12].copy_from_slice(&came[6..12]),
        }
        if frame.len() < MIN_FRAME {
            frame.resize(MIN_FRAME, 0);
        }
    }
}

/// How a frame differs from the expected one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    Length,
    Mac,
    Ttl,
    IpChecksum,
    Payload,
}

/// Compares; the first difference in the order of the enum counts.
pub(crate) fn compare(came: &[u8], expected: &[u8]) -> Option<Damage> {
    if came == expected {
        return None;
    }
    if came.len() != expected.len() {
        return Some(Damage::Length);
    }
    if came[..12] != expected[..12] {
        return Some(Damage::Mac);
    }
    if came[L3 + 8] != expected[L3 + 8] {
        return Some(Damage::Ttl);
    }
    if finish(sum(&came[L3..L4], 0)) != 0 {
        return Some(Damage::IpChecksum);
    }
    Some(Damage::Payload)
}
