// SPDX-License-Identifier: GPL-2.0

//! The description of a network device by its driver.

use super::{
    wake_packets::WakePackets,
    Device,
    MacAddress, //
};

use crate::bindings;

/// An offload or another capability of a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Feature {
    /// Transmits packets that consist of a linear part and fragments.
    ScatterGather = bindings::NETIF_F_SG_BIT,
    /// Reaches all of the memory.
    HighDma = bindings::NETIF_F_HIGHDMA_BIT,
    /// Receives what it transmits itself, and sends nothing. For tests, so off at first
    /// ([`Info::features_off`]).
    Loopback = bindings::NETIF_F_LOOPBACK_BIT,
    /// Completes any checksum of the Internet kind, see
    /// [`PartialChecksum`](crate::net::skbuff::PartialChecksum).
    ChecksumAny = bindings::NETIF_F_HW_CSUM_BIT,
    /// Completes checksums of TCP and UDP over IPv4.
    ChecksumIpv4 = bindings::NETIF_F_IP_CSUM_BIT,
    /// Completes checksums of TCP and UDP over IPv6.
    ChecksumIpv6 = bindings::NETIF_F_IPV6_CSUM_BIT,
    /// Completes checksums of SCTP, see
    /// [`ChecksumKind::Crc32c`](crate::net::skbuff::ChecksumKind::Crc32c).
    ChecksumSctp = bindings::NETIF_F_SCTP_CRC_BIT,
    /// Verifies the checksums of received packets.
    RxChecksum = bindings::NETIF_F_RXCSUM_BIT,
    /// Aggregates received packets of a TCP connection, see
    /// [`UniqueSkBuff::set_lro`](crate::net::skbuff::UniqueSkBuff::set_lro). The stack turns this
    /// off while it forwards, and it is off without [`Self::RxChecksum`]: an aggregated packet has
    /// no checksum of its own. Not for interfaces of a VLAN on top.
    Lro = bindings::NETIF_F_LRO_BIT,
    /// Computes a hash over received packets.
    RxHash = bindings::NETIF_F_RXHASH_BIT,
    /// Splits TCP over IPv4 into segments.
    Tso = bindings::NETIF_F_TSO_BIT,
    /// Splits TCP over IPv6 into segments.
    Tso6 = bindings::NETIF_F_TSO6_BIT,
    /// May leave the identification of IPv4 headers as it is when it splits TCP, or change it:
    /// users allow this, see [`Info::tunnels`].
    TsoMangleId = bindings::NETIF_F_TSO_MANGLEID_BIT,
    /// Splits packets in tunnels of GRE, see [`Info::tunnels`].
    TunnelGre = bindings::NETIF_F_GSO_GRE_BIT,
    /// The same, with checksums of GRE.
    TunnelGreChecksum = bindings::NETIF_F_GSO_GRE_CSUM_BIT,
    /// Splits packets in tunnels within IPv4 that have no header of their own.
    TunnelIpv4 = bindings::NETIF_F_GSO_IPXIP4_BIT,
    /// The same, within IPv6.
    TunnelIpv6 = bindings::NETIF_F_GSO_IPXIP6_BIT,
    /// Splits packets in tunnels of UDP, as those of VXLAN and Geneve.
    TunnelUdp = bindings::NETIF_F_GSO_UDP_TUNNEL_BIT,
    /// The same, with checksums in the header of UDP.
    TunnelUdpChecksum = bindings::NETIF_F_GSO_UDP_TUNNEL_CSUM_BIT,
    /// Inserts the VLAN tag of transmitted packets, see
    /// [`SkBuff::vlan_tag`](crate::net::skbuff::SkBuff::vlan_tag).
    VlanInsert = bindings::NETIF_F_HW_VLAN_CTAG_TX_BIT,
    /// Strips the VLAN tag of received packets, see
    /// [`UniqueSkBuff::set_vlan_tag`](crate::net::skbuff::UniqueSkBuff::set_vlan_tag).
    VlanStrip = bindings::NETIF_F_HW_VLAN_CTAG_RX_BIT,
    /// Receives the packets of the VLANs in use only, see
    /// [`VlanFilterOps`](super::vlan_filter::VlanFilterOps). Without that trait, the device is not
    /// registered (`EINVAL`).
    VlanFilter = bindings::NETIF_F_HW_VLAN_CTAG_FILTER_BIT,
    /// Splits UDP into datagrams.
    Uso = bindings::NETIF_F_GSO_UDP_L4_BIT,
    /// Directs received packets by rules of users, see
    /// [`RxnfcOps`](super::ethtool::rxnfc::RxnfcOps).
    Ntuple = bindings::NETIF_F_NTUPLE_BIT,
}

/// A set of [`Feature`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features(pub(super) u64);

impl Features {
    /// The empty set.
    pub const NONE: Self = Self(0);

    pub(super) const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The set with one more feature.
    pub const fn with(self, feature: Feature) -> Self {
        Self(self.0 | 1 << feature as u32)
    }

    /// The set without a feature.
    pub const fn without(self, feature: Feature) -> Self {
        Self(self.0 & !(1 << feature as u32))
    }

    /// The set without the features that have the NIC split packets.
    pub const fn without_segmentation(self) -> Self {
        self.without(Feature::Tso)
            .without(Feature::Tso6)
            .without(Feature::Uso)
    }

    /// The features for a packet whose inner headers would share an identification when the NIC
    /// splits it, see [`Info::tunnels`].
    #[inline]
    pub(super) const fn with_same_ids(self) -> Self {
        if self.contains(Feature::TsoMangleId) {
            self
        } else {
            self.without(Feature::Tso)
        }
    }

    /// The tunnels in the set, if there are any, and that the stack helps with them.
    pub(super) const fn with_partial(self) -> Self {
        if self.0 == 0 {
            self
        } else {
            Self(self.0 | 1 << bindings::NETIF_F_GSO_PARTIAL_BIT)
        }
    }

    /// The set without those that handle VLAN tags, or that the device has for all of its packets:
    /// interfaces of a VLAN have the rest.
    pub(super) const fn without_vlan(self) -> Self {
        self.without(Feature::VlanInsert)
            .without(Feature::VlanStrip)
            .without(Feature::VlanFilter)
            .without(Feature::Lro)
    }

    /// The features for packets with labels of MPLS, which the NIC takes for a part of the header
    /// of the link layer. A driver that looks at packets decides whether that one is too long to
    /// split them.
    pub(super) const fn for_labels(self, looks: bool) -> Self {
        let all = Self::NONE
            .with(Feature::ScatterGather)
            .with(Feature::ChecksumAny);

        self.common(if looks {
            all.with(Feature::Tso).with(Feature::Tso6)
        } else {
            all
        })
    }

    /// The set without those that need others which are not in it.
    pub(super) const fn consistent(self) -> Self {
        if self.contains(Feature::RxChecksum) {
            self
        } else {
            self.without(Feature::Lro)
        }
    }

    /// The features that are in one of the sets.
    pub(super) const fn union(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// The features that are in both sets.
    pub(super) const fn common(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    /// Whether `feature` is in the set.
    pub const fn contains(self, feature: Feature) -> bool {
        self.0 & 1 << feature as u32 != 0
    }
}

/// The description of a device, which the driver returns from
/// [`Driver::probe`](super::Driver::probe).
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// The permanent address. If it is not a valid one, the device gets a random one.
    pub mac_address: MacAddress,
    /// The largest number of queue vectors that the device can have when it is up. If there are
    /// several, each serves a CPU: its interrupt is directed there, and packets that are
    /// transmitted on that CPU use its queue, unless users change that.
    pub queues: u16,
    /// The default number of queue vectors; users can change it (`ethtool -L`).
    pub default_queues: u16,
    /// The capabilities of the NIC.
    pub features: Features,
    /// More of them, which are off until users turn them on.
    pub features_off: Features,
    /// The smallest MTU.
    pub min_mtu: u32,
    /// The largest MTU.
    pub max_mtu: u32,
    /// The largest TSO packet, in bytes with headers, at least [`Self::MIN_SEGMENTED_LEN`]. Users
    /// can lower it, and the stack goes beyond 64 KiB only if users raise its own limit (BIG TCP).
    pub max_segmented_len: u32,
    /// The default of `limit_min` of byte queue limits, in bytes. That of the core is 0: a queue
    /// begins with a single packet in flight, and the limit grows whenever the NIC runs idle. A
    /// driver that hands packets to the NIC in batches needs room for a batch. On a slow link, a
    /// higher limit means more latency.
    pub tx_limit_min: u16,
    /// Tunnels whose packets the NIC splits as [`Self::features`] say, although it knows nothing
    /// of tunnels (GSO partial). The stack cuts packets so that all segments have the same headers
    /// between the outer network header and the inner transport header, which are as one long
    /// network header to the NIC: it may have checksums and be split if it has such a header.
    ///
    /// The identification of inner headers of IPv4 is the same in all segments, so such packets
    /// come only if users have turned on [`Feature::TsoMangleId`] and the packet may not be
    /// fragmented. The stack splits others by itself.
    ///
    /// The device is not registered (`EINVAL`) if its driver has tunnels but no
    /// [`FeaturesCheckOps`](super::features_check::FeaturesCheckOps), which withdraw what the NIC
    /// cannot do with headers of that length.
    pub tunnels: Features,
    /// The NIC can send a frame with a check sequence of the sender's (`SO_NOFCS`), see
    /// [`SkBuff::has_fcs`](crate::net::skbuff::SkBuff::has_fcs).
    pub sender_fcs: bool,
    /// The time for which a transmit queue may be stopped before the device is restarted, at most
    /// [`i32::MAX`].
    pub tx_timeout_ms: u32,
    /// The packets by which the NIC can wake the machine, for drivers with
    /// [`WolOps`](super::ethtool::wol::WolOps). Not of more than one network device of a bus
    /// device: the bus has one setting for all.
    pub wake: WakePackets,
    /// The default, until users choose.
    pub default_wake: WakePackets,
}

impl Info {
    /// The least of [`Self::max_segmented_len`]: the stack takes the length of the longest headers
    /// off it, `MAX_TCP_HEADER`, without a check.
    pub const MIN_SEGMENTED_LEN: u32 = bindings::ETH_DATA_LEN;

    /// A device with one queue pair, no features and the MTU of Ethernet.
    pub const fn new(mac_address: MacAddress) -> Self {
        Self {
            mac_address,
            queues: 1,
            default_queues: u16::MAX,
            features: Features::NONE,
            features_off: Features::NONE,
            min_mtu: bindings::ETH_MIN_MTU,
            max_mtu: bindings::ETH_DATA_LEN,
            max_segmented_len: bindings::GSO_LEGACY_MAX_SIZE,
            tx_limit_min: 0,
            tunnels: Features::NONE,
            sender_fcs: false,
            tx_timeout_ms: 5_000,
            wake: WakePackets::NONE,
            default_wake: WakePackets::NONE,
        }
    }
}

impl Device {
    /// The features that are enabled, out of [`Info::features`]: users can turn features off.
    #[inline]
    pub fn features(&self) -> Features {
        // SAFETY: By the type invariants, the device is valid. The features may change
        // concurrently, as for all readers.
        Features::from_raw(unsafe {
            core::ptr::read_volatile(&raw const (*self.as_raw()).features)
        })
    }
}
