// SPDX-License-Identifier: GPL-2.0

//! Waking the machine by received packets (datasheet 5.3).

use kernel::{
    device::Bound,
    io::Io,
    net::device::{
        controls::{
            WakePacket,
            WakePackets, //
        },
        Device, //
    },
    pci,
    prelude::*, //
};

use crate::{
    filter,
    hw,
    regs::*, //
};

use super::Port;

/// The packets that are chosen until users choose others, as with `ixgbe`.
pub(super) const AT_FIRST: WakePackets = WakePackets::NONE.with(WakePacket::Magic);

/// The packets that the card knows.
const KNOWN: WakePackets = AT_FIRST
    .with(WakePacket::Unicast)
    .with(WakePacket::Multicast)
    .with(WakePacket::Broadcast);

/// Returns the packets by which a port can wake the machine: none, unless its board has power while
/// the machine sleeps. Nothing but the board's ids tell; `ixgbe` has these as well.
pub(super) fn packets(pdev: &pci::Device<Bound>, is_first: bool) -> WakePackets {
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

impl Port<'_> {
    /// Has the card look for packets of these kinds while it sleeps (D3).
    pub(crate) fn arm_wake_up(&self, netdev: &Device, packets: WakePackets) {
        let bar = &self.bar;

        self.keep_link(netdev);
        // A port that was down has no addresses.
        filter::set_own_address(bar, &netdev.mac_address());
        // As with `ixgbe`: the filter of groups may have been reset, too.
        bar.update(FCTRL, |r| r.with_bam(true).with_mpe(true));
        bar.update(CTRL, |r| r.with_pcie_master_disable(true));

        bar.write_reg(
            WUFC::zeroed()
                .with_mag(packets.contains(WakePacket::Magic))
                .with_ex(packets.contains(WakePacket::Unicast))
                .with_mc(packets.contains(WakePacket::Multicast))
                .with_bc(packets.contains(WakePacket::Broadcast)),
        );
        hw::flush(bar);
    }
}
