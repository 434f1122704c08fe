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
    hash: Toeplitz,
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
            hash: Toeplitz::new(&key),
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
            let value = self.hash.of(addresses.iter().chain(ports));
            return Hash { value, kind };
        }
        if plain.0 {
            let value = self.hash.of(addresses);
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

/// Bytes that a hash covers at most: addresses of IPv6 and ports.
const COVERED: usize = 36;

/// The hash function: what each half of a byte contributes, by its place and its value.
#[derive(Debug, Clone)]
struct Toeplitz([[u32; 16]; 2 * COVERED]);

impl Toeplitz {
    fn new(key: &[u8; 40]) -> Self {
        let mut shares = [[0; 16]; 2 * COVERED];
        for (i, share) in shares.iter_mut().enumerate() {
            // The part of the key at this place: a bit of data selects 32 bits from its own on.
            let bytes = key[i / 2..].first_chunk().copied().unwrap_or_default();
            let window = u64::from(u32::from_be_bytes(bytes)) << 8;
            let window = window | u64::from(key.get(i / 2 + 4).copied().unwrap_or_default());
            let window = window >> (4 * (1 - i % 2));
            for value in 1..16_usize {
                // The lowest bit that is set, after those above it.
                let bit = value.trailing_zeros();
                share[value] = share[value & (value - 1)] ^ (window >> (1 + bit)) as u32;
            }
        }
        Self(shares)
    }

    fn of<'a>(&self, data: impl IntoIterator<Item = &'a u8>) -> u32 {
        let (halves, _) = self.0.as_chunks::<2>();
        halves
            .iter()
            .zip(data)
            .fold(0, |hash, ([high, low], byte)| {
                hash ^ high[usize::from(byte >> 4)] ^ low[usize::from(byte & 0xf)]
            })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    /// Key and results of the published verification suite for this hash.
    const KEY: [u8; 40] = [
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f,
        0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
        0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ];

    #[test]
    fn published_vectors() {
        let hash = Toeplitz::new(&KEY);
        let ports = [2794_u16, 1766].map(u16::to_be_bytes).concat();
        let addresses = [66, 9, 149, 187, 161, 142, 100, 80];
        assert_eq!(hash.of(&addresses), 0x323e_8fc2);
        assert_eq!(hash.of(addresses.iter().chain(&ports)), 0x51cc_c178);
        let addresses = ["3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1"]
            .map(|text| text.parse::<Ipv6Addr>().expect("an address").octets())
            .concat();
        assert_eq!(hash.of(&addresses), 0x2cc1_8cd5);
        assert_eq!(hash.of(addresses.iter().chain(&ports)), 0x4020_7d3d);
    }
}
