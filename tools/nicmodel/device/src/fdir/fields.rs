// SPDX-License-Identifier: GPL-2.0
//! The fields of a packet that filters look at, their masks, and the hash over it.

use crate::packet::{ETH_HEADER, Network, Parsed, SCTP, TCP, UDP, be16};
use crate::regs::bits::{Fdircmd, Fdirm};
use crate::regs::file::RegisterFile;
use crate::regs::offset;

/// Bits of a VLAN tag: the id, and the priority.
const VLAN_ID: u16 = 0x0fff;
const VLAN_PRIORITY: u16 = 0xe000;
/// The bit of a flow's type that stands for IPv6.
const IPV6: u8 = 4;

/// The fields of a packet that a filter looks at; those that are masked are zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fields {
    /// Of an address of IPv6, the sum of its words without carry: it is hashed, never compared.
    pub source: u32,
    pub destination: u32,
    /// The source port in the upper half, the destination port in the lower one.
    pub ports: u32,
    pub vlan: u16,
    /// Two bytes at a place that FDIRCTRL says.
    pub flex: u16,
    /// L4TYPE of FDIRCMD, and [`IPV6`].
    pub l4: u8,
}

impl Fields {
    /// Those of the registers.
    pub fn of(regs: &RegisterFile, command: Fdircmd) -> Self {
        let ports = regs.load(offset::FDIRPORT);
        let vlan = regs.load(offset::FDIRPORT + 4);
        Self {
            source: regs.load(offset::FDIRIP + 12).swap_bytes(),
            destination: regs.load(offset::FDIRIP + 16).swap_bytes(),
            ports: ports.rotate_left(16),
            vlan: vlan as u16,
            flex: ((vlan >> 16) as u16).swap_bytes(),
            l4: command.l4type().value(),
        }
    }

    /// The hash: each bit of the fields in which it is set adds a window of the key.
    pub fn hash(&self, key: u32) -> u16 {
        let body = self.source ^ self.destination ^ self.ports ^ u32::from(self.flex) << 16;
        let mut hash = (0..32)
            .filter(|bit| body >> bit & 1 != 0)
            .fold(0, |hash, bit| hash ^ window(key, bit + 16));
        // Type and VLAN are at the end of the stream of bits, which has one bit less than a
        // multiple of 32: they count twice.
        let head = u32::from(self.l4) << 16 | u32::from(self.vlan);
        for bit in 0..16 {
            if key >> (bit + 16) & 1 != 0 {
                hash ^= (head ^ head >> 16) >> bit;
            }
            if bit != 0 && key >> bit & 1 != 0 {
                hash ^= (head ^ head << 16) >> bit;
            }
        }
        hash as u16
    }
}

/// Sixteen bits of the key, which is a ring: from bit `from` downwards.
fn window(key: u32, from: u32) -> u32 {
    (0..16).fold(0, |window, bit| {
        window | (key >> ((from.wrapping_sub(bit)) % 32) & 1) << bit
    })
}

/// The masks, as the bits that are compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Masks {
    fields: Fields,
    /// The transport protocol is compared.
    l4: bool,
    udp: u32,
    /// The destination address of IPv6 is hashed.
    ipv6_destination: bool,
}

impl Masks {
    pub fn load(regs: &RegisterFile) -> Self {
        let off = regs.get::<Fdirm>();
        // Bit 15 of a port is bit 0 of its mask.
        let ports = |at| (!regs.load(at)).reverse_bits();
        let word = |at| (!regs.load(at)).swap_bytes();
        let vlan = if off.vlan_id() { 0 } else { VLAN_ID };
        let priority = if off.vlan_priority() {
            0
        } else {
            VLAN_PRIORITY
        };
        Self {
            fields: Fields {
                source: word(offset::FDIRSIP4M),
                destination: word(offset::FDIRDIP4M),
                ports: ports(offset::FDIRTCPM),
                vlan: vlan | priority,
                flex: if off.flex() { 0 } else { u16::MAX },
                l4: 0,
            },
            l4: !off.l4_protocol(),
            udp: ports(offset::FDIRUDPM),
            ipv6_destination: !off.ipv6_destination(),
        }
    }

    /// The fields of a packet.
    pub fn apply(&self, frame: &[u8], parsed: &Parsed, flex_at: usize) -> Option<Fields> {
        let word = |at: usize| u32::from(be16(frame, at)) << 16 | u32::from(be16(frame, at + 2));
        let long = |at: usize| (0..4).fold(0, |sum, i| sum ^ word(at + 4 * i));
        let (source, destination, family) = match parsed.network {
            Network::V4 => (
                word(parsed.l3 + 12) & self.fields.source,
                word(parsed.l3 + 16) & self.fields.destination,
                0,
            ),
            Network::V6 if self.ipv6_destination => {
                (long(parsed.l3 + 8), long(parsed.l3 + 24), IPV6)
            }
            Network::V6 => (long(parsed.l3 + 8), 0, IPV6),
            Network::Other => return None,
        };
        let (l4, ports) = match parsed.protocol {
            Some(UDP) => (1, self.udp),
            Some(TCP) => (2, self.fields.ports),
            // There is no mask for its ports.
            Some(SCTP) => (3, u32::MAX),
            _ => (0, 0),
        };
        let tag = if parsed.l3 > ETH_HEADER {
            be16(frame, 14)
        } else {
            0
        };
        Some(Fields {
            source,
            destination,
            ports: if self.l4 { word(parsed.l4) & ports } else { 0 },
            vlan: tag & self.fields.vlan,
            flex: be16(frame, flex_at) & self.fields.flex,
            l4: if self.l4 { l4 | family } else { family },
        })
    }
}
