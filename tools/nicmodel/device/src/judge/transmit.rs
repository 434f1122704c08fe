// SPDX-License-Identifier: GPL-2.0
//! The contract of transmit descriptors: a packet as the card has fetched it.

use crate::checksum::{ends_with_fcs, finish, sum};
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
    /// Bytes of its largest buffer.
    pub(crate) largest: usize,
    /// TXDCTL.WTHRESH of its queue.
    pub(crate) wthresh: usize,
    /// Its last descriptor asks for a report.
    pub(crate) reported: bool,
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
    /// Bytes of MPLS labels before the network header.
    labels: usize,
    l3: usize,
    l4: usize,
    ipv4: bool,
    protocol: u8,
}

/// The headers that a context is about: the outer network header, and one of the transport headers
/// that follow, each in a network header of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Nested {
    outer: Headers,
    inner: Headers,
}

/// Bytes of headers that the card repeats in each segment.
const MAX_HEADERS: usize = 512;
const VLAN_TAGS: [u16; 2] = [0x8100, 0x88a8];
const MPLS: [u16; 2] = [0x8847, 0x8848];
/// Hop-by-hop options, routing, destination options: headers of 8 bytes and more.
const IPV6_OPTIONS: [u8; 3] = [0, 43, 60];
/// Protocols of tunnels, and the flags of GRE's header for a field each.
const IPIP: u8 = 4;
const IPV6: u8 = 41;
const GRE: u8 = 47;
const GRE_CHECKSUM: u16 = 0x8000;
const GRE_KEY: u16 = 0x2000;
const GRE_SEQUENCE: u16 = 0x1000;
const VXLAN_PORT: u16 = 4789;
/// More tunnels in each other are not looked into.
const MAX_DEPTH: usize = 4;

impl Headers {
    fn of(data: &[u8]) -> Option<Self> {
        let mut l3 = 14;
        let mut kind = be16(data, 12);
        while VLAN_TAGS.contains(&kind) {
            kind = be16(data, l3 + 2);
            l3 += 4;
        }
        if !MPLS.contains(&kind) {
            return Self::at(data, l3, kind);
        }
        // The last label has a mark, and no type of what follows it.
        let stack = data.get(l3..)?.chunks_exact(4);
        let labels = 4 * (stack.take_while(|label| label[2] & 1 == 0).count() + 1);
        l3 += labels;
        let kind = match data.get(l3)? >> 4 {
            4 => 0x0800,
            _ => 0x86dd,
        };
        Some(Self {
            labels,
            ..Self::at(data, l3, kind)?
        })
    }

    /// Those behind a type of Ethernet.
    fn at(data: &[u8], l3: usize, kind: u16) -> Option<Self> {
        match kind {
            0x0800 => Some(Self {
                labels: 0,
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
                    labels: 0,
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

impl Headers {
    /// The headers within, if this is a tunnel.
    fn inner(self, data: &[u8]) -> Option<Self> {
        let word = |at: usize| data.get(at..at + 2).map(|_| be16(data, at));
        let ethernet = |at: usize| Self::at(data, at + 14, word(at + 12)?);
        match self.protocol {
            IPIP => Self::at(data, self.l4, 0x0800),
            IPV6 => Self::at(data, self.l4, 0x86dd),
            GRE => {
                let flags = word(self.l4)?;
                let fields = (flags & (GRE_CHECKSUM | GRE_KEY | GRE_SEQUENCE)).count_ones();
                let next = self.l4 + 4 + 4 * fields as usize;
                match word(self.l4 + 2)? {
                    0x6558 => ethernet(next),
                    kind => Self::at(data, next, kind),
                }
            }
            UDP => match word(self.l4 + 2)? {
                VXLAN_PORT => ethernet(self.l4 + 16),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Nested {
    /// The headers of a packet: those whose transport header is at `l4`, or else the outer ones.
    fn of(data: &[u8], l4: usize) -> Option<Self> {
        let outer = Headers::of(data)?;
        let chain = std::iter::successors(Some(outer), |one| one.inner(data)).take(MAX_DEPTH);
        let inner = chain.into_iter().find(|one| one.l4 == l4).unwrap_or(outer);
        Some(Self { outer, inner })
    }
}

impl Packet<'_> {
    /// The headers that the context is about.
    fn headers(&self) -> Option<(Nested, Context)> {
        let said = self.context?;
        Nested::of(self.data, said.mac_len + said.ip_len).zip(Some(said))
    }

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

    /// Whether the frame gets a check sequence, or ends with the right one.
    pub(crate) fn has_fcs(&self) -> bool {
        self.appends_fcs && (self.first.ifcs() || !self.first.tse() && ends_with_fcs(self.data))
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
        // Labels may count as a part of a network header that the card leaves as it is.
        let leaves = !self.first.tse() && !self.first.ixsm();
        self.headers().is_some_and(|(is, said)| {
            let begin = said.mac_len + if leaves { is.outer.labels } else { 0 };
            (is.outer.l3 == said.mac_len || is.outer.l3 == begin)
                && is.inner.l4 == said.mac_len + said.ip_len
        })
    }

    /// Whether the context names the protocols of the packet.
    pub(crate) fn types_agree(&self) -> bool {
        let Some((is, said)) = self.headers() else {
            return false;
        };
        // IPV4 selects the checksum of the header and the fields that segments change.
        let uses_ip = self.first.tse() || self.first.ixsm();
        let uses_transport = self.first.tse() || self.first.txsm();
        let transport = match said.transport {
            Transport::Tcp => is.inner.protocol == TCP,
            Transport::Udp => is.inner.protocol == UDP,
            Transport::Sctp => is.inner.protocol == SCTP,
            Transport::Reserved => false,
        };
        (!uses_ip || is.outer.ipv4 == said.ipv4)
            && (!self.first.ixsm() || is.outer.ipv4)
            && (!uses_transport || transport)
    }

    /// The context of a packet that the card cuts, if it knows the packet's headers.
    fn cut(&self) -> Option<(Nested, Context)> {
        let cut = self.advanced() && self.first.tse();
        self.headers().filter(|_| cut)
    }

    /// Whether each segment has payload, headers that the card can hold, and fits a frame.
    pub(crate) fn segments_fit(&self) -> bool {
        self.cut().is_none_or(|(_, said)| {
            said.mss != 0 && said.headers() <= MAX_HEADERS && said.headers() + said.mss <= MAX_FRAME
        })
    }

    /// Whether the checksums that each segment needs are asked for.
    pub(crate) fn segments_are_summed(&self) -> bool {
        self.cut()
            .is_none_or(|(is, _)| self.first.txsm() && (!is.outer.ipv4 || self.first.ixsm()))
    }

    /// Whether the context has the length of the transport header.
    pub(crate) fn transport_length_agrees(&self) -> bool {
        self.cut().is_none_or(|(is, said)| match is.inner.protocol {
            TCP => said.l4_len == usize::from(be16(self.data, is.inner.l4 + 12) >> 12) * 4,
            UDP => said.l4_len == 8,
            _ => true,
        })
    }

    /// Whether the fields that differ between segments are ready: no length in the outer network
    /// header, no checksum but for what cancels the headers of a tunnel, and no length in the sum of
    /// the pseudo header.
    pub(crate) fn fields_are_ready(&self) -> bool {
        self.cut().is_none_or(|(Nested { outer, inner }, _)| {
            let field = match inner.protocol {
                TCP => be16(self.data, inner.l4 + 16),
                UDP => be16(self.data, inner.l4 + 6),
                _ => return true,
            };
            let is_blank = if outer.ipv4 {
                let tunnel = self.data.get(outer.l4..inner.l4).unwrap_or_default();
                let checksum = be16(self.data, outer.l3 + 10);
                let cancels = finish(sum(tunnel, checksum.into())) == 0;
                let is_right = if tunnel.is_empty() {
                    checksum == 0
                } else {
                    cancels
                };
                be16(self.data, outer.l3 + 2) == 0 && is_right
            } else {
                be16(self.data, outer.l3 + 4) == 0
            };
            let addresses = if inner.ipv4 {
                inner.l3 + 12..inner.l3 + 20
            } else {
                inner.l3 + 8..inner.l3 + 40
            };
            let addresses = self.data.get(addresses).unwrap_or_default();
            let seed = !finish(sum(addresses, inner.protocol.into()));
            // Two representations of zero.
            is_blank && seed.abs_diff(field) % 0xffff == 0
        })
    }
}
