// SPDX-License-Identifier: GPL-2.0
//! The fields of the registers on which the model acts: one type for each register.
//!
//! Bit numbers and names are those of the data sheet (Intel 82599 10 GbE Controller, chapter
//! 8.2.3; each group below names its section), so that a type can be read next to it. A bit that
//! no field names keeps its value: `with_…` changes only its field.

use arbitrary_int::{u2, u3, u4, u5, u6, u7, u9, u10, u12, u13, u14, u15, u30};
use bitbybit::{bitenum, bitfield};

use super::offset::{self, QUEUE};

/// A register, or an array of equal ones, with named fields.
pub trait Register: Copy {
    /// Offset of the first one in BAR 0, in bytes.
    const FIRST: u32;
    /// Distance between two of them, in bytes; 0 where there is only one.
    const STRIDE: u32;

    /// The register with this value.
    fn from_raw(raw: u32) -> Self;

    /// Its value.
    fn raw(self) -> u32;

    /// Offset of number `index` in BAR 0, in bytes.
    fn offset(index: u32) -> u32 {
        Self::FIRST + index * Self::STRIDE
    }
}

/// Makes types with an attribute, which has to be the caller's. A field is at a bit, or in several
/// bits with a type of its own.
macro_rules! bitfields {
    ($hash:tt $attribute:tt $($(#[$about:meta])* $name:ident
       $(at $first:ident $(+ $more:literal)? $(, every $stride:tt)? $(, found by $find:ident)?)? {
        $($(#[$explain:meta])* $field:ident $(@ $bit:tt)?
          $(: $kind:tt $(<$inner:ident>)? = $low:tt ..= $high:tt $(stride $step:tt)?)?,)*
    })*) => {$(
        $(#[$about])*
        $hash $attribute
        pub struct $name {$(
            $(#[$explain])*
            $(#[bit($bit, rw)] pub $field: bool,)?
            $(#[bits($low..=$high, rw $(, stride = $step)?)] pub $field: $kind $(<$inner>)?,)?
        )*}

        $(impl Register for $name {
            const FIRST: u32 = offset::$first $(+ $more)?;
            const STRIDE: u32 = 0 $(+ $stride)?;

            #[inline]
            fn from_raw(raw: u32) -> Self {
                Self::new_with_raw_value(raw)
            }

            #[inline]
            fn raw(self) -> u32 {
                self.raw_value()
            }

            $(#[inline]
            fn offset(index: u32) -> u32 {
                $find(index)
            })?
        })?
    )*};
}
pub(crate) use bitfields;

bitfields! { #[bitfield(u32, default = 0, debug)]
    // 8.2.3.1, general control registers.

    /// Device control.
    Ctrl at CTRL {
        /// PCIe master disable: the card starts no new DMA.
        gio_dis @ 2,
        /// Link reset: resets the MAC; clears itself.
        lnk_rst @ 3,
        /// Device reset; clears itself.
        rst @ 26,
    }

    /// Device status.
    Status at STATUS {
        /// PCIe master requests may still be outstanding.
        gio @ 19,
    }

    /// Device control, extended.
    CtrlExt at CTRL_EXT {
        /// A driver is in charge, rather than the firmware.
        drv_load @ 28,
    }

    /// Software-definable pins.
    Esdp at ESDP {
        /// Level of pin 2: on this card, a module is in the SFP cage.
        sdp2_data @ 2,
        /// Level of pin 3: it turns the laser off.
        sdp3_data @ 3,
        /// Level of pin 5: it selects the higher rate of a module that has two.
        sdp5_data @ 5,
        /// Pin 5 is an output.
        sdp5_dir @ 13,
    }

    /// I2C lines to the SFP module, driven by software.
    I2cctl at I2CCTL {
        /// Level of the clock line.
        clk_in @ 0,
        /// Level that the driver puts on the clock line.
        clk_out @ 1,
        /// Level of the data line.
        data_in @ 2,
        /// Level of the driver on the data line; high allows the module to drive it.
        data_out @ 3,
    }

    // 8.2.3.2, EEPROM and flash; 8.2.3.4, semaphores and firmware.

    /// EEPROM control.
    Eec at EEC {
        /// Software asks for direct access.
        ee_req @ 6,
        /// Direct access is granted.
        ee_gnt @ 7,
        /// An EEPROM with a valid signature is present.
        ee_pres @ 8,
        /// The automatic read after reset has ended.
        auto_rd @ 9,
        /// Size of the EEPROM: 2 to the power of this plus 6, in words.
        ee_size: u4 = 11..=14,
        /// All that the hardware sets and software cannot change: bits 8 to 14.
        fixed: u7 = 8..=14,
    }

    /// EEPROM read.
    Eerd at EERD {
        /// Starts a read.
        start @ 0,
        /// The read has ended.
        done @ 1,
        /// Which 16-bit word to read.
        addr: u14 = 2..=15,
        /// The word.
        data: u16 = 16..=31,
    }

    /// Software semaphore.
    Swsm at SWSM {
        /// Taken; a read sets it.
        smbi @ 0,
        /// Software asks the firmware for the shared semaphore.
        swesmbi @ 1,
    }

    /// Software-firmware synchronisation (GSSR in the C driver): owners of what they share.
    Gssr at GSSR {
        /// Software uses the bus of the first port's module, or of the second one's.
        sw_phy: u2 = 1..=2,
        /// Software uses registers of the MAC.
        sw_mac @ 3,
        /// The firmware's owners of all five.
        firmware: u5 = 5..=9,
    }

    /// Management of the link.
    Mmngc at MMNGC {
        /// The firmware forbids to change the link.
        mng_veto @ 0,
    }

    /// Firmware semaphore.
    Fwsm at FWSM {
        /// The firmware runs.
        fw_val_bit @ 15,
    }

    // 8.2.3.5, interrupt registers.

    /// Causes, as in EICR, EICS, EIMS, EIMC and EIAM; these have no fixed offset.
    Causes {
        /// Queue causes, one bit for each of the first 16 vectors.
        rtxq: u16 = 0..=15,
        /// Causes other than the queues, by EICR's bit number less 16.
        other: u14 = 16..=29,
        /// The table of the flow director is nearly full.
        flow_dir @ 16,
        /// Link status change.
        lsc @ 20,
        /// Pin 1 has risen.
        gpi_sdp1 @ 25,
        /// Pin 2 has risen.
        gpi_sdp2 @ 26,
        /// Uncorrectable error in a memory of the card.
        ecc @ 28,
    }

    /// General purpose interrupt enable.
    Gpie at GPIE {
        /// Pin 1 is a source of interrupts.
        sdp1_gpien @ 1,
        /// Pin 2 is a source of interrupts.
        sdp2_gpien @ 2,
        /// One vector for each cause, as IVAR says; else all go to vector 0.
        multiple_msix @ 4,
        /// Other clear disable: a read of EICR clears only bits 16 to 29.
        ocd @ 5,
        /// The time between the end of a joined packet and the interrupt, less one, in units of
        /// 4 us.
        rsc_delay: u3 = 11..=13,
        /// Extended auto mask: sending a message masks the causes that EIAM names.
        eiame @ 30,
    }

    /// Vectors of two queues: entry 0 is receive and 1 transmit of the even one, 2 and 3 of the
    /// odd one.
    Ivar at IVAR, every 4 {
        /// The vector of each cause.
        entry: [IvarEntry; 4] = 0..=7 stride 8,
    }

    /// Vectors of the TCP timer (entry 0) and of all other causes (entry 1).
    IvarMisc at IVAR_MISC {
        /// The vector of each cause.
        entry: [IvarEntry; 2] = 0..=7 stride 8,
    }

    /// Interrupt throttle of one vector.
    Eitr at EITR, every 4, found by eitr {
        /// Least time between two messages, in units of 2 µs (at 10 Gb/s).
        itr_interval: u9 = 3..=11,
    }

    // 8.2.3.7, receive registers.

    /// Filter control.
    Fctrl at FCTRL {
        /// Multicast promiscuous.
        mpe @ 8,
        /// Unicast promiscuous.
        upe @ 9,
        /// Accept broadcast.
        bam @ 10,
    }

    /// VLAN control.
    Vlnctrl at VLNCTRL {
        /// Ethertype of a VLAN tag.
        vet: u16 = 0..=15,
        /// The VLAN table filters.
        vfe @ 30,
    }

    /// Multicast control.
    Mcstctrl at MCSTCTRL {
        /// Which 12 of the last 16 bits of an address select a bit of the multicast table.
        mo: u2 = 0..=1,
        /// The multicast table filters.
        mfe @ 2,
    }

    /// High half of a receive address.
    Rah at RAL + 4, every 8, found by rah {
        /// The last two bytes of the address, the fifth one low.
        rah: u16 = 0..=15,
        /// The address is valid.
        av @ 31,
    }

    /// Multiple receive queues.
    Mrqc at MRQC {
        /// How frames are distributed; [`Mrqc::RSS`] is the mode that the model knows.
        mrqe: u4 = 0..=3,
        /// Hash IPv4 with TCP ports.
        ipv4_tcp @ 16,
        /// Hash IPv4 addresses.
        ipv4 @ 17,
        /// Hash IPv6 addresses.
        ipv6 @ 20,
        /// Hash IPv6 with TCP ports.
        ipv6_tcp @ 21,
        /// Hash IPv4 with UDP ports.
        ipv4_udp @ 22,
        /// Hash IPv6 with UDP ports.
        ipv6_udp @ 23,
    }

    /// Checksums of received frames.
    Rxcsum at RXCSUM {
        /// Packet checksum disable: descriptors hold the RSS hash instead.
        pcsd @ 13,
    }

    // 8.2.3.8, receive DMA registers.

    /// Size of a descriptor ring (RDLEN and TDLEN are alike).
    Rdlen at RDLEN, every QUEUE {
        /// The size in units of 128 bytes, which are eight descriptors.
        len: u13 = 7..=19,
    }

    /// Receive descriptor control.
    Rxdctl at RXDCTL, every QUEUE {
        /// The queue is enabled.
        enable @ 25,
        /// VLAN tags are stripped.
        vme @ 30,
    }

    /// Split and replication receive control.
    Srrctl at SRRCTL, every 4, found by srrctl {
        /// Size of a packet buffer in KiB.
        bsizepacket: u5 = 0..=4,
        /// Size of a header buffer in units of 64 bytes.
        bsizeheader: u6 = 8..=13,
        /// Kind of descriptor: [`Srrctl::LEGACY`], [`Srrctl::ADVANCED`] or with split headers.
        desctype: u3 = 25..=27,
        /// Drops a frame if the ring has no descriptor, instead of holding up the packet buffer.
        drop_en @ 28,
    }

    /// Direct cache access of one queue.
    DcaRxctrl at DCA_RXCTRL, every 4 {
        /// Set after a reset; must be 0.
        must_be_0 @ 12,
    }

    /// Receive DMA control.
    Rdrxctl at RDRXCTL {
        /// The FCS does not go to memory.
        crcstrip @ 1,
        /// The DMA engine has been initialised.
        dmaidone @ 3,
        /// Must be 0.
        rscfrstsize: u5 = 17..=21,
        /// Must be 1.
        rscackc @ 25,
        /// Must be 1.
        fcoe_wrfix @ 26,
    }

    /// Coalescing of one receive queue.
    Rscctl at RSCCTL, every QUEUE {
        /// The queue coalesces.
        rscen @ 0,
        /// The most descriptors of a packet, see [`Rscctl::descriptors`].
        maxdesc: u2 = 2..=3,
    }

    /// Control of the buffer of coalescing.
    Rscdbu at RSCDBU {
        /// Segments without payload stay alone.
        rscackdis @ 7,
    }

    /// The headers that the receiver looks for.
    Psrtype at PSRTYPE, every 4 {
        /// That of TCP.
        tcphdr @ 4,
    }

    /// Receive filter control.
    Rfctl at RFCTL {
        /// No queue coalesces.
        rsc_dis @ 5,
    }

    /// Receive control.
    Rxctrl at RXCTRL {
        /// The receiver is enabled.
        rxen @ 0,
    }

    /// Receive packet buffer of one traffic class.
    Rxpbsize at RXPBSIZE0, every 4 {
        /// Its size in KiB.
        size: u10 = 10..=19,
    }

    // 8.2.3.9, transmit registers.

    /// Control of the arbiter of transmit descriptors.
    Rttdcs at RTTDCS {
        /// The arbiter stands still.
        arbdis @ 6,
    }

    /// DMA transmit control.
    Dmatxctl at DMATXCTL {
        /// The transmitter is enabled.
        te @ 0,
        /// Ethertype of the VLAN tags that the card inserts.
        vt: u16 = 16..=31,
    }

    /// TCP flags that segments keep, first and middle ones.
    Dtxtcpflgl at DTXTCPFLGL {
        /// Of the first segment.
        first_seg: u12 = 0..=11,
        /// Of the segments between.
        mid_seg: u12 = 16..=27,
    }

    /// TCP flags that segments keep, the last one.
    Dtxtcpflgh at DTXTCPFLGH {
        /// Of the last segment.
        last_seg: u12 = 0..=11,
    }

    /// Transmit descriptor control.
    Txdctl at TXDCTL, every QUEUE {
        /// Descriptors that are written back together.
        wthresh: u7 = 16..=22,
        /// The queue is enabled.
        enable @ 25,
    }

    /// The most that the transmitter asks memory for at a time.
    Dtxmxszrq at DTXMXSZRQ {
        /// In units of 256 bytes.
        max_bytes_num_req: u12 = 0..=11,
    }

    /// Low half of the address to which the head is written back.
    Tdwbal at TDWBAL, every QUEUE {
        /// The head is written back.
        head_wb_en @ 0,
        /// The address less its lowest two bits, which are 0.
        headwb_low: u30 = 2..=31,
    }

    // 8.2.3.22, MAC registers.

    /// MAC control.
    Hlreg0 at HLREG0 {
        /// The card appends the FCS.
        txcrcen @ 0,
        /// The MAC strips the FCS.
        rxcrcstrp @ 1,
        /// Frames up to MAXFRS are taken.
        jumboen @ 2,
        /// Short frames are padded.
        txpaden @ 10,
        /// Loopback: frames that the port sends come back to it.
        lpbk @ 15,
    }

    /// Command on the management bus of the PHY.
    Msca at MSCA {
        /// Starts the command; clears itself at its end.
        mdicmd @ 30,
    }

    /// Data of the management bus.
    Msrwd at MSRWD {
        /// The word that was read.
        mdirdata: u16 = 16..=31,
    }

    /// Flow control of the MAC.
    Mflcn at MFLCN {
        /// Pause frames do not reach the host.
        dpf @ 1,
        /// Transmission pauses when the link partner asks for it.
        rfce @ 3,
    }

    /// Largest frame.
    Maxfrs at MAXFRS {
        /// Bytes with FCS, without VLAN tag.
        mfs: u16 = 16..=31,
    }

    /// Autonegotiation control.
    Autoc at AUTOC {
        /// The MAC takes the link for up, whether there is one or not.
        flu @ 0,
        /// Selector field of autonegotiation; 1 is IEEE 802.3.
        ansf: u5 = 2..=6,
        /// Restarts the link; clears itself.
        restart_an @ 12,
        /// Kind of link.
        lms: Option<LinkMode> = 13..=15,
        /// The port has KR: one lane of a backplane at 10 Gb/s.
        kr_supp @ 16,
        /// And KX: one at 1 Gb/s.
        kx_supp @ 30,
        /// And KX4: four.
        kx4_supp @ 31,
    }

    /// Autonegotiation control 2.
    Autoc2 at AUTOC2 {
        /// The EEPROM keeps the link off, for each power state.
        link_disable: u3 = 28..=30,
    }

    // 8.2.3.24, wake-up registers.

    /// Wake-up control.
    Wuc at WUC {
        /// The card looks for magic packets whatever the driver says, as the EEPROM has it.
        apme @ 0,
        /// PME_En of the PMCSR, which is the same bit.
        pme_en @ 1,
        /// PME_Status of the PMCSR, which is the same bit; written as 1 to clear it.
        pme_status @ 2,
        /// Wake-up from D3cold is advertised where there is auxiliary power.
        advd3wuc @ 4,
    }

    /// Wake-up filter control.
    Wufc at WUFC {
        /// The link changes.
        lnkc @ 0,
        /// A magic packet.
        mag @ 1,
        /// A packet for one of the port's own addresses.
        ex @ 2,
        /// A packet for a group that the port is in.
        mc @ 3,
        /// A packet for everyone.
        bc @ 4,
    }

    /// Wake-up status: the filters that something has passed. Bits are cleared by writing 1.
    Wus at WUS {
        /// The link has changed.
        lnkc @ 0,
        /// A magic packet.
        mag @ 1,
        /// A packet for one of the port's own addresses.
        ex @ 2,
        /// A packet for a group that the port is in.
        mc @ 3,
        /// A packet for everyone.
        bc @ 4,
    }

    // 8.2.3.12, security; 8.2.3.3, PCIe.

    /// Security receive control.
    Secrxctrl at SECRXCTRL {
        /// The receive path stops at the security block.
        rx_dis @ 1,
    }

    /// Security receive status.
    Secrxstat at SECRXSTAT {
        /// The security block is empty.
        secrx_rdy @ 0,
    }

    /// PCIe control, extended.
    GcrExt at GCR_EXT {
        /// Clears the buffers of the transaction layer.
        buffers_clear @ 30,
    }

    /// State of the link.
    Links at LINKS {
        /// The link has been up since the last read.
        link_status @ 7,
        /// Speed; 3 is 10 Gb/s.
        link_speed: u2 = 28..=29,
        /// The link is up.
        link_up @ 30,
    }

    // 8.2.3.21, flow director registers.

    /// Flow director control.
    Fdirctrl at FDIRCTRL {
        /// Memory for filters: none, or 64, 128 or 256 KiB of the receive packet buffer.
        pballoc: u2 = 0..=1,
        /// The table is ready.
        init_done @ 3,
        /// Filters match all of their fields, rather than a signature of them.
        perfect_match @ 4,
        /// Descriptors tell of filters in place of the hash.
        report_status @ 5,
        /// The queue of packets that are dropped.
        drop_queue: u7 = 8..=14,
        /// Where the flexible bytes are in a packet, in units of two bytes.
        flex_offset: u5 = 16..=20,
        /// The table is reported as full when fewer filters than 16 times this are free.
        full_thresh: u4 = 28..=31,
    }

    /// Flow director filter hash.
    Fdirhash at FDIRHASH {
        /// Hash of the filter's fields.
        hash: u15 = 0..=14,
        /// The driver's number of a perfect filter; the signature of another one.
        soft_index: u15 = 16..=30,
    }

    /// Flow director command.
    Fdircmd at FDIRCMD {
        /// The command; 0 when it is done.
        command: u2 = 0..=1,
        /// A query has found the filter.
        filter_valid @ 2,
        /// Adding a filter that is there updates it.
        filter_update @ 3,
        /// Transport protocol of the filter: 1 for UDP, 2 for TCP, 3 for SCTP.
        l4type: u2 = 5..=6,
        /// Clears the table.
        clear_table @ 8,
        /// Packets that match are dropped.
        drop @ 9,
        /// The filter has a queue.
        queue_en @ 15,
        /// The queue.
        rx_queue: u7 = 16..=22,
    }

    /// Flow director other masks: set bits for fields that are not compared.
    Fdirm at FDIRM {
        /// The id in a VLAN tag.
        vlan_id @ 0,
        /// The priority in it.
        vlan_priority @ 1,
        /// The pool.
        pool @ 2,
        /// The transport protocol, and its ports.
        l4_protocol @ 3,
        /// The flexible bytes.
        flex @ 4,
        /// Destination addresses of IPv6.
        ipv6_destination @ 5,
    }
}

bitfields! { #[bitfield(u8, default = 0, debug)]
    /// Where one cause goes.
    IvarEntry {
        /// The MSI-X vector.
        int_alloc: u6 = 0..=5,
        /// The cause has a vector.
        int_alloc_val @ 7,
    }
}

impl Eitr {
    /// Bits that keep the written value.
    pub const WRITABLE: u32 = 0x0fff_fff8;
}

impl Mrqc {
    /// MRQE: receive side scaling into 16 queues.
    pub const RSS: u4 = u4::new(1);
}

impl Rdlen {
    /// Descriptors in the ring.
    #[inline]
    pub fn descriptors(self) -> u32 {
        u32::from(self.len().value()) * 8
    }
}

impl Srrctl {
    /// DESCTYPE: legacy.
    pub const LEGACY: u3 = u3::new(0);
    /// DESCTYPE: advanced, one buffer.
    pub const ADVANCED: u3 = u3::new(1);
}

impl Rscctl {
    /// The most descriptors of a packet.
    pub fn descriptors(self) -> u32 {
        match self.maxdesc().value() {
            0 => 1,
            1 => 4,
            2 => 8,
            _ => 16,
        }
    }
}

impl Tdwbal {
    /// Low half of the address.
    pub fn address(self) -> u32 {
        self.headwb_low().value() << 2
    }
}

impl Autoc2 {
    /// Whether the link is off while the function is in D3. The bit between is not about that.
    pub fn link_is_off_in_d3(self) -> bool {
        self.link_disable().value() & 0b101 != 0
    }
}

impl Wufc {
    /// All filters of a card, of which the model has those with a name.
    pub const FILTERS: u32 = 0x003f_00ff;
}

/// The link modes that the model can be in.
#[bitenum(u3, exhaustive = false)]
#[derive(Debug, PartialEq, Eq)]
pub enum LinkMode {
    /// 1 Gb/s, without autonegotiation.
    Gigabit = 0,
    /// 10 Gb/s in parallel, without autonegotiation (KX4, XAUI).
    Parallel10G = 1,
    /// 1 Gb/s with autonegotiation.
    GigabitNegotiated = 2,
    /// 10 Gb/s serial (SFI), for SFP+.
    Serial10G = 3,
    /// The best of KR, KX4 and KX that both ends of a backplane have.
    Backplane = 4,
}

impl Links {
    /// LINK_SPEED: 1 Gb/s.
    pub const SPEED_1G: u2 = u2::new(2);
    /// LINK_SPEED: 10 Gb/s.
    pub const SPEED_10G: u2 = u2::new(3);
}

impl Fdircmd {
    /// No command.
    pub const NONE: u2 = u2::new(0);
    /// Adds a filter.
    pub const ADD: u2 = u2::new(1);
    /// Removes a filter.
    pub const REMOVE: u2 = u2::new(2);
    /// Asks for a filter.
    pub const QUERY: u2 = u2::new(3);
}

/// The first 24 vectors have their EITR in one place, the rest in another.
#[inline]
fn eitr(vector: u32) -> u32 {
    match vector {
        0..24 => offset::EITR + vector * 4,
        _ => offset::EITR_HIGH + (vector - 24) * 4,
    }
}

/// The first 16 queues have their SRRCTL in an array of its own, the rest among the ring registers.
#[inline]
fn srrctl(queue: u32) -> u32 {
    match queue {
        0..16 => offset::SRRCTL + queue * 4,
        _ => offset::SRRCTL_HIGH + queue * offset::QUEUE,
    }
}

/// The first 16 receive addresses are in one place, all 128 in another.
#[inline]
fn rah(entry: u32) -> u32 {
    ral(entry) + 4
}

/// Offset of the low half of receive address `entry`, whose high half is [`Rah`].
#[inline]
pub fn ral(entry: u32) -> u32 {
    let array = if entry < 16 {
        offset::RAL
    } else {
        offset::RAL_HIGH
    };
    array + entry * 8
}

#[cfg(test)]
mod tests;
