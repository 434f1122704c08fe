// SPDX-License-Identifier: GPL-2.0

//! Waking the machine by received packets (datasheet 5.3).

use kernel::{
    net::device::{
        ethtool::wol::{
            WakePacket,
            WakePackets, //
        },
        Device, //
    },
    netdev_warn,
    prelude::*, //
};

use crate::{
    filter,
    mmio,
    regs::*, //
};

use super::Port;

impl Port<'_> {
    /// Has the NIC look for packets of these kinds while it sleeps (D3).
    pub(crate) fn arm_wake_up(&self, netdev: &Device, packets: WakePackets) {
        let bar = &self.bar;

        self.keep_link(netdev);
        // A port that was down has no addresses.
        filter::set_own_address(bar, &netdev.mac_address());
        // As with `ixgbe`: the filter of groups may have been reset, too.
        let filtered = bar.update(FCTRL, |r| r.with_bam(true).with_mpe(true));
        let quiet = bar.update(CTRL, |r| r.with_pcie_master_disable(true));
        if filtered.and(quiet).is_err() {
            // It falls asleep all the same.
            netdev_warn!(netdev, "packets may not wake the machine\n");
        }

        bar.write_reg(
            WUFC::zeroed()
                .with_mag(packets.contains(WakePacket::Magic))
                .with_ex(packets.contains(WakePacket::Unicast))
                .with_mc(packets.contains(WakePacket::Multicast))
                .with_bc(packets.contains(WakePacket::Broadcast)),
        );
        mmio::flush(bar);
    }
}
