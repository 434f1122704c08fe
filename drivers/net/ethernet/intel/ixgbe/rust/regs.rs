// SPDX-License-Identifier: GPL-2.0

//! Registers of the 82599 that have to do with the port as a whole.
//!
//! The names are those of the "Intel 82599 10 GbE Controller Datasheet", chapter 8 (Programming
//! Interface). Registers of the link are in [`medium`], those of the descriptor rings in [`queue`],
//! those of the flow director in [`director`], of time stamps in [`ptp`], and statistics in
//! [`counter`].

use kernel::io::register;

pub(crate) mod counter;
pub(crate) mod director;
pub(crate) mod medium;
pub(crate) mod ptp;
pub(crate) mod queue;

// General control, datasheet 8.2.3.1.

register! {
    /// Device Control Register.
    pub(crate) CTRL(u32) @ 0x00000 {
        /// Device reset: also known as software reset. Clears itself.
        26:26   rst => bool;
        /// Link reset: a device reset that includes the link and the MAC. Clears itself.
        3:3     lrst => bool;
        /// PCIe Master Disable: the device starts no new transactions.
        2:2     pcie_master_disable => bool;
    }

    /// Device Status Register.
    pub(crate) STATUS(u32) @ 0x00008 {
        /// The device may still have transactions outstanding.
        19:19   pcie_master_enable_status => bool;
        /// Which of the two ports this is.
        3:2     lan_id;
    }

    /// Extended Device Control Register.
    pub(crate) CTRL_EXT(u32) @ 0x00018 {
        /// A driver is in charge of the port.
        28:28   drv_load => bool;
        /// No Snoop Disable: never set the no-snoop attribute.
        16:16   ns_dis => bool;
    }

    /// Extended SDP Control: general purpose pins.
    pub(crate) ESDP(u32) @ 0x00020 {
        /// Pin 5 is an output.
        13:13   sdp5_dir => bool;
        /// Level of pin 5, which selects the higher rate of a module that has two.
        5:5     sdp5_data => bool;
        /// Level of pin 3, which switches off the laser of SFP+ NICs.
        3:3     sdp3_data => bool;
        /// Level of pin 2, which says that the cage holds an SFP+ module.
        2:2     sdp2_data => bool;
    }

    /// Wake Up Control.
    pub(crate) WUC(u32) @ 0x05800 {
        /// Assert PME on APM Wake Up: wake the machine although nothing in its configuration space
        /// allows it.
        3:3     apmpme => bool;
        /// Advance Power Management Enable: look for magic packets whatever the filters say.
        0:0     apme => bool;
    }

    /// Wake Up Filter Control: the packets that wake the machine.
    pub(crate) WUFC(u32) @ 0x05808 {
        /// Broadcast.
        4:4     bc => bool;
        /// Directed Multicast: those that pass the filter.
        3:3     mc => bool;
        /// Directed Exact: to an address of the port.
        2:2     ex => bool;
        /// Magic Packet.
        1:1     mag => bool;
    }

    /// Wake Up Status: the filters that have matched. Written ones clear them.
    pub(crate) WUS(u32) @ 0x05810 {}

    /// Control of the lights.
    pub(crate) LEDCTL(u32) @ 0x00200 {}
}

// NVM, datasheet 8.2.3.2.

register! {
    /// EEPROM/Flash Control Register.
    pub(crate) EEC(u32) @ 0x10010 {
        /// Size: 6 less than the binary logarithm of the number of words.
        14:11   ee_size;
        /// The hardware has read its configuration from the EEPROM.
        9:9     auto_rd => bool;
        /// There is an EEPROM with a valid signature.
        8:8     ee_pres => bool;
    }

    /// EEPROM Read Register.
    pub(crate) EERD(u32) @ 0x10014 {
        /// The word that was read.
        31:16   data;
        /// Which word to read.
        15:2    addr;
        /// The word has been read.
        1:1     done => bool;
        /// Start to read.
        0:0     start => bool;
    }
}

// PCIe, datasheet 8.2.3.3.

register! {
    /// PCIe Control Extended.
    pub(crate) GCR_EXT(u32) @ 0x11050 {
        /// Clears the buffers of the transaction layer.
        30:30   buffers_clear => bool;
    }
}

// Interrupts, datasheet 8.2.3.5.

register! {
    /// Extended Interrupt Cause.
    pub(crate) EICR(u32) @ 0x00800 {}

    /// Extended Interrupt Cause Set: reading it shows the causes without clearing any.
    pub(crate) EICS(u32) @ 0x00808 {
        /// Uncorrectable error in one of the device's memories.
        28:28   ecc => bool;
        /// Pin 2 has risen: a module was put into the cage.
        26:26   gpi_sdp2 => bool;
        /// Pin 1 has risen: the light in the module has come or gone.
        25:25   gpi_sdp1 => bool;
        /// Link status change.
        20:20   lsc => bool;
    }

    /// Extended Interrupt Auto Clear: causes that a message clears.
    pub(crate) EIAC(u32) @ 0x00810 {
        /// The causes of the queue vectors.
        15:0    rtx_queue;
    }

    /// Extended Interrupt Mask Set.
    pub(crate) EIMS(u32) @ 0x00880 {
        /// Uncorrectable error in one of the device's memories.
        28:28   ecc => bool;
        /// Pin 2 has risen: a module was put into the cage.
        26:26   gpi_sdp2 => bool;
        /// Pin 1 has risen: the light in the module has come or gone.
        25:25   gpi_sdp1 => bool;
        /// Link status change.
        20:20   lsc => bool;
    }

    /// Extended Interrupt Mask Clear.
    pub(crate) EIMC(u32) @ 0x00888 {
        /// Uncorrectable error in one of the device's memories.
        28:28   ecc => bool;
    }

    /// Extended Interrupt Cause Set, one bit per vector.
    pub(crate) EICS_EX(u32)[2] @ 0x00a90 {}

    /// Extended Interrupt Mask Set, one bit per vector; reading it shows the mask.
    pub(crate) EIMS_EX(u32)[2] @ 0x00aa0 {}

    /// Extended Interrupt Mask Clear, one bit per vector.
    pub(crate) EIMC_EX(u32)[2] @ 0x00ab0 {}

    /// Extended Interrupt Auto Mask Enable, one bit per vector.
    pub(crate) EIAM_EX(u32)[2] @ 0x00ad0 {}

    /// Extended Interrupt Throttle, one per vector.
    pub(crate) EITR(u32)[24] @ 0x00820 {
        /// Leave the running counter alone.
        31:31   cnt_wdis => bool;
        /// Least time between two interrupts, in units of 2 µs at 10 Gb/s.
        11:3    itr_interval;
    }

    /// General Purpose Interrupt Enable.
    pub(crate) GPIE(u32) @ 0x00898 {
        /// Clear the pending bit array when a cause is cleared.
        31:31   pba_support => bool;
        /// A message masks its vector by [`EIAM_EX`].
        30:30   eiame => bool;
        /// Reading [`EICR`] clears none of the causes of queues.
        5:5     ocd => bool;
        /// One vector per cause, as [`IVAR`] says.
        4:4     multiple_msix => bool;
        /// Pin 2 raises [`EICS::gpi_sdp2`].
        2:2     sdp2_gpien => bool;
        /// Pin 1 raises [`EICS::gpi_sdp1`].
        1:1     sdp1_gpien => bool;
    }

    /// Interrupt Vector Allocation: two receive and two transmit queues per register.
    pub(crate) IVAR(u32)[64] @ 0x00900 {
        /// The vector of the odd transmit queue is valid.
        31:31   int_alloc_val_tx_odd => bool;
        /// Vector of the odd transmit queue.
        29:24   int_alloc_tx_odd;
        /// The vector of the odd receive queue is valid.
        23:23   int_alloc_val_rx_odd => bool;
        /// Vector of the odd receive queue.
        21:16   int_alloc_rx_odd;
        /// The vector of the even transmit queue is valid.
        15:15   int_alloc_val_tx => bool;
        /// Vector of the even transmit queue.
        13:8    int_alloc_tx;
        /// The vector of the even receive queue is valid.
        7:7     int_alloc_val_rx => bool;
        /// Vector of the even receive queue.
        5:0     int_alloc_rx;
    }

    /// Miscellaneous Interrupt Vector Allocation.
    pub(crate) IVAR_MISC(u32) @ 0x00a00 {
        /// The vector of other causes is valid.
        15:15   int_alloc_val_other => bool;
        /// Vector of all causes that belong neither to a queue nor to the TCP timer.
        14:8    int_alloc_other;
    }
}

// MAC and link, datasheet 8.2.3.22.

register! {
    /// Highlander Control 0.
    pub(crate) HLREG0(u32) @ 0x04240 {
        /// Receive frames of up to [`MAXFRS`].
        2:2     jumboen => bool;
        /// Loopback: frames that the port sends come back to it.
        15:15   lpbk => bool;
        /// Pad short frames on transmission.
        10:10   txpaden => bool;
        /// Strip the frame check sequence on reception; must agree with [`RDRXCTL`].
        1:1     rxcrcstrp => bool;
        /// Add the frame check sequence on transmission.
        0:0     txcrcen => bool;
    }

    /// Advertisement of the negotiation at 1 Gb/s (IEEE 802.3, clause 37).
    pub(crate) PCS1GANA(u32) @ 0x04218 {
        /// Pause frames in one direction.
        8:8     asm_pause => bool;
        /// Pause frames in both directions.
        7:7     sym_pause => bool;
    }

    /// MAC Flow Control.
    pub(crate) MFLCN(u32) @ 0x04294 {
        /// Transmission pauses when the link partner asks for it.
        3:3     rfce => bool;
        /// Pause frames do not reach the host.
        1:1     dpf => bool;
    }

    /// Max Frame Size.
    pub(crate) MAXFRS(u32) @ 0x04268 {
        /// Largest frame to receive, with frame check sequence, in bytes.
        31:16   mfs;
    }
}

// Filters, datasheet 8.2.3.7.

register! {
    /// Receive Checksum Control.
    pub(crate) RXCSUM(u32) @ 0x05000 {
        /// Packet Checksum Disable: report the RSS hash instead of a fragment's checksum.
        13:13   pcsd => bool;
    }

    /// Receive Filter Control.
    pub(crate) RFCTL(u32) @ 0x05008 {
        /// Do not look into NFS reads.
        7:7     nfsr_dis => bool;
        /// Do not look into NFS writes.
        6:6     nfsw_dis => bool;
        /// Do not coalesce received segments.
        5:5     rsc_dis => bool;
    }

    /// Filter Control.
    pub(crate) FCTRL(u32) @ 0x05080 {
        /// Broadcast Accept Mode.
        10:10   bam => bool;
        /// Unicast Promiscuous Enable.
        9:9     upe => bool;
        /// Multicast Promiscuous Enable.
        8:8     mpe => bool;
        /// Store Bad Packets.
        1:1     sbp => bool;
    }

    /// VLAN Control Register.
    pub(crate) VLNCTRL(u32) @ 0x05088 {
        /// Filter frames with a VLAN tag by [`VFTA`].
        30:30   vfe => bool;
    }

    /// Multicast Control Register.
    pub(crate) MCSTCTRL(u32) @ 0x05090 {
        /// Multicast Filter Enable.
        2:2     mfe => bool;
        /// Which 12 bits of an address select a bit of [`MTA`]; 0 stands for bits 47:36.
        1:0     mo;
    }

    /// Multicast Table Array: one bit for each value that 12 bits of an address can have.
    pub(crate) MTA(u32)[128] @ 0x05200 {}

    /// Receive Address Low, of the first 16 entries.
    pub(crate) RAL(u32)[16, stride = 8] @ 0x05400 {}

    /// Receive Address High, of the first 16 entries.
    pub(crate) RAH(u32)[16, stride = 8] @ 0x05404 {
        /// Address Valid.
        31:31   av => bool;
        /// The last two bytes of the address.
        15:0    rah;
    }

    /// Receive Address Low, of all entries. Those of [`RAL`] are the same in both places.
    pub(crate) RAL_ALL(u32)[128, stride = 8] @ 0x0a200 {}

    /// Receive Address High, of all entries. Those of [`RAH`] are the same in both places.
    pub(crate) RAH_ALL(u32)[128, stride = 8] @ 0x0a204 {
        /// Address Valid.
        31:31   av => bool;
        /// The last two bytes of the address.
        15:0    rah;
    }

    /// VLAN Filter Table Array.
    pub(crate) VFTA(u32)[128] @ 0x0a000 {}

    /// MAC Pool Select Array: the pools 0 to 31 that an entry of [`RAL`] belongs to.
    pub(crate) MPSAR_LOW(u32)[128, stride = 8] @ 0x0a600 {}

    /// MAC Pool Select Array: the pools 32 to 63 that an entry of [`RAL`] belongs to.
    pub(crate) MPSAR_HIGH(u32)[128, stride = 8] @ 0x0a604 {}

    /// Unicast Table Array.
    pub(crate) PFUTA(u32)[128] @ 0x0f400 {}

    /// Multiple Receive Queues Command: how frames are spread over queues.
    pub(crate) MRQC(u32) @ 0x05818 {
        /// UDP over IPv6 is hashed with its ports.
        23:23   ipv6_udp => bool;
        /// UDP over IPv4 is hashed with its ports.
        22:22   ipv4_udp => bool;
        /// TCP over IPv6 is hashed with its ports.
        21:21   ipv6_tcp => bool;
        /// The addresses of IPv6 are hashed.
        20:20   ipv6 => bool;
        /// The addresses of IPv4 are hashed.
        17:17   ipv4 => bool;
        /// TCP over IPv4 is hashed with its ports.
        16:16   ipv4_tcp => bool;
        /// 0 for one queue, 1 for RSS and nothing else.
        3:0     mrqe;
    }

    /// Redirection Table: the queue of a hash, by its lowest 7 bits. Four queues per register.
    pub(crate) RETA(u32)[32] @ 0x05c00 {}

    /// RSS Random Key.
    pub(crate) RSSRK(u32)[10] @ 0x05c80 {}
}

// Receive path, datasheet 8.2.3.8, and its security block, 8.2.3.12.

register! {
    /// Receive DMA Control.
    pub(crate) RDRXCTL(u32) @ 0x02f00 {
        /// Must be set.
        26:26   fcoe_wrfix => bool;
        /// Must be set.
        25:25   rscackc => bool;
        /// Must be 0.
        21:17   rscfrstsize;
        /// DMA Init Done: the receive DMA engine has started after a reset.
        3:3     dmaidone => bool;
        /// Strip the frame check sequence; must agree with [`HLREG0`].
        1:1     crcstrip => bool;
    }

    /// Packet Split Receive Type: the headers that the receiver looks for.
    pub(crate) PSRTYPE(u32) @ 0x05480 {
        12:12   l2hdr => bool;
        9:9     ipv6hdr => bool;
        8:8     ipv4hdr => bool;
        5:5     udphdr => bool;
        4:4     tcphdr => bool;
    }

    /// RSC Data Buffer Control.
    pub(crate) RSCDBU(u32) @ 0x03028 {
        /// Do not coalesce segments without data: acknowledgements that are the same count.
        7:7     rscackdis => bool;
    }

    /// Receive Control.
    pub(crate) RXCTRL(u32) @ 0x03000 {
        /// Receive Enable.
        0:0     rxen => bool;
    }

    /// Receive Packet Buffer Size, one per traffic class.
    pub(crate) RXPBSIZE(u32)[8] @ 0x03c00 {
        /// Size in KiB; all of them have 512 together.
        19:10   size;
    }

    /// Flow Control Transmit Timer Value, for two traffic classes each.
    pub(crate) FCTTV(u32)[4] @ 0x03200 {
        /// Duration of the pauses asked for, of the second class, in units of 512 bit times.
        31:16   odd;
        /// Of the first class.
        15:0    even;
    }

    /// Flow Control Receive Threshold Low, one per traffic class.
    pub(crate) FCRTL(u32)[8] @ 0x03220 {
        /// Ask the link partner to go on when the packet buffer holds less.
        31:31   xone => bool;
        /// Fill level in units of 32 bytes.
        18:5    rtl;
    }

    /// Flow Control Receive Threshold High, one per traffic class.
    pub(crate) FCRTH(u32)[8] @ 0x03260 {
        /// Ask the link partner to pause when the packet buffer holds more.
        31:31   fcen => bool;
        /// Fill level in units of 32 bytes.
        18:5    rth;
    }

    /// Flow Control Refresh Threshold.
    pub(crate) FCRTV(u32) @ 0x032a0 {
        /// Ask again after this time, in units of 512 bit times.
        15:0    refresh;
    }

    /// Flow Control Configuration.
    pub(crate) FCCFG(u32) @ 0x03d00 {
        /// Transmit flow control: 1 for pause frames of IEEE 802.3.
        4:3     tfce;
    }

    /// Security Receive Control.
    pub(crate) SECRXCTRL(u32) @ 0x08d00 {
        /// Stop the receive path at the security block.
        1:1     rx_dis => bool;
    }

    /// Security Receive Status.
    pub(crate) SECRXSTAT(u32) @ 0x08d04 {
        /// The security block is empty.
        0:0     secrx_rdy => bool;
    }
}

// Transmit path, datasheet 8.2.3.9 and 8.2.3.10.

register! {
    /// DMA Tx Control.
    pub(crate) DMATXCTL(u32) @ 0x04a80 {
        /// Transmit Enable.
        0:0     te => bool;
    }

    /// DCB Transmit Descriptor Plane Control and Status.
    pub(crate) RTTDCS(u32) @ 0x04900 {
        /// Stops the arbiter, as [`MTQC`] asks for.
        6:6     arbdis => bool;
    }

    /// DMA Tx Maximum Size of Requests.
    pub(crate) DTXMXSZRQ(u32) @ 0x08100 {
        /// The most that is requested at a time, in units of 256 bytes.
        11:0    max_bytes_num_req;
    }

    /// Multiple Transmit Queues Command: 0 for one packet buffer and 64 queues.
    pub(crate) MTQC(u32) @ 0x08120 {}

    /// Transmit Packet Buffer Size, one per traffic class.
    pub(crate) TXPBSIZE(u32)[8] @ 0x0cc00 {
        /// Size in KiB; all of them have 160 together.
        19:10   size;
    }

    /// Transmit Packet Buffer Threshold, one per traffic class.
    pub(crate) TXPBTHRESH(u32)[8] @ 0x04950 {
        /// Fill level, in KiB, up to which the next packet is fetched.
        9:0     thresh;
    }
}
