// SPDX-License-Identifier: GPL-2.0

//! Descriptor formats (datasheet 7.1.6 and 7.2.3).
//!
//! A descriptor consists of two 64-bit words. On write-back, the device writes the second one last.
//! So that word is read once, and every decision is made on that copy.

use kernel::{
    bitfield,
    net::{
        device::RingRange,
        inflight::{
            Descriptors,
            Limits, //
        },
        queue::RingSize,
        skbuff::{
            ChecksumKind,
            PartialChecksum,
            Segmentation, //
            SegmentedProtocol,
        }, //
    },
    num::Bounded,
    prelude::*, //
};

mod receive;

pub(crate) use self::receive::{
    RxInfo,
    RxStatus, //
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
        /// Stamp the packet when it leaves.
        19:19   tstamp => bool;
        /// Length of the buffer, in bytes.
        15:0    dtalen;
    }
}

/// [`TxData`]'s descriptor type.
const DTYP_DATA: u64 = 3;

/// [`TxContext`]'s descriptor type.
const DTYP_CONTEXT: u64 = 2;

/// The longest packet that becomes a frame: those have up to 15.5 KiB (datasheet 7.2.1.1), with the
/// check sequence and a tag. If the device is told to send more, it may stop.
pub(crate) const TX_MAX_PACKET: u32 = 15 * 1024 + 512 - 4 - 4;

/// The value of `TXDCTL.WTHRESH`: each completion is written back at once. A higher one could delay
/// the last one indefinitely.
///
/// In a queue in which not all packets are reported it has to be 0, as DPDK has it.
pub(crate) const TX_WRITE_BACK: u32 = 1;

/// The limits of a packet.
pub(crate) const TX_LIMITS: Limits = Limits {
    // The field has 16 bits, but the device takes 16 KiB, as `ixgbe` has it, too. A multiple of the
    // page size keeps the splitting aligned.
    segment_len: 0x4000,
    packet_len: TX_MAX_PACKET,
    // Datasheet 7.2.1.1.
    descriptors: 40 - TX_WRITE_BACK as usize - 2,
};

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

    /// Asks the device to stamp the packet when it leaves.
    pub(crate) fn with_timestamp(self) -> Self {
        Self(self.0.with_tstamp(true))
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

/// Returns the descriptor of a part of a frame, in one buffer, of which nothing is asked but to
/// send it. The frame has `total` bytes.
#[inline(always)]
pub(crate) fn tx_part(address: u64, len: u16, total: u16, is_last: bool) -> [u64; 2] {
    let word = TxData::zeroed()
        .with_paylen(total)
        .with_dtalen(len)
        .with_dext(true)
        .with_ifcs(true)
        .with_eop(is_last)
        .with_rs(is_last)
        .with_const_dtyp::<DTYP_DATA>();

    [address, word.into_raw()]
}

/// As [`tx_part`], of a frame in one buffer that the device does not report.
#[inline(always)]
pub(crate) fn tx_unreported(address: u64, len: u16) -> [u64; 2] {
    let [address, word] = tx_part(address, len, len, true);

    [address, TxData::from_raw(word).with_rs(false).into_raw()]
}

/// Returns the context descriptor for a frame that comes from elsewhere than the stack, into which
/// the device inserts a checksum over all bytes from `start` on, `offset` bytes behind that.
///
/// Returns [`None`] if the device cannot do so.
#[cold]
pub(crate) fn tx_checksum(start: u16, offset: u16) -> Option<[u64; 2]> {
    let checksum = PartialChecksum {
        start: start.into(),
        offset,
        kind: ChecksumKind::Internet,
    };
    // All that counts is the sum of both lengths: tags, if there are any, go with the second one.
    let TxContext { low, high } = TxContext::new(checksum, ETH_HLEN)?;

    Some([low.into_raw(), high.into_raw()])
}

/// As [`tx_part`], of a frame that follows such a descriptor.
#[cold]
pub(crate) fn with_checksum([address, word]: [u64; 2]) -> [u64; 2] {
    [address, TxData::from_raw(word).with_txsm(true).into_raw()]
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

/// Length of an Ethernet header.
const ETH_HLEN: u32 = 14;

/// The shortest header of IP: the device has a minimum, too (IPLEN), which is below that.
const IP_MIN_LEN: u32 = 20;

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
        if iplen < IP_MIN_LEN {
            return None;
        }

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
    fn checksum_of_users() {
        let expected = [14 << 9 | 24, 1 << 29 | 2 << 20 | 1 << 11];
        assert_eq!(tx_checksum(38, 16), Some(expected));
        assert_eq!(
            tx_checksum(14 + 511, 6),
            Some([14 << 9 | 511, 1 << 29 | 2 << 20])
        );
        for (start, offset) in [
            (13, 6),
            (33, 6),
            (14 + 512, 6),
            (34, 8),
            (34, 0),
            (u16::MAX, u16::MAX),
        ] {
            assert_eq!(tx_checksum(start, offset), None);
        }
        let words = tx_part(7, 60, 100, true);
        assert_eq!(with_checksum(words), [7, words[1] | 1 << 41]);
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

        // There is no header of IP.
        assert!(TxContext::new(internet(14, 16), 14).is_none());
        assert!(TxContext::new(internet(33, 16), 14).is_none());
        assert!(TxContext::new(internet(34, 16), 14).is_some());

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
        let stamped = template.with_timestamp().0.into_raw();
        assert_eq!(stamped, 60 << 46 | 0x2238_0000);
        assert!(TxTemplate::new(1 << 18, false).is_none());
    }

    #[test]
    fn data_of_parts() {
        let commands = 0x2230_0000;

        assert_eq!(
            tx_part(7, 3072, 5000, false),
            [7, 5000 << 46 | commands | 3072]
        );
        assert_eq!(
            tx_part(7, 1928, 5000, true),
            [7, 5000 << 46 | 0x900_0000 | commands | 1928]
        );
        assert_eq!(
            tx_unreported(7, 1500),
            [7, 1500 << 46 | 0x100_0000 | commands | 1500]
        );
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
    }
}
