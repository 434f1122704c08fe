// SPDX-License-Identifier: GPL-2.0
//! Receive side scaling: Toeplitz hash and indirection table.

use crate::descriptor::RssType;
use crate::packet::{Network, Parsed, TCP, UDP};
use crate::regs::bits::Mrqc;
use crate::regs::file::RegisterFile;
use crate::regs::offset;

/// Result of hashing a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hash {
    pub value: u32,
    /// Type as written to the descriptor.
    pub kind: RssType,
}

impl Hash {
    /// Of a frame that was not hashed.
    const NONE: Self = Self {
        value: 0,
        kind: RssType::None,
    };
}

/// Configuration of RSS.
#[derive(Debug, Clone)]
pub(crate) struct Rss {
    fields: Mrqc,
    key: [u8; 40],
    table: [u8; 128],
}

impl Rss {
    /// Reads the configuration; none when RSS is off.
    pub(crate) fn load(regs: &RegisterFile) -> Option<Self> {
        let mrqc = regs.get::<Mrqc>();
        if mrqc.mrqe() != Mrqc::RSS {
            return None;
        }
        let mut key = [0; 40];
        for (i, bytes) in key.chunks_exact_mut(4).enumerate() {
            bytes.copy_from_slice(&regs.load(offset::RSSRK + 4 * i as u32).to_le_bytes());
        }
        let mut table = [0; 128];
        for (i, bytes) in table.chunks_exact_mut(4).enumerate() {
            bytes.copy_from_slice(&regs.load(offset::RETA + 4 * i as u32).to_le_bytes());
        }
        Some(Self {
            fields: mrqc,
            key,
            table,
        })
    }

    /// Hash of a frame.
    pub(crate) fn hash(&self, frame: &[u8], parsed: &Parsed) -> Hash {
        let fields = self.fields;
        let ports = frame.get(parsed.l4..parsed.l4 + 4);
        let (addresses, plain, tcp, udp) = match parsed.network {
            Network::V4 => (
                frame.get(parsed.l3 + 12..parsed.l3 + 20),
                (fields.ipv4(), RssType::Ipv4),
                (fields.ipv4_tcp(), RssType::Ipv4Tcp),
                (fields.ipv4_udp(), RssType::Ipv4Udp),
            ),
            Network::V6 => (
                frame.get(parsed.l3 + 8..parsed.l3 + 40),
                (fields.ipv6(), RssType::Ipv6),
                (fields.ipv6_tcp(), RssType::Ipv6Tcp),
                (fields.ipv6_udp(), RssType::Ipv6Udp),
            ),
            Network::Other => return Hash::NONE,
        };
        let Some(addresses) = addresses else {
            return Hash::NONE;
        };
        let with_ports = match parsed.protocol {
            Some(TCP) => Some(tcp),
            Some(UDP) => Some(udp),
            _ => None,
        };
        if let (Some((true, kind)), Some(ports)) = (with_ports, ports) {
            let value = toeplitz(&self.key, addresses.iter().chain(ports));
            return Hash { value, kind };
        }
        if plain.0 {
            let value = toeplitz(&self.key, addresses.iter());
            return Hash {
                value,
                kind: plain.1,
            };
        }
        Hash::NONE
    }

    /// Queue of a hash.
    pub(crate) fn queue(&self, hash: Hash) -> u32 {
        if hash.kind == RssType::None {
            return 0;
        }
        u32::from(self.table[(hash.value & 0x7f) as usize] & 0xf)
    }
}

fn toeplitz<'a>(key: &[u8; 40], data: impl Iterator<Item = &'a u8>) -> u32 {
    let mut hash = 0;
    let mut window = u32::from_be_bytes([key[0], key[1], key[2], key[3]]);
    for (i, byte) in data.enumerate() {
        let next = key.get(i + 4).copied().unwrap_or(0);
        for bit in (0..8).rev() {
            if byte >> bit & 1 != 0 {
                hash ^= window;
            }
            window = window << 1 | u32::from(next >> bit & 1);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key and results of the published verification suite for this hash.
    const KEY: [u8; 40] = [
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f,
        0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
        0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ];

    #[test]
    fn published_vectors() {
        let addresses = [66, 9, 149, 187, 161, 142, 100, 80];
        let ports = [
            (2794_u16 >> 8) as u8,
            2794_u16 as u8,
            (1766_u16 >> 8) as u8,
            1766_u16 as u8,
        ];
        assert_eq!(toeplitz(&KEY, addresses.iter()), 0x323e_8fc2);
        assert_eq!(toeplitz(&KEY, addresses.iter().chain(&ports)), 0x51cc_c178);
    }
}
