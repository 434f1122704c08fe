// SPDX-License-Identifier: GPL-2.0
//! The register map as data.

use arbitrary_int::{u4, u5, u6, u10, u12};

use super::Access::{Control, Counter, Doorbell, Effect, Memory, ReadOnly, WideHigh, WideLow};
use super::Entry;
use super::bits::{
    Autoc, DcaRxctrl, Dmatxctl, Dtxtcpflgh, Dtxtcpflgl, Eec, Esdp, Fwsm, Hlreg0, I2cctl, LinkMode,
    Maxfrs, Msrwd, Rdrxctl, Rxpbsize, Srrctl, Vlnctrl, Wuc,
};
use crate::counters::wide;

/// Both I2C lines high: the bus is idle.
const I2C_IDLE: I2cctl = I2cctl::ZERO
    .with_clk_in(true)
    .with_clk_out(true)
    .with_data_in(true)
    .with_data_out(true);
/// DMA initialisation is done. Drivers have to change the rest.
const RDRXCTL: Rdrxctl = Rdrxctl::ZERO
    .with_rscfrstsize(u5::new(8))
    .with_dmaidone(true);
/// Buffers of 2 KiB, and of 256 bytes for headers.
const SRRCTL: Srrctl = Srrctl::ZERO
    .with_bsizepacket(u5::new(2))
    .with_bsizeheader(u6::new(4));
/// All 512 KiB of packet buffer.
const RXPBSIZE: Rxpbsize = Rxpbsize::ZERO.with_size(u10::new(512));
/// The MAC appends the FCS, strips it, and pads.
const HLREG0: Hlreg0 = Hlreg0::ZERO
    .with_txcrcen(true)
    .with_rxcrcstrp(true)
    .with_txpaden(true);
/// The data that an empty management bus reads.
const NO_PHY: Msrwd = Msrwd::ZERO.with_mdirdata(u16::MAX);
/// The largest standard frame.
const MAXFRS: Maxfrs = Maxfrs::ZERO.with_mfs(1518);
/// A bit that drivers have to clear.
const DCA_RXCTRL: DcaRxctrl = DcaRxctrl::ZERO.with_must_be_0(true);
/// A serial link, as with an SFP+ module.
const AUTOC: Autoc = Autoc::ZERO
    .with_ansf(u5::new(1))
    .with_lms(LinkMode::Serial10G);
/// Value of ANLP1: negotiation has left its first state.
pub(crate) const NEGOTIATION_BEGUN: u32 = 0x0001_0000;
/// The transmitter is off.
const DMATXCTL: Dmatxctl = Dmatxctl::ZERO.with_vt(VLAN);
/// All but FIN and PSH.
const DTXTCPFLGL: Dtxtcpflgl = Dtxtcpflgl::ZERO
    .with_first_seg(u12::new(0xff6))
    .with_mid_seg(u12::new(0xf76));
/// All but CWR.
const DTXTCPFLGH: Dtxtcpflgh = Dtxtcpflgh::ZERO.with_last_seg(u12::new(0xf7f));
/// The VLAN table is off.
const VLNCTRL: Vlnctrl = Vlnctrl::ZERO.with_vet(VLAN);
/// By the EEPROM, the card could wake the machine from D3cold if it had auxiliary power, and looks
/// for magic packets by itself.
const WUC: Wuc = Wuc::ZERO.with_advd3wuc(true).with_apme(true);
/// An EEPROM of 1024 words that has been read.
const EEC: Eec = Eec::ZERO
    .with_ee_pres(true)
    .with_auto_rd(true)
    .with_ee_size(u4::new(4));
/// The firmware runs.
const FWSM: Fwsm = Fwsm::ZERO.with_fw_val_bit(true);
/// Ethertype of a VLAN tag.
const VLAN: u16 = 0x8100;

/// Makes the table, and a constant for the offset of each register. A line is the name; of an array
/// the number of registers, and their distance unless that is 4; the offset of the first one; the
/// effect of an access; and the value after reset unless that is 0.
macro_rules! registers {
    ($($name:ident $([$count:literal $(every $stride:literal)?])? at $offset:literal:
       $access:expr $(, reset $reset:expr)?;)*) => {
        /// Offsets of the registers, of arrays those of the first ones.
        #[allow(missing_docs)] // the names are those of the data sheet
        pub mod offset {
            /// Distance between two queues of a ring register.
            pub const QUEUE: u32 = 0x40;
            $(pub const $name: u32 = $offset;)*
        }

        /// Every register that the model knows. Where two entries cover the same word the first
        /// counts.
        pub const REGISTERS: &[Entry] = &[$(Entry {
            name: stringify!($name),
            offset: $offset,
            count: or!($($count)?, 1),
            stride: or!($($($stride)?)?, 4),
            reset: or!($($reset)?, 0),
            access: $access,
        }),*];
    };
}

macro_rules! or {
    (, $default:literal) => {
        $default
    };
    ($value:expr, $default:literal) => {
        $value
    };
}

registers! {
    // General
    CTRL at 0x00000: Effect;
    STATUS at 0x00008: Effect;
    CTRL_EXT at 0x00018: Memory;
    // SDP2: a module is in the SFP cage.
    ESDP at 0x00020: Effect, reset Esdp::ZERO.with_sdp2_data(true).raw_value();
    I2CCTL at 0x00028: Effect, reset I2C_IDLE.raw_value();
    FRTIMER at 0x00048: Effect;
    TCPTIMER at 0x0004c: Memory;
    // LED 2 shows the link and its activity.
    LEDCTL at 0x00200: Memory, reset 0x0004_0000;
    TSSDP at 0x0003c: Memory;
    // Interrupts
    PFVFLREC[2] at 0x00600: Memory;
    PFMBICR[4] at 0x00710: Memory;
    PFMBIMR[4] at 0x00720: Memory;
    EICR at 0x00800: Effect;
    EICS at 0x00808: Effect;
    EIAC at 0x00810: Effect;
    EITR[24] at 0x00820: Effect;
    EIMS at 0x00880: Effect;
    EIMC at 0x00888: Effect;
    EIAM at 0x00890: Effect;
    EITRSEL at 0x00894: Memory;
    GPIE at 0x00898: Effect;
    IVAR[64] at 0x00900: Control;
    IVAR_MISC at 0x00a00: Control;
    EICS_EX[2] at 0x00a90: Effect;
    EIMS_EX[2] at 0x00aa0: Effect;
    EIMC_EX[2] at 0x00ab0: Effect;
    EIAM_EX[2] at 0x00ad0: Effect;
    EITR_HIGH[104] at 0x12300: Effect;
    // Receive rings
    RDBAL[64 every 0x40] at 0x01000: Control;
    RDBAH[64 every 0x40] at 0x01004: Control;
    RDLEN[64 every 0x40] at 0x01008: Control;
    DCA_RXCTRL_HIGH[64 every 0x40] at 0x0100c: Memory, reset DCA_RXCTRL.raw_value();
    RDH[64 every 0x40] at 0x01010: Control;
    SRRCTL_HIGH[64 every 0x40] at 0x01014: Control, reset SRRCTL.raw_value();
    RDT[64 every 0x40] at 0x01018: Doorbell;
    RXDCTL[64 every 0x40] at 0x01028: Doorbell;
    RSCCTL[64 every 0x40] at 0x0102c: Memory;
    QPRC[16 every 0x40] at 0x01030: Counter;
    QPRDC[16 every 0x40] at 0x01430: Counter;
    QBRC_L[16 every 0x40] at 0x01034: WideLow(wide::QBRC);
    QBRC_H[16 every 0x40] at 0x01038: WideHigh(wide::QBRC);
    SRRCTL[16] at 0x02100: Control, reset SRRCTL.raw_value();
    RTRPT4C[8] at 0x02140: Memory;
    RTRPT4S[8] at 0x02160: Memory;
    DCA_RXCTRL[16] at 0x02200: Memory, reset DCA_RXCTRL.raw_value();
    RQSMR[32] at 0x02300: Memory;
    RTRPCS at 0x02430: Memory;
    RDRXCTL at 0x02f00: Control, reset RDRXCTL.raw_value();
    PFQDE at 0x02f04: Memory;
    RXDSTATCTRL at 0x02f40: Memory;
    RXCTRL at 0x03000: Effect;
    PFCTOP at 0x03008: Memory;
    RTRUP2TC at 0x03020: Memory;
    RSCDBU at 0x03028: Memory;
    FCTTV[4] at 0x03200: Memory;
    FCRTL[8] at 0x03220: Memory;
    PXON2OFFCNT[8] at 0x03240: Counter;
    FCRTH[8] at 0x03260: Memory;
    FCRTV at 0x032a0: Memory;
    // All 512 KiB of packet buffer belong to the first traffic class.
    RXPBSIZE0 at 0x03c00: Control, reset RXPBSIZE.raw_value();
    RXPBSIZE[7] at 0x03c04: Memory;
    RTRPT2C[8] at 0x03c20: Memory;
    FCCFG at 0x03d00: Memory;
    // Receive rings 64 to 127 exist only for virtual functions; the model gives them no life.
    RX_RING_HIGH[1024] at 0x0d000: Memory;
    // Statistics
    PXONTXC[8] at 0x03f00: Counter;
    PXOFFTXC[8] at 0x03f20: Counter;
    LXONTXC at 0x03f60: Counter;
    LXOFFTXC at 0x03f68: Counter;
    MPC[8] at 0x03fa0: Counter;
    RNBC[8] at 0x03fc0: Counter;
    CRCERRS at 0x04000: Counter;
    ILLERRC at 0x04004: Counter;
    ERRBC at 0x04008: Counter;
    MSPDC at 0x04010: Counter;
    MLFC at 0x04034: Counter;
    MRFC at 0x04038: Counter;
    RLEC at 0x04040: Counter;
    PRC[6] at 0x0405c: Counter;
    GPRC at 0x04074: Counter;
    BPRC at 0x04078: Counter;
    MPRC at 0x0407c: Counter;
    GPTC at 0x04080: Counter;
    GORCL at 0x04088: WideLow(wide::GORC);
    GORCH at 0x0408c: WideHigh(wide::GORC);
    GOTCL at 0x04090: WideLow(wide::GOTC);
    GOTCH at 0x04094: WideHigh(wide::GOTC);
    RUC at 0x040a4: Counter;
    RFC at 0x040a8: Counter;
    ROC at 0x040ac: Counter;
    RJC at 0x040b0: Counter;
    MNGPRC at 0x040b4: Counter;
    MNGPDC at 0x040b8: Counter;
    TORL at 0x040c0: WideLow(wide::TOR);
    TORH at 0x040c4: WideHigh(wide::TOR);
    TPR at 0x040d0: Counter;
    TPT at 0x040d4: Counter;
    PTC[6] at 0x040d8: Counter;
    MPTC at 0x040f0: Counter;
    BPTC at 0x040f4: Counter;
    XEC at 0x04120: Counter;
    PXONRXCNT[8] at 0x04140: Counter;
    PXOFFRXCNT[8] at 0x04160: Counter;
    LXONRXCNT at 0x041a4: Counter;
    LXOFFRXCNT at 0x041a8: Counter;
    RXNFGPC at 0x041b0: Counter;
    RXNFGBC[2] at 0x041b4: Counter;
    PXONRXC[8] at 0x0cf00: Counter;
    PXOFFRXC[8] at 0x0cf20: Counter;
    LXONRXC at 0x0cf60: Counter;
    LXOFFRXC at 0x0cf68: Counter;
    MNGPTC at 0x0cf90: Counter;
    QBTC_L[16 every 8] at 0x08700: WideLow(wide::QBTC);
    QBTC_H[16 every 8] at 0x08704: WideHigh(wide::QBTC);
    SSVPC at 0x08780: Counter;
    FCCRC at 0x05118: Counter;
    FCOERPDC at 0x0241c: Counter;
    FCLAST at 0x02424: Counter;
    FCOEPRC at 0x02428: Counter;
    FCOEDWRC at 0x0242c: Counter;
    FCOEPTC at 0x08784: Counter;
    FCOEDWTC at 0x08788: Counter;
    // MAC and link
    PCS1GCFIG at 0x04200: Memory;
    PCS1GLCTL at 0x04208: Memory;
    PCS1GLSTA at 0x0420c: ReadOnly;
    PCS1GANA at 0x04218: Memory;
    PCS1GANLP at 0x0421c: ReadOnly;
    HLREG0 at 0x04240: Control, reset HLREG0.raw_value();
    HLREG1 at 0x04244: Memory;
    PAP at 0x04248: Memory;
    MSCA at 0x0425c: Effect;
    // No PHY answers on the management bus.
    MSRWD at 0x04260: ReadOnly, reset NO_PHY.raw_value();
    MAXFRS at 0x04268: Control, reset MAXFRS.raw_value();
    MFLCN at 0x04294: Memory;
    MACS at 0x0429c: Memory;
    AUTOC at 0x042a0: Effect, reset AUTOC.raw_value();
    LINKS at 0x042a4: Effect;
    AUTOC2 at 0x042a8: Memory;
    AUTOC3 at 0x042ac: Memory;
    ANLP1 at 0x042b0: ReadOnly, reset NEGOTIATION_BEGUN;
    ANLP2 at 0x042b4: ReadOnly;
    MMNGC at 0x042d0: Effect;
    MDFTC1 at 0x042b8: Memory;
    KRPCSFC at 0x042e0: Memory;
    LINKS2 at 0x04324: ReadOnly;
    MACC at 0x04330: Memory;
    ATLASCTL at 0x04800: Memory;
    CORECTL at 0x14f00: Memory;
    // Transmit
    RTTDCS at 0x04900: Memory;
    RTTDQSEL at 0x04904: Memory;
    RTTDT1[2] at 0x04908: Memory;
    RTTDT2C[8] at 0x04910: Memory;
    TXPBTHRESH[8] at 0x04950: Memory;
    RTTBCNRM at 0x04980: Memory;
    RTTBCNRC at 0x04984: Memory;
    DMATXCTL at 0x04a80: Control, reset DMATXCTL.raw_value();
    DTXTCPFLGL at 0x04a88: Control, reset DTXTCPFLGL.raw_value();
    DTXTCPFLGH at 0x04a8c: Control, reset DTXTCPFLGH.raw_value();
    TDBAL[128 every 0x40] at 0x06000: Control;
    TDBAH[128 every 0x40] at 0x06004: Control;
    TDLEN[128 every 0x40] at 0x06008: Control;
    DCA_TXCTRL[128 every 0x40] at 0x0600c: Memory;
    TDH[128 every 0x40] at 0x06010: Control;
    TDT[128 every 0x40] at 0x06018: Doorbell;
    TXDCTL[128 every 0x40] at 0x06028: Doorbell;
    QPTC[16 every 0x40] at 0x06030: Counter;
    TDWBAL[128 every 0x40] at 0x06038: Control;
    TDWBAH[128 every 0x40] at 0x0603c: Control;
    PFVMVIR[64] at 0x08000: Memory;
    DTXMXSZRQ at 0x08100: Memory, reset 0x10;
    TXDGPC_LVMMC at 0x08108: Memory;
    PFVFTE[2] at 0x08110: Memory;
    MTQC at 0x08120: Memory;
    PFVFSPOOF[8] at 0x08200: Memory;
    PFDTXGSWC at 0x08220: Memory;
    TXLLQ[4] at 0x082e0: Memory;
    TQSM[32] at 0x08600: Memory;
    VMECM[2] at 0x08790: Memory;
    TXDG[3] at 0x087a0: Counter;
    RTTUP2TC at 0x0c800: Memory;
    LBDRPEN at 0x0ca00: Memory;
    TIPG at 0x0cb00: Memory;
    TXPBSIZE0 at 0x0cc00: Memory, reset 0x0002_8000;
    TXPBSIZE[7] at 0x0cc04: Memory;
    RTTPCS at 0x0cd00: Memory;
    MNGTXMAP at 0x0cd10: Memory;
    RTTPT2C[8] at 0x0cd20: Memory;
    TFCS at 0x0ce00: Memory;
    // Receive filters and offloads
    RXCSUM at 0x05000: Control;
    RFCTL at 0x05008: Memory;
    EXVET at 0x05078: Memory;
    FCTRL at 0x05080: Control;
    VLNCTRL at 0x05088: Control, reset VLNCTRL.raw_value();
    MCSTCTRL at 0x05090: Control;
    RUPPBMR at 0x050a0: Memory;
    PFFLP[2] at 0x050b0: Memory;
    FCRXCTRL at 0x05100: Memory;
    FCFLT at 0x05108: Memory;
    FCFLTRW at 0x05110: Memory;
    RXMTRL at 0x05120: Memory;
    ETQF[8] at 0x05128: Memory;
    PFVMTXSW[2] at 0x05180: Memory;
    TSYNCRXCTL at 0x05188: Effect;
    METF[4] at 0x05190: Memory;
    RXSATRL at 0x051a0: ReadOnly;
    RXSTMPH at 0x051a4: Effect;
    RXSATRH at 0x051a8: ReadOnly;
    VT_CTL at 0x051b0: Memory;
    RXFECCERR0 at 0x051b8: Memory;
    FCPARAM at 0x051d8: Memory;
    PFVFRE[2] at 0x051e0: Memory;
    RXSTMPL at 0x051e8: ReadOnly;
    MTA[128] at 0x05200: Control;
    RAL[16 every 8] at 0x05400: Control;
    RAH[16 every 8] at 0x05404: Control;
    PSRTYPE[16] at 0x05480: Memory;
    WUC at 0x05800: Effect, reset WUC.raw_value();
    WUFC at 0x05808: Control;
    // Kept over a reset, and not in this word.
    WUS at 0x05810: Effect;
    MRQC at 0x05818: Control;
    VMD_CTL at 0x0581c: Memory;
    MANC at 0x05820: Memory;
    IPAV at 0x05838: Memory;
    IP4AT[8] at 0x05840: Memory;
    IMIR[8] at 0x05a80: Memory;
    IMIREXT[8] at 0x05aa0: Memory;
    IMIRVP at 0x05ac0: Memory;
    RETA[32] at 0x05c00: Control;
    RSSRK[10] at 0x05c80: Control;
    VFTA[128] at 0x0a000: Control;
    RAL_HIGH[128 every 8] at 0x0a200: Control;
    RAH_HIGH[128 every 8] at 0x0a204: Control;
    MPSAR[256] at 0x0a600: Memory;
    FTQF[128] at 0x0e600: Memory;
    SAQF[128] at 0x0e000: Memory;
    DAQF[128] at 0x0e200: Memory;
    SDPQF[128] at 0x0e400: Memory;
    L34T_IMIR[128] at 0x0e800: Memory;
    PSRTYPE_HIGH[48] at 0x0ea40: Memory;
    ETQS[8] at 0x0ec00: Memory;
    SYNQF at 0x0ec30: Memory;
    RQTC at 0x0ec70: Memory;
    LLITHRESH at 0x0ec90: Memory;
    FCRECTL at 0x0ed00: Memory;
    FCRETA[8] at 0x0ed10: Memory;
    FDIRCTRL at 0x0ee00: Effect;
    FDIRIP[5] at 0x0ee0c: Memory;
    FDIRPORT[2] at 0x0ee20: Memory;
    FDIRHASH at 0x0ee28: Memory;
    FDIRCMD at 0x0ee2c: Effect;
    FDIRFREE at 0x0ee38: Memory;
    FDIRDIP4M at 0x0ee3c: Control;
    FDIRSIP4M at 0x0ee40: Control;
    FDIRTCPM at 0x0ee44: Control;
    FDIRUDPM at 0x0ee48: Control;
    FDIRLEN at 0x0ee4c: Memory;
    FDIRUSTAT at 0x0ee50: Counter;
    FDIRFSTAT at 0x0ee54: Counter;
    FDIRMATCH at 0x0ee58: Counter;
    FDIRMISS at 0x0ee5c: Counter;
    FDIRKEY[2] at 0x0ee68: Control;
    FDIRM[3] at 0x0ee70: Control;
    PFVMOLR[64] at 0x0f000: Memory;
    PFVLVF[64] at 0x0f100: Memory;
    PFVLVFB[128] at 0x0f200: Memory;
    UTA[128] at 0x0f400: Memory;
    PFMRCTL[4] at 0x0f600: Memory;
    PFMBMEM[1024] at 0x13000: Memory;
    PFMAILBOX[64] at 0x04b00: Memory;
    // Security blocks: present, idle, and off.
    SECTXCTRL at 0x08800: Memory;
    SECTXSTAT at 0x08804: ReadOnly, reset 0x1;
    SECTXBUFFAF at 0x08808: Memory;
    SECTXMINIFG at 0x08810: Memory;
    IPSTX[6] at 0x08900: Memory;
    SECRXCTRL at 0x08d00: Memory;
    SECRXSTAT at 0x08d04: ReadOnly, reset 0x1;
    IPSRX[13] at 0x08e00: Memory;
    // Time stamps
    TSYNCTXCTL at 0x08c00: Effect;
    TXSTMPL at 0x08c04: ReadOnly;
    TXSTMPH at 0x08c08: Effect;
    SYSTIML at 0x08c0c: Effect;
    SYSTIMH at 0x08c10: Effect;
    TIMINCA at 0x08c14: Effect;
    TIMADJ[2] at 0x08c18: Memory;
    TSAUXC at 0x08c20: Memory;
    TRGTTIM[4] at 0x08c24: Memory;
    CLKTIM[2] at 0x08c34: Memory;
    // EEPROM, semaphores, management
    EEC at 0x10010: Effect, reset EEC.raw_value();
    EERD at 0x10014: Effect;
    EEWR at 0x10018: ReadOnly, reset 0x2;
    FLA at 0x1001c: Memory;
    EEMNGCTL at 0x10110: Memory, reset 0x0004_0000;
    FLOP at 0x1013c: Memory;
    SWSM at 0x10140: Effect;
    FWSM at 0x10148: ReadOnly, reset FWSM.raw_value();
    FACTPS at 0x10150: ReadOnly;
    GSSR at 0x10160: Effect;
    GRC at 0x10200: Memory;
    HICR at 0x15f00: ReadOnly;
    FWSTS at 0x15f0c: Memory;
    // PCIe
    GCR at 0x11000: Memory;
    GSCL[8] at 0x11010: Memory;
    GCR_EXT at 0x11050: Memory;
    MREVID at 0x11064: ReadOnly, reset 0x0000_0001;
    PBACLR at 0x11068: Memory;
    DCA_ID at 0x11070: ReadOnly;
    DCA_CTRL at 0x11074: Memory, reset 0x1;
    CIAA at 0x11088: Memory;
    CIAD at 0x1108c: Memory;
    PICAUSE at 0x110b0: Memory;
    PBACL at 0x110c0: Memory;
    BARCTRL at 0x110f4: Memory;
}
