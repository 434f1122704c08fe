// SPDX-License-Identifier: GPL-2.0

//! Packets that the NIC splits into several (TSO, USO).
//!
//! The stack passes a NIC that can do so the headers and data of several segments as one packet.
//! The NIC sends the headers in front of each piece of the data, with the fields changed that
//! differ: lengths, checksums, the identification of IPv4, the sequence number and flags of TCP.
//!
//! For packets in tunnels, the NIC need not know of these (GSO partial): the stack sees to it that
//! all segments have the same headers between the outer network header and the inner transport
//! header. The NIC takes them for a part of the network header.

use super::{
    offload::{
        ChecksumKind,
        PartialChecksum, //
    },
    SkBuff, //
};
use crate::{
    bindings,
    error::to_result,
    prelude::*, //
};

/// The transport protocol of a packet that the NIC splits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentedProtocol {
    /// TCP: each segment has a part of the stream.
    Tcp,
    /// UDP: each segment is a datagram of its own.
    Udp,
}

/// How the NIC is to split a packet.
///
/// All headers are in the linear part of the packet. Offsets count from the first byte of
/// [`SkBuff::data`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segmentation {
    /// The transport protocol.
    pub protocol: SegmentedProtocol,
    /// The network protocol is IPv4, else IPv6.
    pub ipv4: bool,
    /// Number of bytes of data in each segment; the last one may have fewer. Not zero.
    pub size: u16,
    /// Offset of the network header, the outer one in a tunnel. Labels of MPLS are in front of it.
    pub network: u32,
    /// Length of the network header. The headers of a tunnel and the inner network header follow,
    /// up to the transport header.
    pub network_len: u32,
    /// Offset of the transport header.
    pub transport: u32,
    /// Offset of the data: the length of all headers together.
    pub headers: u32,
}

// CAST: Single bits.

const TCP_IPV4: u32 = bindings::SKB_GSO_TCPV4 as u32;
const TCP_IPV6: u32 = bindings::SKB_GSO_TCPV6 as u32;
const UDP: u32 = bindings::SKB_GSO_UDP_L4 as u32;
/// The packet is from an untrusted source. The stack has verified it.
const DODGY: u32 = bindings::SKB_GSO_DODGY as u32;
/// The packets that were merged into this one had the same identification of IPv4, in the outer or
/// inner header. The stack passes it only to a NIC that may change it.
const FIXED_ID: u32 =
    bindings::SKB_GSO_TCP_FIXEDID as u32 | bindings::SKB_GSO_TCP_FIXEDID_INNER as u32;
/// The headers of a tunnel are the same in all segments.
const PARTIAL: u32 = bindings::SKB_GSO_PARTIAL as u32;
const TUNNELS: u32 = bindings::SKB_GSO_GRE as u32
    | bindings::SKB_GSO_GRE_CSUM as u32
    | bindings::SKB_GSO_IPXIP4 as u32
    | bindings::SKB_GSO_IPXIP6 as u32
    | bindings::SKB_GSO_UDP_TUNNEL as u32
    | bindings::SKB_GSO_UDP_TUNNEL_CSUM as u32;

/// Offsets in headers.
const IPV4_TOTAL_LEN: usize = 2;
const IPV4_CHECKSUM: usize = 10;
const IPV6_PAYLOAD_LEN: usize = 4;
const TCP_DATA_OFFSET: usize = 12;
const TCP_CHECKSUM: u16 = 16;
const UDP_CHECKSUM: u16 = 6;

const IPV4_MIN_LEN: u32 = 20;
const IPV6_MIN_LEN: u32 = 40;
const TCP_MIN_LEN: u32 = 20;
const UDP_LEN: u32 = 8;

impl Segmentation {
    /// Reads the headers in `data`, the linear part of a packet.
    ///
    /// Returns [`None`] if they are not what `gso_type` and `checksum` say.
    fn of(
        data: &[u8],
        gso_type: u32,
        size: u16,
        network: u32,
        checksum: PartialChecksum,
    ) -> Option<Self> {
        if checksum.kind != ChecksumKind::Internet {
            return None;
        }
        let transport = checksum.start;
        let header = data.get(transport as usize..)?;
        let inner_type = gso_type & !(DODGY | FIXED_ID | PARTIAL | TUNNELS);
        let (protocol, len) = match (inner_type, checksum.offset) {
            (TCP_IPV4 | TCP_IPV6, TCP_CHECKSUM) => {
                let words = u32::from(*header.get(TCP_DATA_OFFSET)? >> 4);
                (SegmentedProtocol::Tcp, (4 * words).max(TCP_MIN_LEN))
            }
            (UDP, UDP_CHECKSUM) => (SegmentedProtocol::Udp, UDP_LEN),
            _ => return None,
        };
        let first = *data.get(network as usize)?;
        let (ipv4, min_len) = match first >> 4 {
            4 => (true, (4 * u32::from(first & 0xf)).max(IPV4_MIN_LEN)),
            6 => (false, IPV6_MIN_LEN),
            _ => return None,
        };
        let max_len = transport.checked_sub(network)?;
        let network_len = if gso_type & TUNNELS != 0 {
            min_len
        } else {
            max_len
        };

        // CAST: `usize` has at least 32 bits wherever the kernel runs.
        if max_len < min_len || header.len() < len as usize {
            return None;
        }
        Some(Self {
            protocol,
            ipv4,
            size,
            network,
            network_len,
            transport,
            headers: transport + len,
        })
    }

    /// Writes the initial values to the headers that a NIC expects, see
    /// [`SkBuff::seed_segments`]. `len` is the length of the packet.
    fn seed(&self, headers: &mut [u8], len: u32) -> Option<()> {
        let (network, tunnel) = headers
            .get_mut(self.network as usize..self.transport as usize)?
            .split_at_mut_checked(self.network_len as usize)?;
        if self.ipv4 {
            // The NIC sums up the tunnel as well: this cancels it.
            let checksum = if tunnel.is_empty() { 0 } else { !sum(tunnel) };

            *network.get_mut(IPV4_TOTAL_LEN..)?.first_chunk_mut()? = [0; 2];
            *network.get_mut(IPV4_CHECKSUM..)?.first_chunk_mut()? = checksum.to_be_bytes();
        } else {
            *network.get_mut(IPV6_PAYLOAD_LEN..)?.first_chunk_mut()? = [0; 2];
        }

        let offset = match self.protocol {
            SegmentedProtocol::Tcp => TCP_CHECKSUM,
            SegmentedProtocol::Udp => UDP_CHECKSUM,
        };
        let field = headers
            .get_mut(self.transport as usize..)?
            .get_mut(usize::from(offset)..)?
            .first_chunk_mut()?;
        // The sum of the pseudo header, which has the length of the whole packet in it.
        let sum = u16::from_be_bytes(*field);
        let len = fold(len.checked_sub(self.transport)?);
        *field = fold(u32::from(sum) + u32::from(!len)).to_be_bytes();
        Some(())
    }
}

/// Folds a sum into 16 bits, as checksums of the Internet protocols are.
fn fold(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);

    // CAST: Not more than 0xffff: if the addition carries, the rest is small.
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// The sum of a few bytes, as in checksums of the Internet protocols. Not more than 64 KiB.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|word| u16::from_be_bytes([word[0], *word.get(1).unwrap_or(&0)]));

    fold(words.map(u32::from).fold(0, u32::wrapping_add))
}

impl SkBuff {
    /// How the NIC has to split the packet.
    ///
    /// Returns [`None`] if it is one packet, see [`Self::gso_size`], or one that is split in a way
    /// that is not known here. The stack passes those only to NICs that have features for them.
    pub fn segmentation(&self) -> Option<Segmentation> {
        let size = self.gso_size()?;
        // SAFETY: The shared info of a valid packet is valid.
        let gso_type = unsafe { (*self.shared_info()).gso_type };

        Segmentation::of(
            self.data(),
            gso_type,
            size,
            self.unlabelled_offset(),
            self.partial_checksum()?,
        )
    }

    /// Prepares the headers of a packet that the NIC is to split, as most NICs want them.
    ///
    /// The length in the network header becomes zero, as does the checksum of IPv4; in a tunnel,
    /// this becomes what makes up for the further headers, which the NIC takes for a part of this
    /// one. The transport checksum becomes the sum of the pseudo header without a length, so that
    /// the NIC only has to add each segment's own. Headers that are shared with a clone are
    /// copied, which TCP's are not. To be called before the packet is mapped.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if [`Self::segmentation`] is [`None`], or the packet is in a tunnel and the stack
    /// has not prepared it, see [`Info::tunnels`](crate::net::device::Info::tunnels); [`EBUSY`] if
    /// there are other references to the packet, or as for [`SkBuff::pad_to`]; [`ENOMEM`] if there
    /// is no memory. The packet is dropped.
    pub fn seed_segments(self) -> Result<(Self, Segmentation)> {
        if self.is_shared() || !self.can_be_copied() {
            return Err(EBUSY);
        }

        // SAFETY: The packet is valid, and there is no other reference to it.
        to_result(unsafe { bindings::skb_cow_head(self.as_raw(), 0) })?;
        // SAFETY: The shared info of a valid packet is valid.
        let gso_type = unsafe { (*self.shared_info()).gso_type };
        if gso_type & TUNNELS != 0 && gso_type & PARTIAL == 0 {
            return Err(EINVAL);
        }
        let segmentation = self.segmentation().ok_or(EINVAL)?;

        // SAFETY: The headers are in the linear part, of which they are the beginning. They are not
        // shared: clones that have only a reference to the data do not access them.
        let headers = unsafe {
            core::slice::from_raw_parts_mut((*self.as_raw()).data, segmentation.headers as usize)
        };
        segmentation.seed(headers, self.len()).ok_or(EINVAL)?;
        Ok((self, segmentation))
    }
}

#[kunit_tests(rust_skbuff_segmentation)]
mod tests {
    use super::*;
    use crate::net::skbuff::{
        set_protocol,
        UniqueSkBuff, //
    };

    const ETH: usize = 14;

    /// Makes the headers of a TCP packet over IPv4, with 12 bytes of options and `rest` of data.
    fn tcp_ipv4(rest: usize) -> Result<KVec<u8>> {
        let mut data = KVec::from_elem(0, ETH + 20 + 32 + rest, GFP_KERNEL)?;
        data[ETH] = 0x45;
        data[ETH + IPV4_TOTAL_LEN] = 0x12;
        data[ETH + IPV4_CHECKSUM] = 0x34;
        data[ETH + 20 + TCP_DATA_OFFSET] = 0x80;
        Ok(data)
    }

    fn of(data: &[u8], gso_type: u32, start: u32, offset: u16) -> Option<Segmentation> {
        let checksum = PartialChecksum {
            start,
            offset,
            kind: ChecksumKind::Internet,
        };
        Segmentation::of(data, gso_type, 1448, 14, checksum)
    }

    #[test]
    fn headers_of_tcp() -> Result {
        let data = tcp_ipv4(5)?;
        let found = of(&data, TCP_IPV4, 34, TCP_CHECKSUM);

        assert_eq!(
            found,
            Some(Segmentation {
                protocol: SegmentedProtocol::Tcp,
                ipv4: true,
                size: 1448,
                network: 14,
                network_len: 20,
                transport: 34,
                headers: 66,
            })
        );
        Ok(())
    }

    #[test]
    fn headers_that_do_not_fit() -> Result {
        let mut data = tcp_ipv4(0)?;

        // Another protocol; a checksum elsewhere; no IPv4 header in front of it.
        assert!(of(&data, bindings::SKB_GSO_SCTP as u32, 34, 8).is_none());
        assert!(of(&data, TCP_IPV4, 34, UDP_CHECKSUM).is_none());
        assert!(of(&data, TCP_IPV4, 33, TCP_CHECKSUM).is_none());
        assert!(of(&data, TCP_IPV4, u32::MAX, TCP_CHECKSUM).is_none());
        assert!(of(&data, TCP_IPV4, 10, TCP_CHECKSUM).is_none());
        // The header ends behind the linear part.
        assert!(of(&data[..65], TCP_IPV4, 34, TCP_CHECKSUM).is_none());
        // The network header is longer than its place.
        data[ETH] = 0x46;
        assert!(of(&data, TCP_IPV4, 34, TCP_CHECKSUM).is_none());
        // IPv6 needs 40 bytes.
        data[ETH] = 0x60;
        assert!(of(&data, TCP_IPV6, 34, TCP_CHECKSUM).is_none());
        Ok(())
    }

    #[test]
    fn headers_of_udp() -> Result {
        let mut data = tcp_ipv4(0)?;
        data[ETH] = 0x60;

        let udp = of(&data, UDP, 54, UDP_CHECKSUM);
        assert!(udp.is_some_and(|udp| {
            !udp.ipv4 && udp.protocol == SegmentedProtocol::Udp && udp.headers == 62
        }));
        Ok(())
    }

    /// Makes a packet of TCP that is to be split, with labels of MPLS, and a VLAN tag in its data
    /// if there is one.
    fn labelled(tag: &[u8], labels: &[u8]) -> Result<SkBuff> {
        const MPLS: [u8; 2] = [0x88, 0x47];
        let mut skb = UniqueSkBuff::alloc(128, GFP_KERNEL)?;
        let (network, inner) = (ETH + tag.len(), ETH + tag.len() + labels.len());

        skb.put(&[0; ETH - 2])?;
        skb.put(tag)?;
        skb.put(&MPLS)?;
        skb.put(labels)?;
        skb.put(&tcp_ipv4(0)?[ETH..])?;
        let protocol = tag.first_chunk().unwrap_or(&MPLS);
        set_protocol(&mut skb, u16::from_ne_bytes(*protocol));
        // SAFETY: The packet is ours. CAST: Small numbers.
        unsafe {
            let start = (*skb.as_raw())
                .data
                .offset_from_unsigned((*skb.as_raw()).head);
            let header = &raw mut (*skb.as_raw()).__bindgen_anon_4.__bindgen_anon_1;
            let header = header.cast::<bindings::sk_buff__bindgen_ty_4__bindgen_ty_1>();
            let csum = &mut (*header).__bindgen_anon_1.__bindgen_anon_1;

            csum.csum_start = (start + inner + 20) as u16;
            csum.csum_offset = TCP_CHECKSUM;
            (*header).set_ip_summed(bindings::CHECKSUM_PARTIAL as u8);
            (*header).mac_header = start as u16;
            (*header).network_header = (start + network) as u16;
            (*header).inner_network_header = (start + inner) as u16;
            (*skb.as_raw()).mac_len = network as u16;
            (*skb.shared_info()).gso_size = 1448;
            (*skb.shared_info()).gso_type = TCP_IPV4;
        }
        Ok(SkBuff::from(skb))
    }

    #[test]
    fn labels_are_in_front_of_the_network_header() -> Result {
        const TAG: &[u8] = &[0x81, 0, 0, 5];
        // One that looks like an IP header of this version.
        const LABELS: &[u8] = &[0x45, 0, 0, 64, 0, 0, 0x11, 64];

        for (tag, labels) in [(&[][..], &LABELS[..4]), (&[], LABELS), (TAG, LABELS)] {
            let skb = labelled(tag, labels)?;
            let network = (ETH + tag.len() + labels.len()) as u32;
            let found = skb.segmentation().ok_or(EINVAL)?;

            assert_eq!(
                (found.network, found.network_len, found.headers),
                (network, 20, network + 52)
            );
            assert_eq!(skb.network_offset(), network - labels.len() as u32);
        }
        Ok(())
    }

    const VXLAN: u32 = TCP_IPV4 | bindings::SKB_GSO_UDP_TUNNEL as u32;
    /// The headers of UDP, VXLAN, Ethernet and IPv4.
    const TUNNEL: usize = 8 + 8 + 14 + 20;

    /// Makes the headers of a TCP packet in a tunnel over IPv4.
    fn tunnel() -> Result<KVec<u8>> {
        let mut data = KVec::from_elem(0, ETH + 20 + TUNNEL + 20, GFP_KERNEL)?;
        data[ETH] = 0x45;
        data[ETH + IPV4_TOTAL_LEN] = 0x12;
        for (number, byte) in data[ETH + 20..][..TUNNEL].iter_mut().enumerate() {
            *byte = (7 * number) as u8;
        }
        data[ETH + 20 + TUNNEL + TCP_DATA_OFFSET] = 0x50;
        Ok(data)
    }

    #[test]
    fn headers_of_a_tunnel() -> Result {
        let mut data = tunnel()?;
        for gso_type in [VXLAN, VXLAN | PARTIAL, VXLAN | PARTIAL | FIXED_ID] {
            let found = of(&data, gso_type, 34 + TUNNEL as u32, TCP_CHECKSUM).ok_or(EINVAL)?;
            assert_eq!((found.network, found.network_len), (14, 20));
            assert_eq!((found.transport, found.headers), (84, 104));
        }
        // The inner one of IPv6 is as long.
        data[ETH] = 0x60;
        let found = of(&data, VXLAN, 34 + TUNNEL as u32, TCP_CHECKSUM).ok_or(EINVAL)?;
        assert_eq!((found.ipv4, found.network_len), (false, 40));
        Ok(())
    }

    #[test]
    fn a_tunnel_cancels_out() -> Result {
        let mut data = tunnel()?;
        let segmentation =
            of(&data, VXLAN | PARTIAL, 34 + TUNNEL as u32, TCP_CHECKSUM).ok_or(EINVAL)?;
        segmentation.seed(&mut data, 104 + 2000).ok_or(EINVAL)?;

        // The NIC sums up everything up to the transport header; the outer header is all that is
        // to be left. It has no length yet.
        let all = sum(&data[ETH..][..20 + TUNNEL]);
        data[ETH + IPV4_CHECKSUM..][..2].fill(0);
        assert_eq!(all, sum(&data[ETH..][..20]));
        assert_eq!(data[ETH + IPV4_TOTAL_LEN], 0);
        Ok(())
    }

    #[test]
    fn sums_of_bytes() {
        assert_eq!(sum(&[]), 0);
        assert_eq!(sum(&[1, 2, 3]), 0x0402);
        assert_eq!(sum(&[0xff; 512]), 0xffff);
    }

    #[test]
    fn seeds() -> Result {
        let mut data = tcp_ipv4(0)?;
        // The pseudo header: two addresses, the protocol, the length.
        let len = 32 + 3000;
        let sum = 0x0a00 + 0x0001 + 0x0a00 + 0x0002 + 6;
        let with_len = fold(sum + len).to_be_bytes();
        data[ETH + 20 + 16..ETH + 20 + 18].copy_from_slice(&with_len);

        let segmentation = of(&data, TCP_IPV4, 34, TCP_CHECKSUM).ok_or(EINVAL)?;
        segmentation.seed(&mut data, 34 + len).ok_or(EINVAL)?;
        assert_eq!(data[ETH + 20 + 16..ETH + 20 + 18], fold(sum).to_be_bytes());
        assert_eq!(data[ETH + IPV4_TOTAL_LEN], 0);
        assert_eq!(data[ETH + IPV4_CHECKSUM], 0);
        // The rest is as it was.
        assert_eq!((data[ETH], data[ETH + 20 + TCP_DATA_OFFSET]), (0x45, 0x80));
        Ok(())
    }

    #[test]
    fn sums_carry() {
        assert_eq!(fold(0xffff_ffff), 0xffff);
        assert_eq!(fold(0x1_0000), 1);
        assert_eq!(fold(0x1_ffff), 1);
        assert_eq!(fold(0xfffe_ffff), 0xfffe);
    }
}
