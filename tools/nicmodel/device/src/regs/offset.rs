// SPDX-License-Identifier: GPL-2.0
//! Offsets of the registers on which the model acts.
#![allow(missing_docs)] // the names are those of the data sheet

pub const CTRL: u32 = 0x00000;
pub const STATUS: u32 = 0x00008;
pub const CTRL_EXT: u32 = 0x00018;
pub const ESDP: u32 = 0x00020;
pub const I2CCTL: u32 = 0x00028;
pub const EICR: u32 = 0x00800;
pub const EICS: u32 = 0x00808;
pub const EIAC: u32 = 0x00810;
pub const EITR: u32 = 0x00820;
pub const EIMS: u32 = 0x00880;
pub const EIMC: u32 = 0x00888;
pub const EIAM: u32 = 0x00890;
pub const GPIE: u32 = 0x00898;
pub const IVAR: u32 = 0x00900;
pub const IVAR_MISC: u32 = 0x00a00;
pub const EICS_EX: u32 = 0x00a90;
pub const EIMS_EX: u32 = 0x00aa0;
pub const EIMC_EX: u32 = 0x00ab0;
pub const EIAM_EX: u32 = 0x00ad0;
pub const EITR_HIGH: u32 = 0x12300;

/// Distance between two queues of a ring register.
pub const QUEUE: u32 = 0x40;
pub const RDBAL: u32 = 0x01000;
pub const RDBAH: u32 = 0x01004;
pub const RDLEN: u32 = 0x01008;
pub const RDH: u32 = 0x01010;
pub const SRRCTL_HIGH: u32 = 0x01014;
pub const RDT: u32 = 0x01018;
pub const RXDCTL: u32 = 0x01028;
pub const RSCCTL: u32 = 0x0102c;
pub const QPRC: u32 = 0x01030;
pub const QBRC_L: u32 = 0x01034;
pub const QBRC_H: u32 = 0x01038;
pub const QPRDC: u32 = 0x01430;
pub const SRRCTL: u32 = 0x02100;
pub const RDRXCTL: u32 = 0x02f00;
pub const RXCTRL: u32 = 0x03000;
pub const RSCDBU: u32 = 0x03028;
pub const PSRTYPE: u32 = 0x05480;
pub const RXPBSIZE: u32 = 0x03c00;
pub const MPC: u32 = 0x03fa0;

pub const TDBAL: u32 = 0x06000;
pub const TDBAH: u32 = 0x06004;
pub const TDLEN: u32 = 0x06008;
pub const TDH: u32 = 0x06010;
pub const TDT: u32 = 0x06018;
pub const TXDCTL: u32 = 0x06028;
pub const QPTC: u32 = 0x06030;
pub const TDWBAL: u32 = 0x06038;
pub const TDWBAH: u32 = 0x0603c;
pub const RTTDCS: u32 = 0x04900;
pub const RTTDQSEL: u32 = 0x04904;
pub const RTTBCNRC: u32 = 0x04984;
pub const DMATXCTL: u32 = 0x04a80;
pub const MTQC: u32 = 0x08120;
pub const TXPBSIZE: u32 = 0x0cc00;
pub const DTXTCPFLGL: u32 = 0x04a88;
pub const DTXTCPFLGH: u32 = 0x04a8c;
pub const QBTC_L: u32 = 0x08700;

pub const CRCERRS: u32 = 0x04000;
pub const ILLERRC: u32 = 0x04004;
pub const RLEC: u32 = 0x04040;
pub const PRC64: u32 = 0x0405c;
pub const GPRC: u32 = 0x04074;
pub const BPRC: u32 = 0x04078;
pub const MPRC: u32 = 0x0407c;
pub const GPTC: u32 = 0x04080;
pub const GORCL: u32 = 0x04088;
pub const GOTCL: u32 = 0x04090;
pub const RUC: u32 = 0x040a4;
pub const ROC: u32 = 0x040ac;
pub const TORL: u32 = 0x040c0;
pub const TPR: u32 = 0x040d0;
pub const TPT: u32 = 0x040d4;
pub const PTC64: u32 = 0x040d8;
pub const MPTC: u32 = 0x040f0;
pub const BPTC: u32 = 0x040f4;
pub const LXONRXCNT: u32 = 0x041a4;
pub const LXOFFRXCNT: u32 = 0x041a8;
pub const XEC: u32 = 0x04120;

pub const HLREG0: u32 = 0x04240;
pub const MSCA: u32 = 0x0425c;
pub const MSRWD: u32 = 0x04260;
pub const MFLCN: u32 = 0x04294;
pub const MAXFRS: u32 = 0x04268;
pub const AUTOC: u32 = 0x042a0;
pub const LINKS: u32 = 0x042a4;
pub const ANLP1: u32 = 0x042b0;
pub const AUTOC2: u32 = 0x042a8;
pub const MMNGC: u32 = 0x042d0;
pub const CORECTL: u32 = 0x14f00;

pub const RXCSUM: u32 = 0x05000;
pub const RFCTL: u32 = 0x05008;
pub const VLNCTRL: u32 = 0x05088;
pub const FCTRL: u32 = 0x05080;
pub const MCSTCTRL: u32 = 0x05090;
pub const MTA: u32 = 0x05200;
pub const RAL: u32 = 0x05400;
pub const RAL_HIGH: u32 = 0x0a200;
pub const WUC: u32 = 0x05800;
pub const WUFC: u32 = 0x05808;
pub const WUS: u32 = 0x05810;
pub const MRQC: u32 = 0x05818;
pub const RETA: u32 = 0x05c00;
pub const RSSRK: u32 = 0x05c80;
pub const VFTA: u32 = 0x0a000;
pub const MPSAR: u32 = 0x0a600;
pub const UTA: u32 = 0x0f400;

pub const SECTXSTAT: u32 = 0x08804;
pub const SECRXCTRL: u32 = 0x08d00;
pub const SECRXSTAT: u32 = 0x08d04;
pub const FDIRHASH: u32 = 0x0ee28;
/// Flow director: control.
pub const FDIRCTRL: u32 = 0x0ee00;
/// Flow director: addresses of a filter, the last two of them for IPv4.
pub const FDIRIP: u32 = 0x0ee0c;
/// Flow director: ports of a filter, followed by its VLAN tag and flexible bytes.
pub const FDIRPORT: u32 = 0x0ee20;
/// Flow director: filters for which there is room.
pub const FDIRFREE: u32 = 0x0ee38;
/// Flow director: mask of IPv4 source addresses, after that of destinations.
pub const FDIRSIP4M: u32 = 0x0ee40;
/// Flow director: mask of TCP ports, followed by that of UDP ports.
pub const FDIRTCPM: u32 = 0x0ee44;
/// Flow director: filters added and removed.
pub const FDIRUSTAT: u32 = 0x0ee50;
/// Flow director: commands that failed.
pub const FDIRFSTAT: u32 = 0x0ee54;
/// Flow director: packets with a filter.
pub const FDIRMATCH: u32 = 0x0ee58;
/// Flow director: packets without one.
pub const FDIRMISS: u32 = 0x0ee5c;
/// Flow director: key of the hash that chooses a bucket.
pub const FDIRHKEY: u32 = 0x0ee68;
/// Flow director: key of the signature.
pub const FDIRSKEY: u32 = 0x0ee6c;
/// Flow director: fields that are not compared.
pub const FDIRM: u32 = 0x0ee70;
pub const SYSTIML: u32 = 0x08c0c;
pub const SYSTIMH: u32 = 0x08c10;
pub const EEC: u32 = 0x10010;
pub const EERD: u32 = 0x10014;
pub const SWSM: u32 = 0x10140;
pub const FWSM: u32 = 0x10148;
pub const FACTPS: u32 = 0x10150;
pub const GSSR: u32 = 0x10160;
pub const GCR_EXT: u32 = 0x11050;
