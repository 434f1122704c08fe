// SPDX-License-Identifier: GPL-2.0

//! Packets that can wake the machine.

use crate::bindings;

/// A kind of packets that can wake the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum WakePacket {
    /// To an address of the port.
    Unicast = bindings::WAKE_UCAST,
    /// To a multicast address that the port receives.
    Multicast = bindings::WAKE_MCAST,
    /// To all.
    Broadcast = bindings::WAKE_BCAST,
    /// With the port's own address in it, sixteen times.
    Magic = bindings::WAKE_MAGIC,
}

/// A set of [`WakePacket`]s.
///
/// # Examples
///
/// ```
/// use kernel::net::device::ethtool::wol::{
///     WakePacket,
///     WakePackets, //
/// };
///
/// let packets = WakePackets::NONE
///     .with(WakePacket::Magic)
///     .with(WakePacket::Broadcast);
///
/// assert!(packets.contains(WakePacket::Magic));
/// assert!(!packets.contains(WakePacket::Unicast));
/// assert!(!packets.is_empty());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakePackets(pub(super) u32);

impl WakePackets {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// The set with one more kind.
    pub const fn with(self, packet: WakePacket) -> Self {
        Self(self.0 | packet as u32)
    }

    /// Whether a kind is in the set.
    pub const fn contains(self, packet: WakePacket) -> bool {
        self.0 & packet as u32 != 0
    }

    /// Whether nothing is in the set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
