// SPDX-License-Identifier: GPL-2.0
//! The fields of the registers on which the model acts: one type for each register.
//!
//! Bit numbers and names are those of the data sheet (Intel 82599 10 GbE Controller, chapter
//! 8.2.3; each group below names its section), so that a type can be read next to it. A bit that
//! no field names keeps its value: `with_…` changes only its field.

use arbitrary_int::{u2, u3, u4, u5, u6, u7, u9, u10, u12, u13, u14, u15, u30};
use bitbybit::{bitenum, bitfield};

use super::offset;

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

/// Implements [`Register`]: the type, its offset, and for an array its stride, or for one in two
/// parts a function that finds an element.
macro_rules! registers {
    ($($name:ident at $first:expr $(, every $stride:expr)? $(, found by $find:expr)?;)*) => {$(
        impl Register for $name {
            const FIRST: u32 = $first;
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
        }
    )*};
}

registers! {
    Ctrl at offset::CTRL;
    Status at offset::STATUS;
    CtrlExt at offset::CTRL_EXT;
    Esdp at offset::ESDP;
    I2cctl at offset::I2CCTL;
    Eec at offset::EEC;
    Eerd at offset::EERD;
    Swsm at offset::SWSM;
    Gssr at offset::GSSR;
    Mmngc at offset::MMNGC;
    Fwsm at offset::FWSM;
    Gpie at offset::GPIE;
    Ivar at offset::IVAR, every 4;
    IvarMisc at offset::IVAR_MISC;
    Eitr at offset::EITR, every 4, found by eitr;
    Fctrl at offset::FCTRL;
    Vlnctrl at offset::VLNCTRL;
    Mcstctrl at offset::MCSTCTRL;
    Rah at offset::RAL + 4, every 8, found by rah;
    Wuc at offset::WUC;
    Wufc at offset::WUFC;
    Wus at offset::WUS;
    Mrqc at offset::MRQC;
    Rdlen at offset::RDLEN, every offset::QUEUE;
    Rxdctl at offset::RXDCTL, every offset::QUEUE;
    Srrctl at offset::SRRCTL, every 4, found by srrctl;
    Rdrxctl at offset::RDRXCTL;
    Rxctrl at offset::RXCTRL;
    Rscctl at offset::RSCCTL, every offset::QUEUE;
    Rscdbu at offset::RSCDBU;
    Psrtype at offset::PSRTYPE, every 4;
    Rfctl at offset::RFCTL;
    Rxpbsize at offset::RXPBSIZE, every 4;
    Rttdcs at offset::RTTDCS;
    Dmatxctl at offset::DMATXCTL;
    Dtxtcpflgl at offset::DTXTCPFLGL;
    Dtxtcpflgh at offset::DTXTCPFLGH;
    Txdctl at offset::TXDCTL, every offset::QUEUE;
    Tdwbal at offset::TDWBAL, every offset::QUEUE;
    Rxcsum at offset::RXCSUM;
    Hlreg0 at offset::HLREG0;
    Msca at offset::MSCA;
    Msrwd at offset::MSRWD;
    Mflcn at offset::MFLCN;
    Maxfrs at offset::MAXFRS;
    Autoc at offset::AUTOC;
    Links at offset::LINKS;
    Autoc2 at offset::AUTOC2;
    Secrxctrl at offset::SECRXCTRL;
    Secrxstat at offset::SECRXSTAT;
    GcrExt at offset::GCR_EXT;
    Fdirctrl at offset::FDIRCTRL;
    Fdirhash at offset::FDIRHASH;
    Fdircmd at offset::FDIRHASH + 4;
    Fdirm at offset::FDIRM;
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

// 8.2.3.1, general control registers.

/// Device control.
#[bitfield(u32, default = 0, debug)]
pub struct Ctrl {
    /// PCIe master disable: the card starts no new DMA.
    #[bit(2, rw)]
    pub gio_dis: bool,
    /// Link reset: resets the MAC; clears itself.
    #[bit(3, rw)]
    pub lnk_rst: bool,
    /// Device reset; clears itself.
    #[bit(26, rw)]
    pub rst: bool,
}

/// Device status.
#[bitfield(u32, default = 0, debug)]
pub struct Status {
    /// PCIe master requests may still be outstanding.
    #[bit(19, rw)]
    pub gio: bool,
}

/// Device control, extended.
#[bitfield(u32, default = 0, debug)]
pub struct CtrlExt {
    /// A driver is in charge, rather than the firmware.
    #[bit(28, rw)]
    pub drv_load: bool,
}

/// Software-definable pins.
#[bitfield(u32, default = 0, debug)]
pub struct Esdp {
    /// Level of pin 2: on this card, a module is in the SFP cage.
    #[bit(2, rw)]
    pub sdp2_data: bool,
    /// Level of pin 3: it turns the laser off.
    #[bit(3, rw)]
    pub sdp3_data: bool,
    /// Level of pin 5: it selects the higher rate of a module that has two.
    #[bit(5, rw)]
    pub sdp5_data: bool,
    /// Pin 5 is an output.
    #[bit(13, rw)]
    pub sdp5_dir: bool,
}

/// I2C lines to the SFP module, driven by software.
#[bitfield(u32, default = 0, debug)]
pub struct I2cctl {
    /// Level of the clock line.
    #[bit(0, rw)]
    pub clk_in: bool,
    /// Level that the driver puts on the clock line.
    #[bit(1, rw)]
    pub clk_out: bool,
    /// Level of the data line.
    #[bit(2, rw)]
    pub data_in: bool,
    /// Level of the driver on the data line; high allows the module to drive it.
    #[bit(3, rw)]
    pub data_out: bool,
}

// 8.2.3.2, EEPROM and flash; 8.2.3.4, semaphores and firmware.

/// EEPROM control.
#[bitfield(u32, default = 0, debug)]
pub struct Eec {
    /// Software asks for direct access.
    #[bit(6, rw)]
    pub ee_req: bool,
    /// Direct access is granted.
    #[bit(7, rw)]
    pub ee_gnt: bool,
    /// An EEPROM with a valid signature is present.
    #[bit(8, rw)]
    pub ee_pres: bool,
    /// The automatic read after reset has ended.
    #[bit(9, rw)]
    pub auto_rd: bool,
    /// Size of the EEPROM: 2 to the power of this plus 6, in words.
    #[bits(11..=14, rw)]
    pub ee_size: u4,
    /// All that the hardware sets and software cannot change: bits 8 to 14.
    #[bits(8..=14, rw)]
    pub fixed: arbitrary_int::u7,
}

/// EEPROM read.
#[bitfield(u32, default = 0, debug)]
pub struct Eerd {
    /// Starts a read.
    #[bit(0, rw)]
    pub start: bool,
    /// The read has ended.
    #[bit(1, rw)]
    pub done: bool,
    /// Which 16-bit word to read.
    #[bits(2..=15, rw)]
    pub addr: u14,
    /// The word.
    #[bits(16..=31, rw)]
    pub data: u16,
}

/// Software semaphore.
#[bitfield(u32, default = 0, debug)]
pub struct Swsm {
    /// Taken; a read sets it.
    #[bit(0, rw)]
    pub smbi: bool,
    /// Software asks the firmware for the shared semaphore.
    #[bit(1, rw)]
    pub swesmbi: bool,
}

/// Software-firmware synchronisation (GSSR in the C driver): owners of what they share.
#[bitfield(u32, default = 0, debug)]
pub struct Gssr {
    /// Software uses the bus of the first port's module, or of the second one's.
    #[bits(1..=2, rw)]
    pub sw_phy: u2,
    /// Software uses registers of the MAC.
    #[bit(3, rw)]
    pub sw_mac: bool,
    /// The firmware's owners of all five.
    #[bits(5..=9, rw)]
    pub firmware: u5,
}

/// Management of the link.
#[bitfield(u32, default = 0, debug)]
pub struct Mmngc {
    /// The firmware forbids to change the link.
    #[bit(0, rw)]
    pub mng_veto: bool,
}

/// Firmware semaphore.
#[bitfield(u32, default = 0, debug)]
pub struct Fwsm {
    /// The firmware runs.
    #[bit(15, rw)]
    pub fw_val_bit: bool,
}

// 8.2.3.5, interrupt registers.

/// Causes, as in EICR, EICS, EIMS, EIMC and EIAM; these have no fixed offset.
#[bitfield(u32, default = 0, debug)]
pub struct Causes {
    /// Queue causes, one bit for each of the first 16 vectors.
    #[bits(0..=15, rw)]
    pub rtxq: u16,
    /// Causes other than the queues, by EICR's bit number less 16.
    #[bits(16..=29, rw)]
    pub other: u14,
    /// The table of the flow director is nearly full.
    #[bit(16, rw)]
    pub flow_dir: bool,
    /// Link status change.
    #[bit(20, rw)]
    pub lsc: bool,
    /// Pin 1 has risen.
    #[bit(25, rw)]
    pub gpi_sdp1: bool,
    /// Pin 2 has risen.
    #[bit(26, rw)]
    pub gpi_sdp2: bool,
    /// Uncorrectable error in a memory of the card.
    #[bit(28, rw)]
    pub ecc: bool,
}

/// General purpose interrupt enable.
#[bitfield(u32, default = 0, debug)]
pub struct Gpie {
    /// Pin 1 is a source of interrupts.
    #[bit(1, rw)]
    pub sdp1_gpien: bool,
    /// Pin 2 is a source of interrupts.
    #[bit(2, rw)]
    pub sdp2_gpien: bool,
    /// One vector for each cause, as IVAR says; else all go to vector 0.
    #[bit(4, rw)]
    pub multiple_msix: bool,
    /// Other clear disable: a read of EICR clears only bits 16 to 29.
    #[bit(5, rw)]
    pub ocd: bool,
    /// Extended auto mask: sending a message masks the causes that EIAM names.
    #[bit(30, rw)]
    pub eiame: bool,
}

/// Vectors of two queues: entry 0 is receive and 1 transmit of the even one, 2 and 3 of the odd.
#[bitfield(u32, default = 0, debug)]
pub struct Ivar {
    /// The vector of each cause.
    #[bits(0..=7, rw, stride = 8)]
    pub entry: [IvarEntry; 4],
}

/// Vectors of the TCP timer (entry 0) and of all other causes (entry 1).
#[bitfield(u32, default = 0, debug)]
pub struct IvarMisc {
    /// The vector of each cause.
    #[bits(0..=7, rw, stride = 8)]
    pub entry: [IvarEntry; 2],
}

/// Where one cause goes.
#[bitfield(u8, default = 0, debug)]
pub struct IvarEntry {
    /// The MSI-X vector.
    #[bits(0..=5, rw)]
    pub int_alloc: arbitrary_int::u6,
    /// The cause has a vector.
    #[bit(7, rw)]
    pub int_alloc_val: bool,
}

/// Interrupt throttle of one vector.
#[bitfield(u32, default = 0, debug)]
pub struct Eitr {
    /// Least time between two messages, in units of 2 µs (at 10 Gb/s).
    #[bits(3..=11, rw)]
    pub itr_interval: u9,
}

impl Eitr {
    /// Bits that keep the written value.
    pub const WRITABLE: u32 = 0x0fff_fff8;
}

// 8.2.3.7, receive registers.

/// Filter control.
#[bitfield(u32, default = 0, debug)]
pub struct Fctrl {
    /// Multicast promiscuous.
    #[bit(8, rw)]
    pub mpe: bool,
    /// Unicast promiscuous.
    #[bit(9, rw)]
    pub upe: bool,
    /// Accept broadcast.
    #[bit(10, rw)]
    pub bam: bool,
}

/// VLAN control.
#[bitfield(u32, default = 0, debug)]
pub struct Vlnctrl {
    /// Ethertype of a VLAN tag.
    #[bits(0..=15, rw)]
    pub vet: u16,
    /// The VLAN table filters.
    #[bit(30, rw)]
    pub vfe: bool,
}

/// Multicast control.
#[bitfield(u32, default = 0, debug)]
pub struct Mcstctrl {
    /// Which 12 of the last 16 bits of an address select a bit of the multicast table.
    #[bits(0..=1, rw)]
    pub mo: u2,
    /// The multicast table filters.
    #[bit(2, rw)]
    pub mfe: bool,
}

/// High half of a receive address.
#[bitfield(u32, default = 0, debug)]
pub struct Rah {
    /// The last two bytes of the address, the fifth one low.
    #[bits(0..=15, rw)]
    pub rah: u16,
    /// The address is valid.
    #[bit(31, rw)]
    pub av: bool,
}

/// Multiple receive queues.
#[bitfield(u32, default = 0, debug)]
pub struct Mrqc {
    /// How frames are distributed; [`Mrqc::RSS`] is the mode that the model knows.
    #[bits(0..=3, rw)]
    pub mrqe: u4,
    /// Hash IPv4 with TCP ports.
    #[bit(16, rw)]
    pub ipv4_tcp: bool,
    /// Hash IPv4 addresses.
    #[bit(17, rw)]
    pub ipv4: bool,
    /// Hash IPv6 addresses.
    #[bit(20, rw)]
    pub ipv6: bool,
    /// Hash IPv6 with TCP ports.
    #[bit(21, rw)]
    pub ipv6_tcp: bool,
    /// Hash IPv4 with UDP ports.
    #[bit(22, rw)]
    pub ipv4_udp: bool,
    /// Hash IPv6 with UDP ports.
    #[bit(23, rw)]
    pub ipv6_udp: bool,
}

impl Mrqc {
    /// MRQE: receive side scaling into 16 queues.
    pub const RSS: u4 = u4::new(1);
}

/// Checksums of received frames.
#[bitfield(u32, default = 0, debug)]
pub struct Rxcsum {
    /// Packet checksum disable: descriptors hold the RSS hash instead.
    #[bit(13, rw)]
    pub pcsd: bool,
}

// 8.2.3.8, receive DMA registers.

/// Size of a descriptor ring (RDLEN and TDLEN are alike).
#[bitfield(u32, default = 0, debug)]
pub struct Rdlen {
    /// The size in units of 128 bytes, which are eight descriptors.
    #[bits(7..=19, rw)]
    pub len: u13,
}

impl Rdlen {
    /// Descriptors in the ring.
    #[inline]
    pub fn descriptors(self) -> u32 {
        u32::from(self.len().value()) * 8
    }
}

/// Receive descriptor control.
#[bitfield(u32, default = 0, debug)]
pub struct Rxdctl {
    /// The queue is enabled.
    #[bit(25, rw)]
    pub enable: bool,
    /// VLAN tags are stripped.
    #[bit(30, rw)]
    pub vme: bool,
}

/// Split and replication receive control.
#[bitfield(u32, default = 0, debug)]
pub struct Srrctl {
    /// Size of a packet buffer in KiB.
    #[bits(0..=4, rw)]
    pub bsizepacket: u5,
    /// Size of a header buffer in units of 64 bytes.
    #[bits(8..=13, rw)]
    pub bsizeheader: u6,
    /// Kind of descriptor: [`Srrctl::LEGACY`], [`Srrctl::ADVANCED`] or with split headers.
    #[bits(25..=27, rw)]
    pub desctype: u3,
    /// Drops a frame if the ring has no descriptor, instead of holding up the packet buffer.
    #[bit(28, rw)]
    pub drop_en: bool,
}

impl Srrctl {
    /// DESCTYPE: legacy.
    pub const LEGACY: u3 = u3::new(0);
    /// DESCTYPE: advanced, one buffer.
    pub const ADVANCED: u3 = u3::new(1);
}

/// Receive DMA control.
#[bitfield(u32, default = 0, debug)]
pub struct Rdrxctl {
    /// The FCS does not go to memory.
    #[bit(1, rw)]
    pub crcstrip: bool,
    /// The DMA engine has been initialised.
    #[bit(3, rw)]
    pub dmaidone: bool,
    /// Must be 0.
    #[bits(17..=21, rw)]
    pub rscfrstsize: u5,
    /// Must be 1.
    #[bit(25, rw)]
    pub rscackc: bool,
    /// Must be 1.
    #[bit(26, rw)]
    pub fcoe_wrfix: bool,
}

/// Coalescing of one receive queue.
#[bitfield(u32, default = 0, debug)]
pub struct Rscctl {
    /// The queue coalesces.
    #[bit(0, rw)]
    pub rscen: bool,
    /// The most descriptors of a packet, see [`Rscctl::descriptors`].
    #[bits(2..=3, rw)]
    pub maxdesc: u2,
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

/// Control of the buffer of coalescing.
#[bitfield(u32, default = 0, debug)]
pub struct Rscdbu {
    /// Segments without payload stay alone.
    #[bit(7, rw)]
    pub rscackdis: bool,
}

/// The headers that the receiver looks for.
#[bitfield(u32, default = 0, debug)]
pub struct Psrtype {
    /// That of TCP.
    #[bit(4, rw)]
    pub tcphdr: bool,
}

/// Receive filter control.
#[bitfield(u32, default = 0, debug)]
pub struct Rfctl {
    /// No queue coalesces.
    #[bit(5, rw)]
    pub rsc_dis: bool,
}

/// Receive control.
#[bitfield(u32, default = 0, debug)]
pub struct Rxctrl {
    /// The receiver is enabled.
    #[bit(0, rw)]
    pub rxen: bool,
}

/// Receive packet buffer of one traffic class.
#[bitfield(u32, default = 0, debug)]
pub struct Rxpbsize {
    /// Its size in KiB.
    #[bits(10..=19, rw)]
    pub size: u10,
}

// 8.2.3.9, transmit registers.

/// Control of the arbiter of transmit descriptors.
#[bitfield(u32, default = 0, debug)]
pub struct Rttdcs {
    /// The arbiter stands still.
    #[bit(6, rw)]
    pub arbdis: bool,
}

/// DMA transmit control.
#[bitfield(u32, default = 0, debug)]
pub struct Dmatxctl {
    /// The transmitter is enabled.
    #[bit(0, rw)]
    pub te: bool,
    /// Ethertype of the VLAN tags that the card inserts.
    #[bits(16..=31, rw)]
    pub vt: u16,
}

/// TCP flags that segments keep, first and middle ones.
#[bitfield(u32, default = 0, debug)]
pub struct Dtxtcpflgl {
    /// Of the first segment.
    #[bits(0..=11, rw)]
    pub first_seg: u12,
    /// Of the segments between.
    #[bits(16..=27, rw)]
    pub mid_seg: u12,
}

/// TCP flags that segments keep, the last one.
#[bitfield(u32, default = 0, debug)]
pub struct Dtxtcpflgh {
    /// Of the last segment.
    #[bits(0..=11, rw)]
    pub last_seg: u12,
}

/// Transmit descriptor control.
#[bitfield(u32, default = 0, debug)]
pub struct Txdctl {
    /// The queue is enabled.
    #[bit(25, rw)]
    pub enable: bool,
}

/// Low half of the address to which the head is written back.
#[bitfield(u32, default = 0, debug)]
pub struct Tdwbal {
    /// The head is written back.
    #[bit(0, rw)]
    pub head_wb_en: bool,
    /// The address less its lowest two bits, which are 0.
    #[bits(2..=31, rw)]
    pub headwb_low: u30,
}

impl Tdwbal {
    /// Low half of the address.
    pub fn address(self) -> u32 {
        self.headwb_low().value() << 2
    }
}

// 8.2.3.22, MAC registers.

/// MAC control.
#[bitfield(u32, default = 0, debug)]
pub struct Hlreg0 {
    /// The card appends the FCS.
    #[bit(0, rw)]
    pub txcrcen: bool,
    /// The MAC strips the FCS.
    #[bit(1, rw)]
    pub rxcrcstrp: bool,
    /// Frames up to MAXFRS are taken.
    #[bit(2, rw)]
    pub jumboen: bool,
    /// Short frames are padded.
    #[bit(10, rw)]
    pub txpaden: bool,
    /// Loopback: frames that the port sends come back to it.
    #[bit(15, rw)]
    pub lpbk: bool,
}

/// Command on the management bus of the PHY.
#[bitfield(u32, default = 0, debug)]
pub struct Msca {
    /// Starts the command; clears itself at its end.
    #[bit(30, rw)]
    pub mdicmd: bool,
}

/// Data of the management bus.
#[bitfield(u32, default = 0, debug)]
pub struct Msrwd {
    /// The word that was read.
    #[bits(16..=31, rw)]
    pub mdirdata: u16,
}

/// Flow control of the MAC.
#[bitfield(u32, default = 0, debug)]
pub struct Mflcn {
    /// Pause frames do not reach the host.
    #[bit(1, rw)]
    pub dpf: bool,
    /// Transmission pauses when the link partner asks for it.
    #[bit(3, rw)]
    pub rfce: bool,
}

/// Largest frame.
#[bitfield(u32, default = 0, debug)]
pub struct Maxfrs {
    /// Bytes with FCS, without VLAN tag.
    #[bits(16..=31, rw)]
    pub mfs: u16,
}

/// Autonegotiation control.
#[bitfield(u32, default = 0, debug)]
pub struct Autoc {
    /// The MAC takes the link for up, whether there is one or not.
    #[bit(0, rw)]
    pub flu: bool,
    /// Selector field of autonegotiation; 1 is IEEE 802.3.
    #[bits(2..=6, rw)]
    pub ansf: u5,
    /// Restarts the link; clears itself.
    #[bit(12, rw)]
    pub restart_an: bool,
    /// Kind of link.
    #[bits(13..=15, rw)]
    pub lms: Option<LinkMode>,
}

/// Autonegotiation control 2.
#[bitfield(u32, default = 0, debug)]
pub struct Autoc2 {
    /// The EEPROM keeps the link off, for each power state.
    #[bits(28..=30, rw)]
    pub link_disable: u3,
}

impl Autoc2 {
    /// Whether the link is off while the function is in D3. The bit between is not about that.
    pub fn link_is_off_in_d3(self) -> bool {
        self.link_disable().value() & 0b101 != 0
    }
}

// 8.2.3.24, wake-up registers.

/// Wake-up control.
#[bitfield(u32, default = 0, debug)]
pub struct Wuc {
    /// The card looks for magic packets whatever the driver says, as the EEPROM has it.
    #[bit(0, rw)]
    pub apme: bool,
    /// PME_En of the PMCSR, which is the same bit.
    #[bit(1, rw)]
    pub pme_en: bool,
    /// PME_Status of the PMCSR, which is the same bit; written as 1 to clear it.
    #[bit(2, rw)]
    pub pme_status: bool,
    /// Wake-up from D3cold is advertised where there is auxiliary power.
    #[bit(4, rw)]
    pub advd3wuc: bool,
}

/// Wake-up filter control.
#[bitfield(u32, default = 0, debug)]
pub struct Wufc {
    /// The link changes.
    #[bit(0, rw)]
    pub lnkc: bool,
    /// A magic packet.
    #[bit(1, rw)]
    pub mag: bool,
    /// A packet for one of the port's own addresses.
    #[bit(2, rw)]
    pub ex: bool,
    /// A packet for a group that the port is in.
    #[bit(3, rw)]
    pub mc: bool,
    /// A packet for everyone.
    #[bit(4, rw)]
    pub bc: bool,
}

impl Wufc {
    /// All filters of a card, of which the model has those with a name.
    pub const FILTERS: u32 = 0x003f_00ff;
}

/// Wake-up status: the filters that something has passed. Bits are cleared by writing 1.
#[bitfield(u32, default = 0, debug)]
pub struct Wus {
    /// The link has changed.
    #[bit(0, rw)]
    pub lnkc: bool,
    /// A magic packet.
    #[bit(1, rw)]
    pub mag: bool,
    /// A packet for one of the port's own addresses.
    #[bit(2, rw)]
    pub ex: bool,
    /// A packet for a group that the port is in.
    #[bit(3, rw)]
    pub mc: bool,
    /// A packet for everyone.
    #[bit(4, rw)]
    pub bc: bool,
}

// 8.2.3.12, security; 8.2.3.3, PCIe.

/// Security receive control.
#[bitfield(u32, default = 0, debug)]
pub struct Secrxctrl {
    /// The receive path stops at the security block.
    #[bit(1, rw)]
    pub rx_dis: bool,
}

/// Security receive status.
#[bitfield(u32, default = 0, debug)]
pub struct Secrxstat {
    /// The security block is empty.
    #[bit(0, rw)]
    pub secrx_rdy: bool,
}

/// PCIe control, extended.
#[bitfield(u32, default = 0, debug)]
pub struct GcrExt {
    /// Clears the buffers of the transaction layer.
    #[bit(30, rw)]
    pub buffers_clear: bool,
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
}

/// State of the link.
#[bitfield(u32, default = 0, debug)]
pub struct Links {
    /// The link has been up since the last read.
    #[bit(7, rw)]
    pub link_status: bool,
    /// Speed; 3 is 10 Gb/s.
    #[bits(28..=29, rw)]
    pub link_speed: u2,
    /// The link is up.
    #[bit(30, rw)]
    pub link_up: bool,
}

impl Links {
    /// LINK_SPEED: 1 Gb/s.
    pub const SPEED_1G: u2 = u2::new(2);
    /// LINK_SPEED: 10 Gb/s.
    pub const SPEED_10G: u2 = u2::new(3);
}

// 8.2.3.21, flow director registers.

/// Flow director control.
#[bitfield(u32, default = 0, debug)]
pub struct Fdirctrl {
    /// Memory for filters: none, or 64, 128 or 256 KiB of the receive packet buffer.
    #[bits(0..=1, rw)]
    pub pballoc: u2,
    /// The table is ready.
    #[bit(3, rw)]
    pub init_done: bool,
    /// Filters match all of their fields, rather than a signature of them.
    #[bit(4, rw)]
    pub perfect_match: bool,
    /// Descriptors tell of filters in place of the hash.
    #[bit(5, rw)]
    pub report_status: bool,
    /// The queue of packets that are dropped.
    #[bits(8..=14, rw)]
    pub drop_queue: u7,
    /// Where the flexible bytes are in a packet, in units of two bytes.
    #[bits(16..=20, rw)]
    pub flex_offset: u5,
    /// The table is reported as full when fewer filters than 16 times this are free.
    #[bits(28..=31, rw)]
    pub full_thresh: u4,
}

/// Flow director filter hash.
#[bitfield(u32, default = 0, debug)]
pub struct Fdirhash {
    /// Hash of the filter's fields.
    #[bits(0..=14, rw)]
    pub hash: u15,
    /// The driver's number of a perfect filter; the signature of another one.
    #[bits(16..=30, rw)]
    pub soft_index: u15,
}

/// Flow director command.
#[bitfield(u32, default = 0, debug)]
pub struct Fdircmd {
    /// The command; 0 when it is done.
    #[bits(0..=1, rw)]
    pub command: u2,
    /// A query has found the filter.
    #[bit(2, rw)]
    pub filter_valid: bool,
    /// Adding a filter that is there updates it.
    #[bit(3, rw)]
    pub filter_update: bool,
    /// Transport protocol of the filter: 1 for UDP, 2 for TCP, 3 for SCTP.
    #[bits(5..=6, rw)]
    pub l4type: u2,
    /// Clears the table.
    #[bit(8, rw)]
    pub clear_table: bool,
    /// Packets that match are dropped.
    #[bit(9, rw)]
    pub drop: bool,
    /// The filter has a queue.
    #[bit(15, rw)]
    pub queue_en: bool,
    /// The queue.
    #[bits(16..=22, rw)]
    pub rx_queue: u7,
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

/// Flow director other masks: set bits for fields that are not compared.
#[bitfield(u32, default = 0, debug)]
pub struct Fdirm {
    /// The id in a VLAN tag.
    #[bit(0, rw)]
    pub vlan_id: bool,
    /// The priority in it.
    #[bit(1, rw)]
    pub vlan_priority: bool,
    /// The pool.
    #[bit(2, rw)]
    pub pool: bool,
    /// The transport protocol, and its ports.
    #[bit(3, rw)]
    pub l4_protocol: bool,
    /// The flexible bytes.
    #[bit(4, rw)]
    pub flex: bool,
    /// Destination addresses of IPv6.
    #[bit(5, rw)]
    pub ipv6_destination: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regs::{Index, name};

    #[test]
    fn reset_values_are_those_of_the_map() {
        // Reset values as drivers see them, by number: a field in the wrong place would show here.
        for (at, value) in [
            (offset::ESDP, 0x4),
            (offset::I2CCTL, 0xf),
            (offset::RDRXCTL, 0xa),
            (offset::RXPBSIZE, 0x0008_0000),
            (offset::HLREG0, 0x403),
            (offset::MSRWD, 0xffff_0000),
            (offset::MAXFRS, 0x05ee_0000),
            (offset::AUTOC, 0x6004),
            (offset::DMATXCTL, 0x8100_0000),
            (offset::DTXTCPFLGL, 0x0f76_0ff6),
            (offset::DTXTCPFLGH, 0x0f7f),
            (offset::VLNCTRL, 0x8100),
            (offset::EEC, 0x2300),
            (offset::WUC, 0x11),
            (offset::FWSM, 0x8000),
        ] {
            let (entry, _) = Index::get().lookup(at).expect("known");
            assert_eq!(entry.reset, value, "{}", entry.name);
        }
    }

    #[test]
    fn arrays_in_two_parts_are_found_in_both() {
        for (at, expected) in [
            (Srrctl::offset(15), "SRRCTL[15]"),
            (Srrctl::offset(16), "SRRCTL_HIGH[16]"),
            (Eitr::offset(23), "EITR[23]"),
            (Eitr::offset(24), "EITR_HIGH[0]"),
            (Rah::offset(15), "RAH[15]"),
            (Rah::offset(16), "RAH_HIGH[16]"),
            (Rxdctl::offset(3), "RXDCTL[3]"),
        ] {
            assert_eq!(name(at), expected);
        }
    }

    #[test]
    fn single_bits_are_where_the_data_sheet_has_them() {
        for (raw, bit) in [
            (Ctrl::ZERO.with_gio_dis(true).raw_value(), 2),
            (Ctrl::ZERO.with_lnk_rst(true).raw_value(), 3),
            (Ctrl::ZERO.with_rst(true).raw_value(), 26),
            (Status::ZERO.with_gio(true).raw_value(), 19),
            (Esdp::ZERO.with_sdp2_data(true).raw_value(), 2),
            (I2cctl::ZERO.with_clk_in(true).raw_value(), 0),
            (I2cctl::ZERO.with_clk_out(true).raw_value(), 1),
            (I2cctl::ZERO.with_data_in(true).raw_value(), 2),
            (I2cctl::ZERO.with_data_out(true).raw_value(), 3),
            (Eec::ZERO.with_ee_req(true).raw_value(), 6),
            (Eec::ZERO.with_ee_gnt(true).raw_value(), 7),
            (Eec::ZERO.with_ee_pres(true).raw_value(), 8),
            (Eec::ZERO.with_auto_rd(true).raw_value(), 9),
            (Eerd::ZERO.with_start(true).raw_value(), 0),
            (Eerd::ZERO.with_done(true).raw_value(), 1),
            (Swsm::ZERO.with_smbi(true).raw_value(), 0),
            (Swsm::ZERO.with_swesmbi(true).raw_value(), 1),
            (Fwsm::ZERO.with_fw_val_bit(true).raw_value(), 15),
            (Causes::ZERO.with_lsc(true).raw_value(), 20),
            (Causes::ZERO.with_gpi_sdp1(true).raw_value(), 25),
            (Causes::ZERO.with_gpi_sdp2(true).raw_value(), 26),
            (Causes::ZERO.with_ecc(true).raw_value(), 28),
            (Gpie::ZERO.with_sdp1_gpien(true).raw_value(), 1),
            (Gpie::ZERO.with_sdp2_gpien(true).raw_value(), 2),
            (Esdp::ZERO.with_sdp5_data(true).raw_value(), 5),
            (Esdp::ZERO.with_sdp5_dir(true).raw_value(), 13),
            (Gssr::ZERO.with_sw_mac(true).raw_value(), 3),
            (Mmngc::ZERO.with_mng_veto(true).raw_value(), 0),
            (Gpie::ZERO.with_multiple_msix(true).raw_value(), 4),
            (Gpie::ZERO.with_ocd(true).raw_value(), 5),
            (Gpie::ZERO.with_eiame(true).raw_value(), 30),
            (Fctrl::ZERO.with_mpe(true).raw_value(), 8),
            (Fctrl::ZERO.with_upe(true).raw_value(), 9),
            (Fctrl::ZERO.with_bam(true).raw_value(), 10),
            (Vlnctrl::ZERO.with_vfe(true).raw_value(), 30),
            (Mcstctrl::ZERO.with_mfe(true).raw_value(), 2),
            (Rah::ZERO.with_av(true).raw_value(), 31),
            (Wuc::ZERO.with_apme(true).raw_value(), 0),
            (Wuc::ZERO.with_pme_en(true).raw_value(), 1),
            (Wuc::ZERO.with_pme_status(true).raw_value(), 2),
            (Wuc::ZERO.with_advd3wuc(true).raw_value(), 4),
            (Wufc::ZERO.with_lnkc(true).raw_value(), 0),
            (Wufc::ZERO.with_mag(true).raw_value(), 1),
            (Wufc::ZERO.with_ex(true).raw_value(), 2),
            (Wufc::ZERO.with_mc(true).raw_value(), 3),
            (Wufc::ZERO.with_bc(true).raw_value(), 4),
            (Wus::ZERO.with_lnkc(true).raw_value(), 0),
            (Wus::ZERO.with_mag(true).raw_value(), 1),
            (Wus::ZERO.with_ex(true).raw_value(), 2),
            (Wus::ZERO.with_mc(true).raw_value(), 3),
            (Wus::ZERO.with_bc(true).raw_value(), 4),
            (Mrqc::ZERO.with_ipv4_tcp(true).raw_value(), 16),
            (Mrqc::ZERO.with_ipv4(true).raw_value(), 17),
            (Mrqc::ZERO.with_ipv6(true).raw_value(), 20),
            (Mrqc::ZERO.with_ipv6_tcp(true).raw_value(), 21),
            (Mrqc::ZERO.with_ipv4_udp(true).raw_value(), 22),
            (Mrqc::ZERO.with_ipv6_udp(true).raw_value(), 23),
            (Rxdctl::ZERO.with_enable(true).raw_value(), 25),
            (Rxdctl::ZERO.with_vme(true).raw_value(), 30),
            (Srrctl::ZERO.with_drop_en(true).raw_value(), 28),
            (Rdrxctl::ZERO.with_crcstrip(true).raw_value(), 1),
            (Rdrxctl::ZERO.with_dmaidone(true).raw_value(), 3),
            (Rdrxctl::ZERO.with_rscackc(true).raw_value(), 25),
            (Rdrxctl::ZERO.with_fcoe_wrfix(true).raw_value(), 26),
            (Secrxctrl::ZERO.with_rx_dis(true).raw_value(), 1),
            (Secrxstat::ZERO.with_secrx_rdy(true).raw_value(), 0),
            (GcrExt::ZERO.with_buffers_clear(true).raw_value(), 30),
            (Rxctrl::ZERO.with_rxen(true).raw_value(), 0),
            (Dmatxctl::ZERO.with_te(true).raw_value(), 0),
            (Txdctl::ZERO.with_enable(true).raw_value(), 25),
            (Tdwbal::ZERO.with_head_wb_en(true).raw_value(), 0),
            (Rxcsum::ZERO.with_pcsd(true).raw_value(), 13),
            (Hlreg0::ZERO.with_txcrcen(true).raw_value(), 0),
            (Hlreg0::ZERO.with_rxcrcstrp(true).raw_value(), 1),
            (Hlreg0::ZERO.with_jumboen(true).raw_value(), 2),
            (Hlreg0::ZERO.with_txpaden(true).raw_value(), 10),
            (Hlreg0::ZERO.with_lpbk(true).raw_value(), 15),
            (Msca::ZERO.with_mdicmd(true).raw_value(), 30),
            (Autoc::ZERO.with_restart_an(true).raw_value(), 12),
            (Links::ZERO.with_link_status(true).raw_value(), 7),
            (Links::ZERO.with_link_up(true).raw_value(), 30),
        ] {
            assert_eq!(raw, 1_u32 << bit, "bit {bit}");
        }
    }

    #[test]
    fn an_unnamed_bit_keeps_its_value() {
        let ctrl = Ctrl::from_raw(1 << 31).with_rst(true);
        assert_eq!(ctrl.raw(), 1 << 31 | 1 << 26);
        assert_eq!(ctrl.with_rst(false).raw(), 1 << 31);
    }

    #[test]
    fn vectors_of_queues() {
        let entry = IvarEntry::ZERO
            .with_int_alloc(arbitrary_int::u6::new(5))
            .with_int_alloc_val(true);
        let ivar = Ivar::ZERO.with_entry(3, entry);
        assert_eq!(ivar.raw(), 0x8500_0000);
        assert!(!ivar.entry(0).int_alloc_val());
    }
}
