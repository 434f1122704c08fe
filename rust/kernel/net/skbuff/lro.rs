// SPDX-License-Identifier: GPL-2.0

//! Received packets that LRO has aggregated.
//!
//! The stack has to know of how many packets, and of which size: it acknowledges them, and takes
//! the size for that of the peer's segments.

use super::UniqueSkBuff;
use crate::{
    bindings,
    prelude::*, //
};

const ETH_TYPE: usize = 12;
const VLAN_TAG_LEN: usize = 4;
/// The most tags in front of the network header.
const VLAN_TAGS: usize = 2;

const IPV4_PROTOCOL: usize = 9;
const IPV4_MIN_LEN: usize = 20;
const IPV4_LEN: usize = 2;
const IPV6_NEXT_HEADER: usize = 6;
const IPV6_LEN: usize = 40;
const TCP_DATA_OFFSET: usize = 12;
const TCP_MIN_LEN: usize = 20;

// CAST: It fits into a byte.
const TCP: u8 = bindings::IPPROTO_TCP as u8;

/// The headers of a packet of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Headers {
    gso_type: c_uint,
    /// Number of bytes of all of them.
    len: usize,
}

fn be16(data: &[u8], at: usize) -> Option<u16> {
    let bytes = data.get(at..)?.first_chunk()?;

    Some(u16::from_be_bytes(*bytes))
}

impl Headers {
    /// Reads the headers at the beginning of a frame. [`None`] if it is not one of TCP.
    fn of(data: &[u8]) -> Option<Self> {
        let mut at = ETH_TYPE;
        let mut protocol = be16(data, at)?;

        for _ in 0..VLAN_TAGS {
            // CAST: They have 16 bits.
            if protocol != bindings::ETH_P_8021Q as u16 && protocol != bindings::ETH_P_8021AD as u16
            {
                break;
            }
            at += VLAN_TAG_LEN;
            protocol = be16(data, at)?;
        }
        at += 2;

        let network = data.get(at..)?;
        // CAST: They have 16 bits; and single bits.
        let (gso_type, len, transport) = match u32::from(protocol) {
            bindings::ETH_P_IP => {
                let len = usize::from(*network.first()? & 0xf) * 4;

                if len < IPV4_MIN_LEN {
                    return None;
                }
                let _ = be16(network, IPV4_LEN)?;
                let protocol = *network.get(IPV4_PROTOCOL)?;
                (bindings::SKB_GSO_TCPV4 as c_uint, len, protocol)
            }
            bindings::ETH_P_IPV6 => (
                bindings::SKB_GSO_TCPV6 as c_uint,
                IPV6_LEN,
                *network.get(IPV6_NEXT_HEADER)?,
            ),
            _ => return None,
        };
        if transport != TCP {
            return None;
        }
        let header = network.get(len..)?;
        let tcp_len = usize::from(*header.get(TCP_DATA_OFFSET)? >> 4) * 4;

        (tcp_len >= TCP_MIN_LEN && header.len() >= tcp_len).then_some(Self {
            gso_type,
            len: at + len + tcp_len,
        })
    }
}

impl UniqueSkBuff {
    /// Notes that LRO has aggregated the packet of `packets` ones of a TCP connection. The packet
    /// is a whole Ethernet frame, with all headers in its linear part.
    ///
    /// The size of the packets is taken to be the same, but for the last one. One packet is as it
    /// was received.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if it is not one of TCP over IPv4 or IPv6, with as many bytes of data, if they
    /// would be too large, or if it is one of several packets already. Nothing changes then.
    pub fn set_lro(&mut self, packets: u32) -> Result {
        if packets <= 1 {
            return Ok(());
        }
        let headers = Headers::of(self.data()).ok_or(EINVAL)?;
        // CAST: There are as many bytes in the linear part, whose length has 32 bits.
        let payload = self
            .len()
            .checked_sub(headers.len as u32)
            .filter(|payload| *payload >= packets)
            .ok_or(EINVAL)?;
        let size = u16::try_from(payload.div_ceil(packets)).map_err(|_| EINVAL)?;
        let packets = u16::try_from(packets).map_err(|_| EINVAL)?;

        // CAST: It has 16 bits, and stands for something else.
        if size == bindings::GSO_BY_FRAGS as u16 {
            return Err(EINVAL);
        }
        let info = self.shared_info();
        // SAFETY: By the type invariants, the packet is valid, and ours alone.
        unsafe {
            if (*info).gso_size != 0 {
                return Err(EINVAL);
            }
            (*info).gso_size = size;
            (*info).gso_segs = packets;
            (*info).gso_type = headers.gso_type;
        }
        Ok(())
    }
}

#[macros::kunit_tests(rust_net_skbuff_lro)]
mod tests {
    use super::*;

    /// A frame of TCP over IPv4 with 100 bytes of data.
    fn frame() -> [u8; 154] {
        let mut frame = [0; 154];

        frame[12] = 8;
        frame[14] = 0x45;
        frame[23] = TCP;
        frame[46] = 5 << 4;
        frame
    }

    fn aggregated(frame: &[u8], packets: u32) -> Result<(u16, u16, c_uint)> {
        let mut skb = UniqueSkBuff::alloc(256, GFP_KERNEL)?;

        skb.put(frame)?;
        skb.set_lro(packets)?;
        // SAFETY: The packet is valid.
        let info = unsafe { &*skb.shared_info() };
        Ok((info.gso_size, info.gso_segs, info.gso_type))
    }

    #[test]
    fn sizes_are_those_of_the_packets() -> Result {
        let ipv4 = bindings::SKB_GSO_TCPV4 as c_uint;

        assert_eq!(aggregated(&frame(), 1)?, (0, 0, 0));
        assert_eq!(aggregated(&frame(), 2)?, (50, 2, ipv4));
        assert_eq!(aggregated(&frame(), 3)?, (34, 3, ipv4));
        assert_eq!(aggregated(&frame(), 100)?, (1, 100, ipv4));
        assert_eq!(aggregated(&frame(), 101), Err(EINVAL));
        assert_eq!(aggregated(&frame(), u32::MAX), Err(EINVAL));
        Ok(())
    }

    #[test]
    fn a_packet_is_aggregated_once() -> Result {
        let mut skb = UniqueSkBuff::alloc(256, GFP_KERNEL)?;

        skb.put(&frame())?;
        skb.set_lro(2)?;
        assert_eq!(skb.set_lro(3), Err(EINVAL));
        // SAFETY: The packet is valid.
        assert_eq!(unsafe { (*skb.shared_info()).gso_segs }, 2);
        Ok(())
    }

    #[test]
    fn headers_are_found_behind_tags() {
        let tagged = |tags: usize| {
            let mut tagged = [0; 162];
            let plain = frame();

            for tag in 0..tags {
                tagged[12 + 4 * tag] = 0x81;
            }
            tagged[12 + 4 * tags..154 + 4 * tags].copy_from_slice(&plain[12..]);
            Headers::of(&tagged).map(|headers| headers.len)
        };

        assert_eq!(tagged(0), Some(54));
        assert_eq!(tagged(1), Some(58));
        assert_eq!(tagged(2), Some(62));
    }

    #[test]
    fn other_packets_are_not_aggregated() {
        for (at, value) in [(12, 9), (14, 0x44), (23, 17), (46, 4 << 4)] {
            let mut other = frame();

            other[at] = value;
            assert_eq!(aggregated(&other, 2), Err(EINVAL));
        }
        let whole = frame();
        for len in 0..54 {
            assert_eq!(Headers::of(&whole[..len]), None);
        }
        let mut ipv6 = [0; 80];
        (ipv6[12], ipv6[13], ipv6[20], ipv6[66]) = (0x86, 0xdd, TCP, 5 << 4);
        let headers = Headers::of(&ipv6);
        assert_eq!(headers.map(|headers| headers.len), Some(74));
    }
}
