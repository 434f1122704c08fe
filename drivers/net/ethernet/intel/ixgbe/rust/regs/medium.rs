// SPDX-License-Identifier: GPL-2.0

//! Registers of the link and of the SFP+ module, and of what drivers and firmware share.

use kernel::io::register;

// General control, datasheet 8.2.3.1.

register! {
    /// The lines of the I2C bus to the SFP+ module.
    pub(crate) I2CCTL(u32) @ 0x00028 {
        /// Data line: high lets the module drive it.
        3:3     data_out => bool;
        /// Level of the data line.
        2:2     data_in => bool;
        /// Clock line: high lets the module hold it down.
        1:1     clk_out => bool;
        /// Level of the clock line.
        0:0     clk_in => bool;
    }
}

// Semaphores between drivers and firmware, datasheet 8.2.3.4.

register! {
    /// Software Semaphore Register.
    pub(crate) SWSM(u32) @ 0x10140 {
        /// The software side asks for the shared resources; set only if the firmware lets it.
        1:1     swesmbi => bool;
        /// Taken by another driver. Reading 0 takes it.
        0:0     smbi => bool;
    }

    /// Firmware Semaphore Register.
    pub(crate) FWSM(u32) @ 0x10148 {
        /// The work that the firmware does; 2 is passing packets to a management controller.
        3:1     fw_mode;
    }

    /// Power state and sharing of the functions of the NIC.
    pub(crate) FACTPS(u32) @ 0x10150 {
        /// LAN Function Select: the two ports are each other's function.
        30:30   lfs => bool;
        /// The clock of the management block is off.
        29:29   mngcg => bool;
    }

    /// Management Control.
    pub(crate) MANC(u32) @ 0x05820 {
        /// The management controller receives packets from the port.
        17:17   rcv_tco_en => bool;
    }

    /// Software-Firmware Synchronization: owners of shared resources.
    pub(crate) SW_FW_SYNC(u32) @ 0x10160 {
        /// Resources that the firmware uses.
        9:5     firmware;
        /// The same resources, used by software.
        4:0     software;
    }
}

// MAC and link, datasheet 8.2.3.22.

register! {
    /// Auto-Negotiation Control.
    pub(crate) AUTOC(u32) @ 0x042a0 {
        /// The port has KX4, four lanes of a backplane.
        31:31   kx4_supp => bool;
        /// The port has KX, one lane at 1 Gb/s.
        30:30   kx_supp => bool;
        /// The port has KR, one lane at 10 Gb/s.
        16:16   kr_supp => bool;
        /// Link mode select.
        15:13   lms;
        /// Restart negotiation, which puts the other fields into effect. Clears itself.
        12:12   restart_an => bool;
        /// Physical layer for 1 Gb/s; 0 is SFI.
        9:9     pma_pmd_1g;
        /// Force Link Up: the MAC takes the link for up, whether there is one or not.
        0:0     flu => bool;
    }

    /// Auto-Negotiation Control 2.
    pub(crate) AUTOC2(u32) @ 0x042a8 {
        /// The link is switched off by the NVM, for each power state.
        30:28   link_disable;
        /// Physical layer for 10 Gb/s over one lane; 2 is SFI.
        17:16   pma_pmd_10g_serial;
    }

    /// Link Status.
    pub(crate) LINKS(u32) @ 0x042a4 {
        /// The link is up.
        30:30   link_up => bool;
        /// Speed of the link.
        29:28   link_speed;
    }

    /// Auto-Negotiation Link Partner 1.
    pub(crate) ANLP1(u32) @ 0x042b0 {
        /// State of the negotiation; 0 while it has not begun.
        19:16   an_state;
    }

    /// MAC Manageability Control.
    pub(crate) MMNGC(u32) @ 0x042d0 {
        /// The firmware forbids changes of the link.
        0:0     mng_veto => bool;
    }

    /// Settings of the physical layer, one after the other.
    pub(crate) CORECTL(u32) @ 0x14f00 {}
}

/// Values of [`AUTOC`]'s link mode select.
pub(crate) mod link_mode {
    /// 1 Gb/s with negotiation of pauses (IEEE 802.3, clause 37).
    pub(crate) const NEGOTIATED_1G: u32 = 2;
    /// 10 Gb/s over one lane (SFI) without negotiation.
    pub(crate) const SERIAL_10G: u32 = 3;
    /// KR, KX4 or KX, as both ends of a backplane have it; with another negotiation at 1 Gb/s as
    /// well, or with SGMII.
    pub(crate) const BACKPLANES: [u32; 3] = [4, 6, 7];
}

/// Values of [`LINKS`]' link speed.
pub(crate) mod link_speed {
    /// 100 Mb/s.
    pub(crate) const SPEED_100: u32 = 1;
    /// 1 Gb/s.
    pub(crate) const SPEED_1000: u32 = 2;
    /// 10 Gb/s.
    pub(crate) const SPEED_10000: u32 = 3;
}
