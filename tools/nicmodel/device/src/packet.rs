// SPDX-License-Identifier: GPL-2.0
//! As much of a frame's structure as the card's offloads look at.

/// Smallest frame without FCS.
pub const MIN_FRAME: usize = 60;
/// Length of the FCS.
pub const FCS: usize = 4;
/// Ethernet header.
pub const ETH_HEADER: usize = 14;

/// IP protocol TCP.
pub const TCP: u8 = 6;
/// IP protocol UDP.
pub const UDP: u8 = 17;
/// IP protocol SCTP.
pub const SCTP: u8 = 132;

const ETHERTYPE_VLAN: u16 = 0x8100;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;

/// Network layer of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Neither IPv4 nor IPv6, or not well formed.
    Other,
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Where things are in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parsed {
    /// Network layer.
    pub network: Network,
    /// Offset of the IP header.
    pub l3: usize,
    /// Offset of the transport header, if `protocol` is set.
    pub l4: usize,
    /// End of the IP packet; padding may follow.
    pub end: usize,
    /// Transport protocol, unless the packet is a fragment.
    pub protocol: Option<u8>,
}

/// Two bytes in network order; 0 past the end.
#[inline]
pub fn be16(data: &[u8], at: usize) -> u16 {
    match data.get(at..at + 2) {
        Some(bytes) => u16::from_be_bytes([bytes[0], bytes[1]]),
        None => 0,
    }
}

/// Puts two bytes in network order; nothing past the end.
#[inline]
pub fn put_be16(data: &mut [u8], at: usize, value: u16) {
    if let Some(bytes) = data.get_mut(at..at + 2) {
        bytes.copy_from_slice(&value.to_be_bytes());
    }
}

/// Finds the headers of a frame.
pub fn parse(frame: &[u8]) -> Parsed {
    let mut l3 = ETH_HEADER;
    let mut ethertype = be16(frame, 12);
    if ethertype == ETHERTYPE_VLAN {
        ethertype = be16(frame, 16);
        l3 += 4;
    }
    let other = Parsed {
        network: Network::Other,
        l3,
        l4: l3,
        end: frame.len(),
        protocol: None,
    };
    match ethertype {
        ETHERTYPE_IPV4 => parse_v4(frame, l3).unwrap_or(other),
        ETHERTYPE_IPV6 => parse_v6(frame, l3).unwrap_or(other),
        _ => other,
    }
}

fn parse_v4(frame: &[u8], l3: usize) -> Option<Parsed> {
    let header = frame.get(l3..l3 + 20)?;
    let length = usize::from(header[0] & 0xf) * 4;
    let total = usize::from(be16(header, 2));
    if header[0] >> 4 != 4 || length < 20 || total < length || l3 + total > frame.len() {
        return None;
    }
    // More fragments, or not the first.
    let fragment = be16(header, 6) & 0x3fff != 0;
    Some(Parsed {
        network: Network::V4,
        l3,
        l4: l3 + length,
        end: l3 + total,
        protocol: (!fragment).then_some(header[9]),
    })
}

fn parse_v6(frame: &[u8], l3: usize) -> Option<Parsed> {
    let header = frame.get(l3..l3 + 40)?;
    let payload = usize::from(be16(header, 4));
    if header[0] >> 4 != 6 || l3 + 40 + payload > frame.len() {
        return None;
    }
    Some(Parsed {
        network: Network::V6,
        l3,
        l4: l3 + 40,
        end: l3 + 40 + payload,
        protocol: Some(header[6]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::udp_frame;

    #[test]
    fn finds_udp_in_ipv4() {
        let frame = udp_frame(60);
        let parsed = parse(&frame);
        assert_eq!(
            (parsed.network, parsed.l3, parsed.l4),
            (Network::V4, 14, 34)
        );
        assert_eq!(parsed.protocol, Some(UDP));
    }

    #[test]
    fn every_truncation_is_survived() {
        let frame = udp_frame(100);
        for end in 0..frame.len() {
            let parsed = parse(&frame[..end]);
            assert!(parsed.end <= end.max(ETH_HEADER));
        }
    }

    #[test]
    fn fragments_have_no_transport() {
        let mut frame = udp_frame(60);
        frame[20] = 0x20;
        assert_eq!(parse(&frame).protocol, None);
    }
}
