// SPDX-License-Identifier: GPL-2.0
//! The layouts of descriptors: 16 bytes each, here as two quadwords in memory order.
//!
//! Names are those of the data sheet: 7.1.5 legacy and 7.1.6 advanced receive descriptors, 7.2.3
//! transmit descriptors.

use arbitrary_int::{u4, u7, u9, u12, u18};
use bitbybit::{bitenum, bitfield};

use crate::regs::bits::bitfields;

/// Bytes of a descriptor of any kind.
pub const SIZE: u32 = 16;

/// A descriptor of any kind.
pub(crate) type Descriptor = [u64; 2];

bitfields! { #[bitfield(u64, default = 0, debug)]
    /// First quadword of an advanced receive write-back.
    RxInfo {
        /// The parts that the hash covers.
        rss_type: Option<RssType> = 0..=3,
        /// The frame is IPv4.
        ipv4 @ 4,
        /// The frame is IPv4 with options.
        ipv4e @ 5,
        /// The frame is IPv6.
        ipv6 @ 6,
        /// It carries TCP.
        tcp @ 8,
        /// It carries UDP.
        udp @ 9,
        /// It carries SCTP.
        sctp @ 10,
        /// Packets that begin in this buffer, and one: 0 unless they are coalesced.
        rsccnt: u4 = 17..=20,
        /// The RSS hash.
        rss_hash: u32 = 32..=63,
    }

    /// Second quadword of an advanced receive write-back.
    RxResult {
        /// Status and errors.
        status: RxStatus = 0..=31,
        /// Bytes in this buffer.
        pkt_len: u16 = 32..=47,
        /// The tag that was stripped.
        vlan: u16 = 48..=63,
    }

    /// Second quadword of a legacy receive write-back.
    RxLegacy {
        /// Bytes in this buffer.
        length: u16 = 0..=15,
        /// The low byte of the status.
        status: u8 = 32..=39,
        /// The end of packet bit of that.
        eop @ 33,
        /// The transport checksum is wrong.
        l4e @ 46,
        /// The IPv4 checksum is wrong.
        ipe @ 47,
        /// The tag that was stripped.
        vlan: u16 = 48..=63,
    }

    /// Second quadword of a transmit data descriptor; the first one is the address of the buffer.
    TxData {
        /// Bytes in the buffer.
        dtalen: u16 = 0..=15,
        /// Stamp the frame when it leaves.
        tstamp @ 19,
        /// Kind of descriptor.
        dtyp: Option<TxType> = 20..=23,
        /// The packet ends here.
        eop @ 24,
        /// Insert the FCS.
        ifcs @ 25,
        /// Report the status.
        rs @ 27,
        /// The descriptor is an advanced one.
        dext @ 29,
        /// Insert the VLAN tag of the context.
        vle @ 30,
        /// Cut the packet into segments.
        tse @ 31,
        /// Descriptor done: the reported status.
        dd @ 32,
        /// Which of the two contexts holds the parameters.
        idx @ 36,
        /// Check context: the packet uses fields of its context other than those of offloads.
        cc @ 39,
        /// Insert the IPv4 checksum.
        ixsm @ 40,
        /// Insert the transport checksum.
        txsm @ 41,
        /// Bytes of the whole packet, or with segmentation of its payload.
        paylen: u18 = 46..=63,
    }

    /// Second quadword of a legacy transmit descriptor, as far as it differs from [`TxData`].
    TxLegacy {
        /// Where the checksum goes, in bytes from the start of the packet.
        cso: u8 = 16..=23,
        /// Insert a checksum.
        ic @ 26,
        /// Insert the VLAN tag.
        vle @ 30,
        /// Where the sum starts, in bytes from the start of the packet.
        css: u8 = 40..=47,
        /// The tag.
        vlan: u16 = 48..=63,
    }

    /// First quadword of a transmit context descriptor.
    TxContextLow {
        /// Bytes of the IP header.
        iplen: u9 = 0..=8,
        /// Bytes of the MAC header.
        maclen: u7 = 9..=15,
        /// The tag to insert.
        vlan: u16 = 16..=31,
    }

    /// Second quadword of a transmit context descriptor.
    TxContextHigh {
        /// The packet is IPv4.
        ipv4 @ 10,
        /// Transport protocol.
        l4t: Transport = 11..=12,
        /// Kind of descriptor.
        dtyp: Option<TxType> = 20..=23,
        /// The descriptor is an advanced one.
        dext @ 29,
        /// Which of the two contexts this sets.
        idx @ 36,
        /// Bytes of the transport header.
        l4len: u8 = 40..=47,
        /// Most bytes of payload in one segment.
        mss: u16 = 48..=63,
    }
}

bitfields! { #[bitfield(u32, default = 0, debug)]
    /// Extended status and error of an advanced receive write-back.
    RxStatus {
        /// Descriptor done.
        dd @ 0,
        /// The frame ends in this buffer.
        eop @ 1,
        /// The frame matches a filter of the flow director.
        flm @ 2,
        /// The descriptor with which a packet goes on that is coalesced. There only if it does.
        nextp: u16 = 4..=19,
        /// A VLAN tag was stripped.
        vp @ 3,
        /// The UDP checksum was calculated.
        udpcs @ 4,
        /// The transport checksum was calculated.
        l4cs @ 5,
        /// The IPv4 checksum was calculated.
        ipcs @ 6,
        /// The frame has a time stamp.
        ts @ 16,
        /// All error bits.
        errors: u12 = 20..=31,
        /// The transport checksum is wrong.
        l4e @ 30,
        /// The IPv4 checksum is wrong.
        ipe @ 31,
    }
}

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

/// Kind of an advanced transmit descriptor.
#[bitenum(u4, exhaustive = false)]
#[derive(Debug, PartialEq, Eq)]
pub enum TxType {
    /// Parameters of offloads.
    Context = 2,
    /// A buffer.
    Data = 3,
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
mod tests;
