// SPDX-License-Identifier: GPL-2.0
//! Checksums: of the Internet kind, CRC-32 of the FCS, and CRC-32C of SCTP.

use crate::packet::{Network, Parsed, SCTP, TCP, UDP, be16, put_be16};

/// Sum of 16-bit words in network order, added to another such sum; the result is for [`finish`].
pub fn sum(data: &[u8], start: u32) -> u32 {
    // Whole words of memory, in its order of bytes: that of the sum follows it (RFC 1071).
    let (words, rest) = data.as_chunks::<4>();
    let mut total: u64 = words
        .iter()
        .map(|word| u64::from(u32::from_ne_bytes(*word)))
        .sum();
    for half in rest.chunks(2) {
        let bytes = [half[0], half.get(1).copied().unwrap_or_default()];
        total += u64::from(u16::from_ne_bytes(bytes));
    }
    let folded = (total >> 32) + (total & u64::from(u32::MAX));
    let folded = (folded >> 16) + (folded & 0xffff);
    let (total, carry) = start.overflowing_add(u16::from_be(fold(folded as u32)).into());
    total + u32::from(carry)
}

fn fold(sum: u32) -> u16 {
    let folded = (sum >> 16) + (sum & 0xffff);
    (folded + (folded >> 16)) as u16
}

/// Folds a sum into 16 bits and complements it.
pub fn finish(sum: u32) -> u16 {
    !fold(sum)
}

/// Checksum of an IPv4 header whose checksum field may hold anything.
pub fn ipv4_header(header: &[u8]) -> u16 {
    let field = u32::from(be16(header, 10));
    // Taking a word out of a ones' complement sum is adding its complement.
    finish(sum(header, 0xffff - field))
}

/// Sum of the pseudo header, without the length of the payload.
pub fn pseudo(frame: &[u8], parsed: &Parsed, protocol: u8) -> u32 {
    let addresses = match parsed.network {
        Network::V4 => frame.get(parsed.l3 + 12..parsed.l3 + 20),
        Network::V6 => frame.get(parsed.l3 + 8..parsed.l3 + 40),
        Network::Other => None,
    };
    sum(addresses.unwrap_or_default(), u32::from(protocol))
}

/// Puts the IPv4 header checksum in place.
pub fn insert_ipv4(frame: &mut [u8], l3: usize, length: usize) {
    if let Some(header) = frame.get(l3..l3 + length) {
        let value = ipv4_header(header);
        put_be16(frame, l3 + 10, value);
    }
}

/// The receiver's verdict on the checksums of a frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The IPv4 header checksum was looked at.
    pub ip_checked: bool,
    /// And it was wrong.
    pub ip_bad: bool,
    /// The transport checksum was looked at.
    pub l4_checked: bool,
    /// And it was wrong.
    pub l4_bad: bool,
}

/// Checks the checksums of a frame.
pub fn verify(frame: &[u8], parsed: &Parsed) -> Verdict {
    let mut verdict = Verdict::default();
    if parsed.network == Network::V4 {
        let header = &frame[parsed.l3..parsed.l4];
        verdict.ip_checked = true;
        verdict.ip_bad = finish(sum(header, 0)) != 0;
    }
    let payload = frame.get(parsed.l4..parsed.end).unwrap_or_default();
    match parsed.protocol {
        Some(TCP) if payload.len() >= 20 => {
            verdict.l4_checked = true;
            let start = pseudo(frame, parsed, TCP) + payload.len() as u32;
            verdict.l4_bad = finish(sum(payload, start)) != 0;
        }
        // A UDP checksum of zero means that there is none.
        Some(UDP) if payload.len() >= 8 && be16(payload, 6) != 0 => {
            verdict.l4_checked = true;
            let start = pseudo(frame, parsed, UDP) + payload.len() as u32;
            verdict.l4_bad = finish(sum(payload, start)) != 0;
        }
        Some(SCTP) if payload.len() >= 12 => {
            verdict.l4_checked = true;
            let field = [payload[8], payload[9], payload[10], payload[11]];
            verdict.l4_bad = sctp(payload) != u32::from_le_bytes(field);
        }
        _ => {}
    }
    verdict
}

/// CRC-32C of an SCTP packet, as if its checksum field were zero.
pub fn sctp(packet: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for (i, byte) in packet.iter().enumerate() {
        let byte = if (8..12).contains(&i) { 0 } else { *byte };
        crc = crc_step(crc, byte, 0x82f6_3b78);
    }
    !crc
}

/// FCS of a frame.
pub fn fcs(frame: &[u8]) -> u32 {
    !frame
        .iter()
        .fold(u32::MAX, |crc, byte| crc_step(crc, *byte, 0xedb8_8320))
}

/// Whether the last four bytes are the FCS of those before.
pub fn ends_with_fcs(frame: &[u8]) -> bool {
    frame
        .split_last_chunk()
        .is_some_and(|(frame, last)| fcs(frame) == u32::from_le_bytes(*last))
}

fn crc_step(crc: u32, byte: u8, polynomial: u32) -> u32 {
    let mut crc = crc ^ u32::from(byte);
    for _ in 0..8 {
        crc = if crc & 1 != 0 {
            crc >> 1 ^ polynomial
        } else {
            crc >> 1
        };
    }
    crc
}

#[cfg(test)]
mod tests;
