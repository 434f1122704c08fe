// SPDX-License-Identifier: GPL-2.0

//! Descriptor formats (datasheet 7.1.6 and 7.2.3).
//!
//! A descriptor consists of two 64-bit words. On write-back, the device writes the second one last.
//! So that word is read once, and every decision is made on that copy.

use kernel::{
    bitfield,
    net::{
        device::RingRange,
        inflight::Descriptors,
        queue::RingSize,
        rx_list::Protocol,
        skbuff::{
            ChecksumKind,
            PartialChecksum,
            RxHash,
            Segmentation, //
            SegmentedProtocol,
        }, //
    },
    num::Bounded,
    prelude::*, //
};

/// The numbers of descriptors that rings can have, as with `ixgbe`, but powers of two only.
pub(crate) const RINGS: RingRange = RingRange {
    min: RingSize::of::<64>(),
    max: RingSize::of::<8192>(),
    default: RingSize::of::<512>(),
};

// The device takes multiples of 128 bytes.
const _: () = assert!(RINGS.min.bytes() % 128 == 0);

bitfield! {
    /// Second word of an advanced receive descriptor as the device writes it back.
    pub(crate) struct RxStatus(u64) {
        /// The VLAN tag that was stripped, if `vp` is set.
        63:48   vlan;
        /// Number of bytes in the buffer.
        47:32   pkt_len;
        /// IP checksum error, valid if `ipcs` is set.
        31:31   ipe => bool;
        /// TCP or UDP checksum error, valid if `l4i` is set.
        30:30   l4e => bool;
        /// Receive error: the frame is damaged.
        29:29   rxe => bool;
        /// The IP checksum was checked.
        6:6     ipcs => bool;
        /// The TCP or UDP checksum was checked.
        5:5     l4i => bool;
        /// The frame had a VLAN tag.
        3:3     vp => bool;
        /// End of packet: the last buffer of the frame.
        1:1     eop => bool;
        /// Descriptor done.
        0:0     dd => bool;
    }
}

bitfield! {
    /// First word of an advanced receive descriptor as the device writes it back.
    pub(crate) struct RxInfo(u64) {
        /// The hash, unless `rss_type` is zero.
        63:32   rss_hash;
        /// The number of packets that begin in the buffer, and one. 0 if none was aggregated.
        20:17   rsccnt;
        /// Packet type: UDP.
        9:9     udp => bool;
        /// Packet type: not an IP packet; the other bits have another meaning then.
        15:15   l2 => bool;
        /// The fields that were hashed.
        3:0     rss_type;
    }
}

/// The values of `rss_type` for which ports were hashed, as bits: TCP and UDP over IPv4 and IPv6.
const HASHED_PORTS: u32 = 1 << 1 | 1 << 3 | 1 << 7 | 1 << 8;

/// The value of `rss_type` with a filter of the flow director in place of the hash. The driver does
/// not ask for that.
const FILTER: u64 = 15;

impl RxInfo {
    /// Returns the hash over the packet, if there is one.
    #[inline(always)]
    pub(crate) fn hash(self) -> Option<RxHash> {
        // CAST: It has 32 bits.
        let hash = self.rss_hash().get() as u32;

        match self.rss_type().get() {
            0 | FILTER => None,
            kind if HASHED_PORTS >> kind & 1 != 0 => Some(RxHash::L4(hash)),
            _ => Some(RxHash::L3(hash)),
        }
    }

    /// Returns the number of packets that begin in the buffer, if the NIC has aggregated them.
    #[inline]
    pub(crate) fn packets(self) -> u32 {
        // CAST: It has 4 bits.
        (self.rsccnt().get() as u32).saturating_sub(1)
    }

    /// Returns whether the buffer is of a packet that the NIC may have aggregated.
    #[inline]
    pub(crate) fn may_be_lro(self) -> bool {
        self.into_raw() & Self::RSCCNT_MASK != 0
    }

    /// Returns whether there is a hash.
    #[inline(always)]
    pub(crate) fn has_hash(self) -> bool {
        self.into_raw() & Self::RSS_TYPE_MASK != 0
    }

    /// Returns the transport protocol of the packet.
    #[inline(always)]
    pub(crate) fn protocol(self) -> Protocol {
        if self.udp() && !self.l2() {
            Protocol::Udp
        } else {
            Protocol::Other
        }
    }
}

impl RxStatus {
    /// The error bits.
    const ERRORS: u64 = Self::RXE_MASK | Self::IPE_MASK | Self::L4E_MASK;

    /// Returns the VLAN tag that the device has stripped, if it does so.
    #[inline(always)]
    pub(crate) fn vlan_tag(self) -> Option<u16> {
        // CAST: It has 16 bits.
        self.vp().then(|| self.vlan().get() as u16)
    }

    /// Returns the descriptor with which a packet goes on that the NIC aggregates, if this one is
    /// not its last: the field is in the place of others that are about whole packets.
    #[inline]
    pub(crate) fn next_descriptor(self) -> usize {
        // CAST: It has 16 bits.
        (self.into_raw() >> 4 & 0xffff) as usize
    }

    /// Returns whether this is the last buffer of a frame without any error bit.
    ///
    /// This is for the fast path and errs on the safe side: an error bit counts even if the bit
    /// that makes it valid is clear.
    #[inline(always)]
    pub(crate) fn is_whole_and_good(self) -> bool {
        self.into_raw() & (Self::EOP_MASK | Self::ERRORS) == Self::EOP_MASK
    }

    /// Returns whether the checksum of the IP header is wrong.
    #[inline]
    pub(crate) fn has_bad_header(self) -> bool {
        self.ipcs() && self.ipe()
    }

    /// Returns whether this is the last buffer of a frame that is not damaged, whatever its
    /// checksums.
    #[inline(always)]
    pub(crate) fn is_whole(self) -> bool {
        self.into_raw() & (Self::EOP_MASK | Self::RXE_MASK) == Self::EOP_MASK
    }

    /// Returns whether this is a frame as most are: [`Self::is_whole_and_good`], and without a tag.
    #[inline(always)]
    pub(crate) fn is_ordinary(self) -> bool {
        let mask = Self::EOP_MASK | Self::ERRORS | Self::VP_MASK;

        self.into_raw() & mask == Self::EOP_MASK
    }
}

bitfield! {
    /// Second word of an advanced transmit data descriptor.
    pub(crate) struct TxData(u64) {
        /// Length of the packet in bytes, without its headers if it is split.
        63:46   paylen;
        /// Insert the TCP or UDP checksum, as described by the context descriptor.
        41:41   txsm => bool;
        /// Insert the IPv4 header checksum.
        40:40   ixsm => bool;
        /// Descriptor done, as the device writes it back.
        32:32   dd => bool;
        /// Split the packet, as described by the context descriptor.
        31:31   tse => bool;
        /// Insert the VLAN tag of the context descriptor.
        30:30   vle => bool;
        /// Descriptor extension: this is an advanced descriptor.
        29:29   dext => bool;
        /// Report status: write back when the packet has been sent.
        27:27   rs => bool;
        /// Insert the frame check sequence.
        25:25   ifcs => bool;
        /// End of packet: the last descriptor of the packet.
        24:24   eop => bool;
        /// Descriptor type.
        23:20   dtyp;
        /// Length of the buffer, in bytes.
        15:0    dtalen;
    }
}

/// [`TxData`]'s descriptor type.
const DTYP_DATA: u64 = 3;

/// [`TxContext`]'s descriptor type.
const DTYP_CONTEXT: u64 = 2;

/// The largest buffer that one data descriptor takes.
///
/// The field has 16 bits. A multiple of the page size keeps the splitting aligned.
pub(crate) const TX_MAX_SEGMENT: u32 = 0x8000;

/// The longest packet that becomes a frame: those have up to 15.5 KiB (datasheet 7.2.1.1), with the
/// check sequence and a tag. If the device is told to send more, it may stop.
pub(crate) const TX_MAX_PACKET: u32 = 15 * 1024 + 512 - 4 - 4;

/// The fewest bytes of a frame: the device sends no shorter ones.
pub(crate) const TX_MIN_LEN: u16 = 17;

/// The fields that all data descriptors of a packet share.
#[derive(Clone, Copy)]
pub(crate) struct TxTemplate(TxData);

impl TxTemplate {
    /// For a packet of `len` bytes; `checksum` asks the device to insert one.
    ///
    /// Returns [`None`] if `len` does not fit in the descriptor.
    #[inline(always)]
    pub(crate) fn new(len: u32, checksum: bool) -> Option<Self> {
        Some(Self(
            TxData::zeroed()
                .try_with_paylen(len)
                .ok()?
                .with_txsm(checksum)
                .with_dext(true)
                .with_ifcs(true)
                .with_const_dtyp::<DTYP_DATA>(),
        ))
    }

    /// For a packet of `len` bytes that the device splits as the context descriptor says.
    ///
    /// Returns [`None`] if `len` does not fit in the descriptor.
    pub(crate) fn segmented(len: u32, segmentation: &Segmentation) -> Option<Self> {
        let Self(data) = Self::new(len.checked_sub(segmentation.headers)?, true)?;

        Some(Self(data.with_tse(true).with_ixsm(segmentation.ipv4)))
    }

    /// Asks the device to insert the VLAN tag of the context descriptor.
    pub(crate) fn with_vlan(self) -> Self {
        Self(self.0.with_vle(true))
    }

    /// Tells the device that the packet ends with its check sequence.
    pub(crate) fn without_fcs(self) -> Self {
        Self(self.0.with_ifcs(false))
    }

    /// Writes the data descriptor for one buffer of the packet.
    #[inline(always)]
    pub(crate) fn write(
        self,
        ring: &Descriptors<'_>,
        index: usize,
        address: u64,
        len: u16,
        last: bool,
    ) {
        let word = self.0.with_dtalen(len).with_eop(last).with_rs(last);

        ring.write(index, [address, word.into_raw()]);
    }
}

/// Returns the descriptor of a frame in one buffer, of which nothing is asked but to send it.
#[inline(always)]
pub(crate) fn tx_whole_frame(address: u64, len: u16) -> [u64; 2] {
    let word = TxData::zeroed()
        .with_paylen(len)
        .with_dtalen(len)
        .with_dext(true)
        .with_ifcs(true)
        .with_eop(true)
        .with_rs(true)
        .with_const_dtyp::<DTYP_DATA>();

    [address, word.into_raw()]
}

/// Returns whether the device has sent the packet whose last descriptor is `index`.
#[inline(always)]
pub(crate) fn is_tx_done(ring: &Descriptors<'_>, index: usize) -> bool {
    TxData::from_raw(ring.status(index)).dd()
}

bitfield! {
    /// First word of an advanced transmit context descriptor.
    struct TxContextLow(u64) {
        /// The VLAN tag.
        31:16   vlan;
        /// Length of the Ethernet header.
        15:9    maclen;
        /// Length of the IP header.
        8:0     iplen;
    }
}

bitfield! {
    /// Second word of an advanced transmit context descriptor.
    struct TxContextHigh(u64) {
        /// Number of bytes of data in each segment.
        63:48   mss;
        /// Length of the transport header.
        47:40   l4len;
        /// Descriptor extension.
        29:29   dext => bool;
        /// Descriptor type.
        23:20   dtyp;
        /// Type of the transport layer.
        12:11   l4t;
        /// The network protocol is IPv4, else IPv6.
        10:10   ipv4 => bool;
    }
}

/// Offsets of the checksum in the headers of UDP, TCP and SCTP.
const UDP_CHECKSUM: u16 = 6;
const TCP_CHECKSUM: u16 = 16;
const SCTP_CHECKSUM: u16 = 8;

/// The least data in a segment: with less, a single packet would become very many.
const MIN_SEGMENT: u16 = 64;

/// The most bytes of headers in front of each segment. The datasheet limits their sum (7.2.3.2.3),
/// and that of the 82598 has a buffer of 240 bytes for them, into which a VLAN tag goes as well.
const MAX_SEGMENT_HEADERS: u32 = 240 - 4;

/// A context descriptor: where the checksum of the following packet starts and is stored, and how
/// the packet is split.
#[derive(Clone, Copy)]
pub(crate) struct TxContext {
    low: TxContextLow,
    high: TxContextHigh,
}

impl TxContext {
    /// Describes how to insert `checksum` into a packet whose network header is at
    /// `network_offset`.
    ///
    /// Returns [`None`] if the device cannot insert such a checksum.
    pub(crate) fn new(checksum: PartialChecksum, network_offset: u32) -> Option<Self> {
        // The device knows the offset of the checksum in the headers of these protocols.
        let l4t = match (checksum.kind, checksum.offset) {
            (ChecksumKind::Internet, UDP_CHECKSUM) => Bounded::<u64, 2>::new::<0>(),
            (ChecksumKind::Internet, TCP_CHECKSUM) => Bounded::<u64, 2>::new::<1>(),
            (ChecksumKind::Crc32c, SCTP_CHECKSUM) => Bounded::<u64, 2>::new::<2>(),
            _ => return None,
        };
        let iplen = checksum.start.checked_sub(network_offset)?;

        let low = TxContextLow::zeroed()
            .try_with_maclen(network_offset)
            .ok()?
            .try_with_iplen(iplen)
            .ok()?;
        let high = TxContextHigh::zeroed()
            .with_dext(true)
            .with_const_dtyp::<DTYP_CONTEXT>()
            .with_l4t(l4t);

        Some(Self { low, high })
    }

    /// Describes how to split a packet.
    ///
    /// Returns [`None`] if the device cannot do so.
    pub(crate) fn segmented(segmentation: &Segmentation) -> Option<Self> {
        let Segmentation { size, headers, .. } = *segmentation;
        let len = headers.saturating_add(size.into());
        if size < MIN_SEGMENT || headers > MAX_SEGMENT_HEADERS || len > TX_MAX_PACKET {
            return None;
        }
        let checksum = PartialChecksum {
            start: segmentation.transport,
            offset: match segmentation.protocol {
                SegmentedProtocol::Tcp => TCP_CHECKSUM,
                SegmentedProtocol::Udp => UDP_CHECKSUM,
            },
            kind: ChecksumKind::Internet,
        };
        let Self { low, high } = Self::new(checksum, segmentation.network)?;
        let l4len = segmentation.headers.checked_sub(segmentation.transport)?;

        Some(Self {
            low,
            high: high
                .try_with_l4len(l4len)
                .ok()?
                .with_mss(segmentation.size)
                .with_ipv4(segmentation.ipv4),
        })
    }

    /// Describes a packet of which nothing but the VLAN tag is to be inserted.
    ///
    /// Returns [`None`] if the device cannot do so.
    pub(crate) fn untouched(network_offset: u32) -> Option<Self> {
        Some(Self {
            low: TxContextLow::zeroed()
                .try_with_maclen(network_offset)
                .ok()?,
            high: TxContextHigh::zeroed()
                .with_dext(true)
                .with_const_dtyp::<DTYP_CONTEXT>(),
        })
    }

    /// Adds a VLAN tag, see [`TxTemplate::with_vlan`].
    pub(crate) fn with_vlan(self, tag: u16) -> Self {
        Self {
            low: self.low.with_vlan(tag),
            high: self.high,
        }
    }

    /// Writes the descriptor.
    #[inline(always)]
    pub(crate) fn write(self, ring: &Descriptors<'_>, index: usize) {
        ring.write(index, [self.low.into_raw(), self.high.into_raw()]);
    }
}

#[kunit_tests(ixgbe_rust_desc)]
mod tests {
    use super::*;

    const fn internet(start: u32, offset: u16) -> PartialChecksum {
        PartialChecksum {
            start,
            offset,
            kind: ChecksumKind::Internet,
        }
    }

    #[test]
    fn context_of_tcp() {
        let checksum = internet(34, 16);
        let Some(context) = TxContext::new(checksum, 14) else {
            panic!("the device can do TCP");
        };

        assert_eq!(context.low.into_raw(), 14 << 9 | 20);
        assert_eq!(context.high.into_raw(), 1 << 29 | 2 << 20 | 1 << 11);
    }

    #[test]
    fn context_of_sctp() {
        let checksum = PartialChecksum {
            start: 34,
            offset: 8,
            kind: ChecksumKind::Crc32c,
        };
        let Some(context) = TxContext::new(checksum, 14) else {
            panic!("the device can do SCTP");
        };

        assert_eq!(context.low.into_raw(), 14 << 9 | 20);
        assert_eq!(context.high.into_raw(), 1 << 29 | 2 << 20 | 2 << 11);
    }

    const SEGMENTATION: Segmentation = Segmentation {
        protocol: SegmentedProtocol::Tcp,
        ipv4: true,
        size: 1448,
        network: 14,
        network_len: 20,
        transport: 34,
        headers: 66,
    };

    #[test]
    fn context_of_segments() {
        let Some(context) = TxContext::segmented(&SEGMENTATION) else {
            panic!("the device can do TSO");
        };

        assert_eq!(context.low.into_raw(), 14 << 9 | 20);
        let types = 1 << 29 | 2 << 20 | 1 << 11 | 1 << 10;
        assert_eq!(context.high.into_raw(), 1448 << 48 | 32 << 40 | types);

        let tiny = Segmentation {
            size: MIN_SEGMENT - 1,
            ..SEGMENTATION
        };
        assert!(TxContext::segmented(&tiny).is_none());

        // Segments that are just short enough, and too long.
        let segments = |len: u32| Segmentation {
            size: (len - SEGMENTATION.headers) as u16,
            ..SEGMENTATION
        };
        assert!(TxContext::segmented(&segments(TX_MAX_PACKET)).is_some());
        assert!(TxContext::segmented(&segments(TX_MAX_PACKET + 1)).is_none());

        // IPv6 with extension headers, just short enough and too long.
        let long = |headers| Segmentation {
            ipv4: false,
            transport: headers - 20,
            headers,
            ..SEGMENTATION
        };
        assert!(TxContext::segmented(&long(MAX_SEGMENT_HEADERS)).is_some());
        // In a tunnel, the network header is one up to the transport header.
        let Some(context) = TxContext::segmented(&long(104)) else {
            panic!("the device can do TSO in tunnels");
        };
        assert_eq!(context.low.into_raw(), 14 << 9 | 70);
        assert!(TxContext::segmented(&long(MAX_SEGMENT_HEADERS + 1)).is_none());
    }

    #[test]
    fn data_of_segments() {
        let Some(template) = TxTemplate::segmented(66 + 4000, &SEGMENTATION) else {
            panic!("4000 bytes are not too long");
        };

        let commands = 0xa230_0000;
        assert_eq!(template.0.into_raw(), 4000 << 46 | 3 << 40 | commands);
        assert!(TxTemplate::segmented(65, &SEGMENTATION).is_none());
        // The headers do not count.
        assert!(TxTemplate::segmented(65 + (1 << 18), &SEGMENTATION).is_some());
        assert!(TxTemplate::segmented(66 + (1 << 18), &SEGMENTATION).is_none());
    }

    #[test]
    fn context_of_the_unknown() {
        // A sum where that of SCTP is, and a CRC where the sum of UDP is.
        assert!(TxContext::new(internet(34, 8), 14).is_none());
        let crc_of_udp = PartialChecksum {
            kind: ChecksumKind::Crc32c,
            ..internet(34, 6)
        };
        assert!(TxContext::new(crc_of_udp, 14).is_none());

        let backwards = internet(10, 16);
        assert!(TxContext::new(backwards, 14).is_none());

        let far = internet(14 + 512, 16);
        assert!(TxContext::new(far, 14).is_none());
    }

    #[test]
    fn data_of_a_short_packet() {
        let Some(template) = TxTemplate::new(60, false) else {
            panic!("60 bytes are not too long");
        };

        assert_eq!(template.0.into_raw(), 60 << 46 | 0x2230_0000);
        assert_eq!(template.without_fcs().0.into_raw(), 60 << 46 | 0x2030_0000);
        assert!(TxTemplate::new(1 << 18, false).is_none());
    }

    #[test]
    fn vlan_tags() {
        let context = TxContext::untouched(14).map(|context| context.with_vlan(0x6123));
        assert_eq!(
            context.map(|context| context.low.into_raw()),
            Some(0x6123 << 16 | 14 << 9)
        );
        let template = TxTemplate::new(60, false).map(TxTemplate::with_vlan);
        assert_eq!(
            template.map(|template| template.0.into_raw()),
            Some(60 << 46 | 0x6230_0000)
        );

        assert_eq!(
            RxStatus::from_raw(0x6123_003c_0000_000b).vlan_tag(),
            Some(0x6123)
        );
        assert_eq!(RxStatus::from_raw(0x6123_003c_0000_0003).vlan_tag(), None);
    }

    #[test]
    fn receive_hash() {
        let of = |kind: u64| RxInfo::from_raw(0x1234_5678_0000_0000 | kind).hash();

        assert_eq!(of(0), None);
        assert_eq!(of(1), Some(RxHash::L4(0x1234_5678)));
        assert_eq!(of(2), Some(RxHash::L3(0x1234_5678)));
        assert_eq!(of(5), Some(RxHash::L3(0x1234_5678)));
        assert_eq!(of(8), Some(RxHash::L4(0x1234_5678)));
    }

    #[test]
    fn lro_packets() {
        let info = RxInfo::from_raw(5 << 17);

        assert!(info.may_be_lro());
        assert_eq!(info.packets(), 4);
        assert_eq!(RxInfo::from_raw(1 << 17).packets(), 0);
        assert!(!RxInfo::from_raw(!(0xf << 17)).may_be_lro());
        assert_eq!(RxInfo::from_raw(0).packets(), 0);
        assert_eq!(RxStatus::from_raw(0x0001_2341).next_descriptor(), 0x1234);
        assert_eq!(RxStatus::from_raw(0xffff_0001).next_descriptor(), 0xf000);
    }

    #[test]
    fn receive_status() {
        let status = RxStatus::from_raw(0x0000_003c_0000_0063);

        assert!(status.dd() && status.eop());
        assert!(status.ipcs() && status.l4i());
        assert_eq!(status.pkt_len().get(), 60);
    }
}
