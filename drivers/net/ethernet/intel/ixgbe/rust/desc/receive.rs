// SPDX-License-Identifier: GPL-2.0

//! Advanced receive descriptors as the device writes them back (datasheet 7.1.6).

use kernel::{
    bitfield,
    net::{
        rx_list::Protocol,
        skbuff::RxHash,
        xdp::Hashed, //
    },
    prelude::*, //
};

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
        /// The frame was stamped when it came.
        16:16   ts => bool;
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

    /// Returns the fields that the hash is over, if there is one, and the kind is not reserved.
    #[inline]
    pub(crate) fn hashed(self) -> Option<Hashed> {
        match self.rss_type().get() {
            1 => Some(Hashed::Ipv4Tcp),
            2 => Some(Hashed::Ipv4),
            3 => Some(Hashed::Ipv6Tcp),
            5 => Some(Hashed::Ipv6),
            7 => Some(Hashed::Ipv4Udp),
            8 => Some(Hashed::Ipv6Udp),
            _ => None,
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

    /// Returns whether this is the last buffer of a frame without any error bit, nor a time stamp.
    ///
    /// This is for the fast path and errs on the safe side: an error bit counts even if the bit
    /// that makes it valid is clear.
    #[inline(always)]
    pub(crate) fn is_whole_and_good(self) -> bool {
        self.into_raw() & (Self::EOP_MASK | Self::ERRORS | Self::TS_MASK) == Self::EOP_MASK
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
        let mask = Self::EOP_MASK | Self::ERRORS | Self::TS_MASK | Self::VP_MASK;

        self.into_raw() & mask == Self::EOP_MASK
    }
}

#[kunit_tests(ixgbe_rust_desc_receive)]
mod tests {
    use super::*;

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

    #[test]
    fn stripped_tags() {
        assert_eq!(
            RxStatus::from_raw(0x6123_003c_0000_000b).vlan_tag(),
            Some(0x6123)
        );
        assert_eq!(RxStatus::from_raw(0x6123_003c_0000_0003).vlan_tag(), None);
    }
}
