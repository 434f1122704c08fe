// SPDX-License-Identifier: GPL-2.0

//! The packets that a rule is about.

use crate::{
    bindings,
    prelude::*, //
};

/// Bytes of a header in the order of the wire, of which only the bits of a mask matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Masked<const N: usize> {
    value: [u8; N],
    mask: [u8; N],
}

impl<const N: usize> Masked<N> {
    /// Any value.
    pub const ANY: Self = Self {
        value: [0; N],
        mask: [0; N],
    };

    /// The bits of `value` that are set in `mask`.
    pub fn new(value: [u8; N], mask: [u8; N]) -> Self {
        let mut this = Self { value, mask };

        for (value, mask) in this.value.iter_mut().zip(mask) {
            *value &= mask;
        }
        this
    }

    /// The bits that matter. The others are zero.
    #[inline]
    pub fn value(&self) -> [u8; N] {
        self.value
    }

    /// Which bits matter.
    #[inline]
    pub fn mask(&self) -> [u8; N] {
        self.mask
    }

    /// Whether no bit matters.
    pub fn is_any(&self) -> bool {
        self.mask == [0; N]
    }

    /// Whether all bits matter.
    pub fn is_exact(&self) -> bool {
        self.mask == [0xff; N]
    }
}

/// A transport protocol with ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

/// The headers that follow that of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowTransport {
    /// A protocol with ports.
    Ports {
        /// The protocol.
        protocol: PortProtocol,
        /// The source port.
        source: Masked<2>,
        /// The destination port.
        destination: Masked<2>,
    },
    /// Any protocol.
    Any {
        /// Its number.
        protocol: Masked<1>,
        /// The first bytes of its header.
        first: Masked<4>,
    },
}

/// Packets of a network protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowPackets {
    /// IPv4.
    Ipv4 {
        /// The source address.
        source: Masked<4>,
        /// The destination address.
        destination: Masked<4>,
        /// The type of service.
        service: Masked<1>,
        /// The headers after it.
        transport: FlowTransport,
    },
    /// IPv6, or any by the Ethernet header, for which no NIC has filters yet.
    Other,
}

/// The packets that match a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowMatch {
    /// Their headers.
    pub packets: FlowPackets,
    /// The VLAN tag: priority and id.
    pub vlan_tag: Masked<2>,
    /// The protocol of the VLAN tag.
    pub vlan_protocol: Masked<2>,
    /// The destination address, of packets with an IP header.
    pub destination: Masked<6>,
    /// Data that has a meaning for the driver alone.
    pub user_data: [Masked<4>; 2],
}

fn word(value: u32, mask: u32) -> Masked<4> {
    Masked::new(value.to_ne_bytes(), mask.to_ne_bytes())
}

fn half(value: u16, mask: u16) -> Masked<2> {
    Masked::new(value.to_ne_bytes(), mask.to_ne_bytes())
}

fn byte(value: u8, mask: u8) -> Masked<1> {
    Masked::new([value], [mask])
}

impl FlowPackets {
    /// Packets over IPv4 with ports.
    fn ports_v4(protocol: PortProtocol, spec: &bindings::ethtool_rx_flow_spec) -> Self {
        // SAFETY: As in `of()`. These protocols have structures of one type.
        let (value, mask) = unsafe { (&spec.h_u.tcp_ip4_spec, &spec.m_u.tcp_ip4_spec) };

        Self::Ipv4 {
            source: word(value.ip4src, mask.ip4src),
            destination: word(value.ip4dst, mask.ip4dst),
            service: byte(value.tos, mask.tos),
            transport: FlowTransport::Ports {
                protocol,
                source: half(value.psrc, mask.psrc),
                destination: half(value.pdst, mask.pdst),
            },
        }
    }

    /// Those of a request.
    fn of(spec: &bindings::ethtool_rx_flow_spec, kind: u32) -> Result<Self> {
        // SAFETY: All fields of these unions are integers without invalid values. The unions are
        // copies of what the user has passed, all of their bytes.
        unsafe {
            Ok(match kind {
                bindings::TCP_V4_FLOW => Self::ports_v4(PortProtocol::Tcp, spec),
                bindings::UDP_V4_FLOW => Self::ports_v4(PortProtocol::Udp, spec),
                bindings::SCTP_V4_FLOW => Self::ports_v4(PortProtocol::Sctp, spec),
                bindings::IPV4_USER_FLOW => {
                    let (value, mask) = (&spec.h_u.usr_ip4_spec, &spec.m_u.usr_ip4_spec);
                    if u32::from(value.ip_ver) != bindings::ETH_RX_NFC_IP4 {
                        return Err(EINVAL);
                    }
                    Self::Ipv4 {
                        source: word(value.ip4src, mask.ip4src),
                        destination: word(value.ip4dst, mask.ip4dst),
                        service: byte(value.tos, mask.tos),
                        transport: FlowTransport::Any {
                            protocol: byte(value.proto, mask.proto),
                            first: word(value.l4_4_bytes, mask.l4_4_bytes),
                        },
                    }
                }
                bindings::TCP_V6_FLOW
                | bindings::UDP_V6_FLOW
                | bindings::SCTP_V6_FLOW
                | bindings::IPV6_USER_FLOW
                | bindings::ETHER_FLOW => Self::Other,
                _ => return Err(EOPNOTSUPP),
            })
        }
    }
}

impl FlowMatch {
    /// Those of a request.
    pub(super) fn of(spec: &bindings::ethtool_rx_flow_spec) -> Result<Self> {
        let kind = spec.flow_type & !(bindings::FLOW_EXT | bindings::FLOW_MAC_EXT);
        let (value, mask) = (&spec.h_ext, &spec.m_ext);
        let has = |flag| spec.flow_type & flag != 0;
        let mut this = Self {
            // With `FLOW_RSS`, it is none of them.
            packets: FlowPackets::of(spec, kind)?,
            vlan_tag: Masked::ANY,
            vlan_protocol: Masked::ANY,
            destination: Masked::ANY,
            user_data: [Masked::ANY; 2],
        };

        if has(bindings::FLOW_EXT) {
            this.vlan_tag = half(value.vlan_tci, mask.vlan_tci);
            this.vlan_protocol = half(value.vlan_etype, mask.vlan_etype);
            this.user_data = [
                word(value.data[0], mask.data[0]),
                word(value.data[1], mask.data[1]),
            ];
        }
        if has(bindings::FLOW_MAC_EXT) {
            this.destination = Masked::new(value.h_dest, mask.h_dest);
        }
        Ok(this)
    }
}

#[macros::kunit_tests(rust_net_flow_match)]
mod tests {
    use super::*;

    fn spec(kind: u32) -> bindings::ethtool_rx_flow_spec {
        bindings::ethtool_rx_flow_spec {
            flow_type: kind,
            ..Default::default()
        }
    }

    #[test]
    fn bits_that_do_not_matter_are_zero() {
        let masked = Masked::new([0x12, 0x34], [0xf0, 0xff]);

        assert_eq!(masked.value(), [0x10, 0x34]);
        assert_eq!(masked, Masked::new([0x1f, 0x34], [0xf0, 0xff]));
        assert!(!masked.is_any() && !masked.is_exact());
        assert!(Masked::new([1, 2], [0, 0]).is_any());
    }

    #[test]
    fn tcp_over_ipv4() -> Result {
        let mut spec = spec(bindings::TCP_V4_FLOW);

        spec.h_u.tcp_ip4_spec = bindings::ethtool_tcpip4_spec {
            ip4src: u32::from_ne_bytes([10, 0, 0, 2]),
            pdst: u16::from_ne_bytes([0, 80]),
            ..Default::default()
        };
        spec.m_u.tcp_ip4_spec = bindings::ethtool_tcpip4_spec {
            ip4src: u32::from_ne_bytes([255, 255, 0, 0]),
            pdst: u16::MAX,
            ..Default::default()
        };
        // Without the flag, this is not part of the request.
        spec.h_ext.vlan_tci = 5;
        spec.m_ext.vlan_tci = u16::MAX;
        let wanted = FlowPackets::Ipv4 {
            source: Masked::new([10, 0, 0, 0], [255, 255, 0, 0]),
            destination: Masked::ANY,
            service: Masked::ANY,
            transport: FlowTransport::Ports {
                protocol: PortProtocol::Tcp,
                source: Masked::ANY,
                destination: Masked::new([0, 80], [255; 2]),
            },
        };
        let found = FlowMatch::of(&spec)?;

        assert_eq!(found.packets, wanted);
        assert!(found.vlan_tag.is_any());
        spec.flow_type |= bindings::FLOW_EXT;
        assert!(FlowMatch::of(&spec)?.vlan_tag.is_exact());
        Ok(())
    }

    #[test]
    fn others_are_refused() {
        assert!(FlowMatch::of(&spec(bindings::ETHER_FLOW)).is_ok());
        assert!(FlowMatch::of(&spec(bindings::UDP_V6_FLOW)).is_ok());
        // Of which IP version is it?
        assert_eq!(FlowMatch::of(&spec(bindings::IPV4_USER_FLOW)), Err(EINVAL));
        for kind in [
            bindings::ESP_V4_FLOW,
            0,
            bindings::TCP_V4_FLOW | bindings::FLOW_RSS,
        ] {
            assert_eq!(FlowMatch::of(&spec(kind)), Err(EOPNOTSUPP));
        }
    }
}
