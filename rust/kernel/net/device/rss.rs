// SPDX-License-Identifier: GPL-2.0

//! Receive side scaling: spreading received packets over several queues.
//!
//! C headers: [`include/linux/ethtool.h`](srctree/include/linux/ethtool.h),
//! [`include/linux/netdevice.h`](srctree/include/linux/netdevice.h)

use crate::bindings;

/// A class of packets that are hashed in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// TCP over IPv4.
    TcpIpv4,
    /// UDP over IPv4.
    UdpIpv4,
    /// Other protocols over IPv4.
    OtherIpv4,
    /// TCP over IPv6.
    TcpIpv6,
    /// UDP over IPv6.
    UdpIpv6,
    /// Other protocols over IPv6.
    OtherIpv6,
}

impl Flow {
    /// Returns the flow with the `ethtool` number `raw`.
    pub(super) fn from_raw(raw: u32) -> Option<Self> {
        Some(match raw {
            bindings::TCP_V4_FLOW => Self::TcpIpv4,
            bindings::UDP_V4_FLOW => Self::UdpIpv4,
            bindings::SCTP_V4_FLOW
            | bindings::AH_ESP_V4_FLOW
            | bindings::AH_V4_FLOW
            | bindings::ESP_V4_FLOW
            | bindings::IPV4_FLOW => Self::OtherIpv4,
            bindings::TCP_V6_FLOW => Self::TcpIpv6,
            bindings::UDP_V6_FLOW => Self::UdpIpv6,
            bindings::SCTP_V6_FLOW
            | bindings::AH_ESP_V6_FLOW
            | bindings::AH_V6_FLOW
            | bindings::ESP_V6_FLOW
            | bindings::IPV6_FLOW => Self::OtherIpv6,
            _ => return None,
        })
    }
}

/// The fields of a packet that are hashed to choose its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowHash {
    /// Both IP addresses.
    Addresses,
    /// Both IP addresses, and both ports.
    AddressesAndPorts,
}

impl FlowHash {
    const ADDRESSES: u32 = bindings::RXH_IP_SRC | bindings::RXH_IP_DST;
    const PORTS: u32 = bindings::RXH_L4_B_0_1 | bindings::RXH_L4_B_2_3;

    /// Returns the fields that `raw` stands for in `ethtool`. Other combinations are not supported.
    pub(super) fn from_raw(raw: u32) -> Option<Self> {
        if raw == Self::ADDRESSES {
            Some(Self::Addresses)
        } else if raw == Self::ADDRESSES | Self::PORTS {
            Some(Self::AddressesAndPorts)
        } else {
            None
        }
    }

    /// Returns the number that stands for the fields in `ethtool`.
    pub(super) fn to_raw(self) -> u32 {
        match self {
            Self::Addresses => Self::ADDRESSES,
            Self::AddressesAndPorts => Self::ADDRESSES | Self::PORTS,
        }
    }
}

/// Returns the key for the hash over received packets, the same one each time until the next boot.
///
/// It is random, so that a remote host cannot craft packets that all go to one queue.
pub fn rss_key<const N: usize>() -> [u8; N] {
    const { assert!(N <= bindings::NETDEV_RSS_KEY_LEN as usize) };
    let mut key = [0; N];

    // SAFETY: The buffer has `N` bytes, which is not more than the key has.
    unsafe { bindings::netdev_rss_key_fill(key.as_mut_ptr().cast(), N) };
    key
}

/// Returns the number of CPUs that are online now, at most [`u16::MAX`]: a card has no use for more
/// queues than that.
pub fn online_cpus() -> u16 {
    // SAFETY: There are no requirements.
    u16::try_from(unsafe { bindings::num_online_cpus() }).unwrap_or(u16::MAX)
}
