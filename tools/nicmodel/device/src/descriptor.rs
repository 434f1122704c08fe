// SPDX-License-Identifier: GPL-2.0
//! The layouts of descriptors: 16 bytes each, here as two quadwords in memory order.
//!
//! Names are those of the data sheet: 7.1.5 legacy and 7.1.6 advanced receive descriptors, 7.2.3
//! transmit descriptors.

use arbitrary_int::{u4, u7, u9, u12, u18};
use bitbybit::{bitenum, bitfield};

/// Bytes of a descriptor of any kind.
pub const SIZE: u32 = 16;

/// A descriptor of any kind.
pub(crate) type Descriptor = [u64; 2];

/// The parts of a frame that its hash covers.
#[bitenum(u4, exhaustive = false)]
#[derive(Debug, PartialEq, Eq)]
pub enum RssType {
    /// The frame was not hashed.
    None = 0,
    /// IPv4 addresses and TCP ports.
    Ipv4Tcp = 1,
    /// IPv4 addresses.
    Ipv4 = 2,
    /// IPv6 addresses and TCP ports.
    Ipv6Tcp = 3,
    /// IPv6 addresses.
    Ipv6 = 5,
    /// IPv4 addresses and UDP ports.
    Ipv4Udp = 7,
    /// IPv6 addresses and UDP ports.
    Ipv6Udp = 8,
    /// None: in place of the hash is the filter that the frame matches.
    Filter = 15,
}

/// First quadword of an advanced receive write-back.
#[bitfield(u64, default = 0, debug)]
pub struct RxInfo {
    /// The parts that the hash covers.
    #[bits(0..=3, rw)]
    pub rss_type: Option<RssType>,
    /// The frame is IPv4.
    #[bit(4, rw)]
    pub ipv4: bool,
    /// The frame is IPv4 with options.
    #[bit(5, rw)]
    pub ipv4e: bool,
    /// The frame is IPv6.
    #[bit(6, rw)]
    pub ipv6: bool,
    /// It carries TCP.
    #[bit(8, rw)]
    pub tcp: bool,
    /// It carries UDP.
    #[bit(9, rw)]
    pub udp: bool,
    /// It carries SCTP.
    #[bit(10, rw)]
    pub sctp: bool,
    /// Packets that begin in this buffer, and one: 0 unless they are coalesced.
    #[bits(17..=20, rw)]
    pub rsccnt: u4,
    /// The RSS hash.
    #[bits(32..=63, rw)]
    pub rss_hash: u32,
}

/// Extended status and error of an advanced receive write-back.
#[bitfield(u32, default = 0, debug)]
pub struct RxStatus {
    /// Descriptor done.
    #[bit(0, rw)]
    pub dd: bool,
    /// The frame ends in this buffer.
    #[bit(1, rw)]
    pub eop: bool,
    /// The frame matches a filter of the flow director.
    #[bit(2, rw)]
    pub flm: bool,
    /// The descriptor with which a packet goes on that is coalesced. There only if it does.
    #[bits(4..=19, rw)]
    pub nextp: u16,
    /// A VLAN tag was stripped.
    #[bit(3, rw)]
    pub vp: bool,
    /// The UDP checksum was calculated.
    #[bit(4, rw)]
    pub udpcs: bool,
    /// The transport checksum was calculated.
    #[bit(5, rw)]
    pub l4cs: bool,
    /// The IPv4 checksum was calculated.
    #[bit(6, rw)]
    pub ipcs: bool,
    /// All error bits.
    #[bits(20..=31, rw)]
    pub errors: u12,
    /// The transport checksum is wrong.
    #[bit(30, rw)]
    pub l4e: bool,
    /// The IPv4 checksum is wrong.
    #[bit(31, rw)]
    pub ipe: bool,
}

/// Second quadword of an advanced receive write-back.
#[bitfield(u64, default = 0, debug)]
pub struct RxResult {
    /// Status and errors.
    #[bits(0..=31, rw)]
    pub status: RxStatus,
    /// Bytes in this buffer.
    #[bits(32..=47, rw)]
    pub pkt_len: u16,
    /// The tag that was stripped.
    #[bits(48..=63, rw)]
    pub vlan: u16,
}

/// Second quadword of a legacy receive write-back.
#[bitfield(u64, default = 0, debug)]
pub struct RxLegacy {
    /// Bytes in this buffer.
    #[bits(0..=15, rw)]
    pub length: u16,
    /// The low byte of the status.
    #[bits(32..=39, rw)]
    pub status: u8,
    /// The end of packet bit of that.
    #[bit(33, rw)]
    pub eop: bool,
    /// The transport checksum is wrong.
    #[bit(46, rw)]
    pub l4e: bool,
    /// The IPv4 checksum is wrong.
    #[bit(47, rw)]
    pub ipe: bool,
    /// The tag that was stripped.
    #[bits(48..=63, rw)]
    pub vlan: u16,
}

/// Kind of an advanced transmit descriptor.
#[bitenum(u4, exhaustive = false)]
#[derive(Debug, PartialEq, Eq)]
pub enum TxType {
    /// Parameters of offloads.
    Context = 2,
    /// A buffer.
    Data = 3,
}

/// Second quadword of a transmit data descriptor; the first one is the address of the buffer.
#[bitfield(u64, default = 0, debug)]
pub struct TxData {
    /// Bytes in the buffer.
    #[bits(0..=15, rw)]
    pub dtalen: u16,
    /// Kind of descriptor.
    #[bits(20..=23, rw)]
    pub dtyp: Option<TxType>,
    /// The packet ends here.
    #[bit(24, rw)]
    pub eop: bool,
    /// Insert the FCS.
    #[bit(25, rw)]
    pub ifcs: bool,
    /// Report the status.
    #[bit(27, rw)]
    pub rs: bool,
    /// The descriptor is an advanced one.
    #[bit(29, rw)]
    pub dext: bool,
    /// Insert the VLAN tag of the context.
    #[bit(30, rw)]
    pub vle: bool,
    /// Cut the packet into segments.
    #[bit(31, rw)]
    pub tse: bool,
    /// Descriptor done: the reported status.
    #[bit(32, rw)]
    pub dd: bool,
    /// Which of the two contexts holds the parameters.
    #[bit(36, rw)]
    pub idx: bool,
    /// Check context: the packet uses fields of its context other than those of offloads.
    #[bit(39, rw)]
    pub cc: bool,
    /// Insert the IPv4 checksum.
    #[bit(40, rw)]
    pub ixsm: bool,
    /// Insert the transport checksum.
    #[bit(41, rw)]
    pub txsm: bool,
    /// Bytes of the whole packet, or with segmentation of its payload.
    #[bits(46..=63, rw)]
    pub paylen: u18,
}

/// Second quadword of a legacy transmit descriptor, as far as it differs from [`TxData`].
#[bitfield(u64, default = 0, debug)]
pub struct TxLegacy {
    /// Where the checksum goes, in bytes from the start of the packet.
    #[bits(16..=23, rw)]
    pub cso: u8,
    /// Insert a checksum.
    #[bit(26, rw)]
    pub ic: bool,
    /// Insert the VLAN tag.
    #[bit(30, rw)]
    pub vle: bool,
    /// Where the sum starts, in bytes from the start of the packet.
    #[bits(40..=47, rw)]
    pub css: u8,
    /// The tag.
    #[bits(48..=63, rw)]
    pub vlan: u16,
}

/// First quadword of a transmit context descriptor.
#[bitfield(u64, default = 0, debug)]
pub struct TxContextLow {
    /// Bytes of the IP header.
    #[bits(0..=8, rw)]
    pub iplen: u9,
    /// Bytes of the MAC header.
    #[bits(9..=15, rw)]
    pub maclen: u7,
    /// The tag to insert.
    #[bits(16..=31, rw)]
    pub vlan: u16,
}

/// Second quadword of a transmit context descriptor.
#[bitfield(u64, default = 0, debug)]
pub struct TxContextHigh {
    /// The packet is IPv4.
    #[bit(10, rw)]
    pub ipv4: bool,
    /// Transport protocol.
    #[bits(11..=12, rw)]
    pub l4t: Transport,
    /// Kind of descriptor.
    #[bits(20..=23, rw)]
    pub dtyp: Option<TxType>,
    /// The descriptor is an advanced one.
    #[bit(29, rw)]
    pub dext: bool,
    /// Which of the two contexts this sets.
    #[bit(36, rw)]
    pub idx: bool,
    /// Bytes of the transport header.
    #[bits(40..=47, rw)]
    pub l4len: u8,
    /// Most bytes of payload in one segment.
    #[bits(48..=63, rw)]
    pub mss: u16,
}

/// Transport protocol of a context.
#[bitenum(u2, exhaustive = true)]
#[derive(Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// UDP.
    #[default]
    Udp = 0,
    /// TCP.
    Tcp = 1,
    /// SCTP.
    Sctp = 2,
    /// Not defined.
    Reserved = 3,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_bits_are_where_the_data_sheet_has_them() {
        for (raw, bit) in [
            (RxStatus::ZERO.with_dd(true).raw_value(), 0),
            (RxStatus::ZERO.with_eop(true).raw_value(), 1),
            (RxStatus::ZERO.with_vp(true).raw_value(), 3),
            (RxStatus::ZERO.with_udpcs(true).raw_value(), 4),
            (RxStatus::ZERO.with_l4cs(true).raw_value(), 5),
            (RxStatus::ZERO.with_ipcs(true).raw_value(), 6),
            (RxStatus::ZERO.with_l4e(true).raw_value(), 30),
            (RxStatus::ZERO.with_ipe(true).raw_value(), 31),
        ] {
            assert_eq!(raw, 1_u32 << bit, "bit {bit}");
        }
        for (raw, bit) in [
            (RxInfo::ZERO.with_ipv4(true).raw_value(), 4),
            (RxInfo::ZERO.with_ipv4e(true).raw_value(), 5),
            (RxInfo::ZERO.with_ipv6(true).raw_value(), 6),
            (RxInfo::ZERO.with_tcp(true).raw_value(), 8),
            (RxInfo::ZERO.with_udp(true).raw_value(), 9),
            (RxInfo::ZERO.with_sctp(true).raw_value(), 10),
            (RxLegacy::ZERO.with_eop(true).raw_value(), 33),
            (RxLegacy::ZERO.with_l4e(true).raw_value(), 46),
            (RxLegacy::ZERO.with_ipe(true).raw_value(), 47),
            (TxData::ZERO.with_eop(true).raw_value(), 24),
            (TxData::ZERO.with_ifcs(true).raw_value(), 25),
            (TxData::ZERO.with_rs(true).raw_value(), 27),
            (TxData::ZERO.with_dext(true).raw_value(), 29),
            (TxData::ZERO.with_vle(true).raw_value(), 30),
            (TxData::ZERO.with_tse(true).raw_value(), 31),
            (TxData::ZERO.with_dd(true).raw_value(), 32),
            (TxData::ZERO.with_idx(true).raw_value(), 36),
            (TxData::ZERO.with_ixsm(true).raw_value(), 40),
            (TxData::ZERO.with_txsm(true).raw_value(), 41),
            (TxLegacy::ZERO.with_ic(true).raw_value(), 26),
            (TxLegacy::ZERO.with_vle(true).raw_value(), 30),
            (TxContextHigh::ZERO.with_ipv4(true).raw_value(), 10),
            (TxContextHigh::ZERO.with_dext(true).raw_value(), 29),
            (TxContextHigh::ZERO.with_idx(true).raw_value(), 36),
        ] {
            assert_eq!(raw, 1_u64 << bit, "bit {bit}");
        }
    }

    #[test]
    fn wider_fields_are_where_the_data_sheet_has_them() {
        let context = TxContextLow::ZERO
            .with_iplen(u9::new(20))
            .with_maclen(u7::new(14))
            .with_vlan(7);
        assert_eq!(context.raw_value(), 7 << 16 | 14 << 9 | 20);
        let context = TxContextHigh::ZERO
            .with_l4t(Transport::Tcp)
            .with_dtyp(TxType::Context)
            .with_l4len(20)
            .with_mss(1448);
        assert_eq!(
            context.raw_value(),
            1448 << 48 | 20 << 40 | 2 << 20 | 1 << 11
        );
        let data = TxData::ZERO
            .with_dtalen(60)
            .with_dtyp(TxType::Data)
            .with_paylen(u18::new(60));
        assert_eq!(data.raw_value(), 60 << 46 | 3 << 20 | 60);
        let legacy = TxLegacy::ZERO.with_cso(40).with_css(34).with_vlan(5);
        assert_eq!(legacy.raw_value(), 5 << 48 | 34 << 40 | 40 << 16);
        let result = RxResult::ZERO.with_pkt_len(100).with_vlan(5);
        assert_eq!(result.raw_value(), 5 << 48 | 100 << 32);
        let info = RxInfo::ZERO
            .with_rss_hash(9)
            .with_rss_type(RssType::Ipv6Udp);
        assert_eq!(info.raw_value(), 9 << 32 | 8);
    }
}
