// SPDX-License-Identifier: GPL-2.0
//! The contract of transmit descriptors: a packet as the card has fetched it.

use crate::checksum::{finish, sum};
use crate::descriptor::{Transport, TxData};
use crate::packet::{SCTP, TCP, UDP, be16};
use crate::tso::Context;
use crate::tx::MAX_FRAME;

/// A packet, complete with its last descriptor.
pub(crate) struct Packet<'a> {
    /// Its first descriptor, which is the one that counts.
    pub(crate) first: TxData,
    /// All data of its buffers.
    pub(crate) data: &'a [u8],
    /// Data descriptors.
    pub(crate) descriptors: usize,
    /// The context that IDX names, if one was sent.
    pub(crate) context: Option<Context>,
    /// HLREG0.TXCRCEN.
    pub(crate) appends_fcs: bool,
    /// HLREG0.TXPADEN.
    pub(crate) pads: bool,
}

/// The headers of a packet as they are, whatever lengths they claim: with TSE those are not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Headers {
    l3: usize,
    l4: usize,
    ipv4: bool,
    protocol: u8,
}

const VLAN_TAGS: [u16; 2] = [0x8100, 0x88a8];
/// Hop-by-hop options, routing, destination options: headers of 8 bytes and more.
const IPV6_OPTIONS: [u8; 3] = [0, 43, 60];

impl Headers {
    fn of(data: &[u8]) -> Option<Self> {
        let mut l3 = 14;
        let mut kind = be16(data, 12);
        while VLAN_TAGS.contains(&kind) {
            kind = be16(data, l3 + 2);
            l3 += 4;
        }
        match kind {
            0x0800 => Some(Self {
                l3,
                l4: l3 + usize::from(*data.get(l3)? & 0xf) * 4,
                ipv4: true,
                protocol: *data.get(l3 + 9)?,
            }),
            0x86dd => {
                let (mut protocol, mut l4) = (*data.get(l3 + 6)?, l3 + 40);
                while IPV6_OPTIONS.contains(&protocol) {
                    let (next, length) = (*data.get(l4)?, *data.get(l4 + 1)?);
                    protocol = next;
                    l4 += 8 * (usize::from(length) + 1);
                }
                Some(Self {
                    l3,
                    l4,
                    ipv4: false,
                    protocol,
                })
            }
            _ => None,
        }
    }
}

impl Packet<'_> {
    pub(crate) fn advanced(&self) -> bool {
        self.first.dext()
    }

    /// PAYLEN as the length of all data.
    pub(crate) fn paylen(&self) -> usize {
        let payload = self.first.paylen().value() as usize;
        match (self.first.tse(), self.context) {
            (true, Some(context)) => payload + context.headers(),
            _ => payload,
        }
    }

    pub(crate) fn needs_context(&self) -> bool {
        self.first.tse() || self.first.vle() || self.first.ixsm() || self.first.txsm()
    }

    /// Whether a context is used for checksums.
    pub(crate) fn offloads_checksum(&self) -> bool {
        let asked = self.first.tse() || self.first.ixsm() || self.first.txsm();
        self.advanced() && asked && self.context.is_some()
    }

    /// Whether the context has the headers where they are.
    pub(crate) fn headers_agree(&self) -> bool {
        match (Headers::of(self.data), self.context) {
            (Some(is), Some(said)) => is.l3 == said.mac_len && is.l4 == said.mac_len + said.ip_len,
            _ => false,
        }
    }

    /// Whether the context names the protocols of the packet.
    pub(crate) fn types_agree(&self) -> bool {
        let (Some(is), Some(said)) = (Headers::of(self.data), self.context) else {
            return false;
        };
        // IPV4 selects the checksum of the header and the fields that segments change.
        let uses_ip = self.first.tse() || self.first.ixsm();
        let uses_transport = self.first.tse() || self.first.txsm();
        let transport = match said.transport {
            Transport::Tcp => is.protocol == TCP,
            Transport::Udp => is.protocol == UDP,
            Transport::Sctp => is.protocol == SCTP,
            Transport::Reserved => false,
        };
        (!uses_ip || is.ipv4 == said.ipv4) && (!uses_transport || transport)
    }

    /// The context of a packet that the card cuts, if it knows the packet's headers.
    fn cut(&self) -> Option<(Headers, Context)> {
        let cut = self.advanced() && self.first.tse();
        Headers::of(self.data).zip(self.context.filter(|_| cut))
    }

    /// Whether each segment has payload, and fits a frame.
    pub(crate) fn segments_fit(&self) -> bool {
        self.cut()
            .is_none_or(|(_, said)| said.mss != 0 && said.headers() + said.mss <= MAX_FRAME)
    }

    /// Whether the checksums that each segment needs are asked for.
    pub(crate) fn segments_are_summed(&self) -> bool {
        self.cut()
            .is_none_or(|(is, _)| self.first.txsm() && (!is.ipv4 || self.first.ixsm()))
    }

    /// Whether the context has the length of the transport header.
    pub(crate) fn transport_length_agrees(&self) -> bool {
        self.cut().is_none_or(|(is, said)| match is.protocol {
            TCP => said.l4_len == usize::from(be16(self.data, is.l4 + 12) >> 12) * 4,
            UDP => said.l4_len == 8,
            _ => true,
        })
    }

    /// Whether the fields that differ between segments are ready: no length and no checksum in
    /// the network header, and no length in the sum of the pseudo header.
    pub(crate) fn fields_are_ready(&self) -> bool {
        self.cut().is_none_or(|(is, _)| {
            let field = match is.protocol {
                TCP => be16(self.data, is.l4 + 16),
                UDP => be16(self.data, is.l4 + 6),
                _ => return true,
            };
            let (addresses, rest) = if is.ipv4 {
                let rest = be16(self.data, is.l3 + 2) | be16(self.data, is.l3 + 10);
                (is.l3 + 12..is.l3 + 20, rest)
            } else {
                (is.l3 + 8..is.l3 + 40, be16(self.data, is.l3 + 4))
            };
            let addresses = self.data.get(addresses).unwrap_or_default();
            // Two representations of zero.
            rest == 0 && (!finish(sum(addresses, is.protocol.into()))).abs_diff(field) % 0xffff == 0
        })
    }
}
