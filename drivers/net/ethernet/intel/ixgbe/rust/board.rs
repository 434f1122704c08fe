// SPDX-License-Identifier: GPL-2.0

//! Properties of a board that only its ids tell.

use kernel::{
    device::Bound,
    net::device::ethtool::wol::{
        WakePacket,
        WakePackets, //
    },
    pci, //
};

/// The packets that are chosen until users choose others, as with `ixgbe`.
pub(crate) const WAKE_PACKETS: WakePackets = WakePackets::NONE.with(WakePacket::Magic);

/// The packets that the NIC knows.
const KNOWN: WakePackets = WAKE_PACKETS
    .with(WakePacket::Unicast)
    .with(WakePacket::Multicast)
    .with(WakePacket::Broadcast);

/// Returns the packets by which a port can wake the machine: none, unless its board has power while
/// the machine sleeps. Nothing but the board's ids tell; `ixgbe` has these as well.
pub(crate) fn wake_packets(pdev: &pci::Device<Bound>, is_first: bool) -> WakePackets {
    /// Boards of the first id, on which both ports have it, and the first one alone.
    const BOTH: &[u16] = &[0x000d, 0x0470, 0x06ee, 0x11a9, 0x1f72, 0x211b, 0x8976];
    const FIRST: &[u16] = &[0x0008, 0x1071, 0x17d0, 0x2159];

    let board = pdev.subsystem_device_id();
    let has_power = match pdev.device_id() {
        0x10fb => BOTH.contains(&board) || is_first && FIRST.contains(&board),
        0x1557 => board == 0x0001,
        0x10f7 => true,
        0x10f8 => board != 0x000c,
        _ => false,
    };

    if has_power {
        KNOWN
    } else {
        WakePackets::NONE
    }
}
