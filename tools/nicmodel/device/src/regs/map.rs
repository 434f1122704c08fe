// SPDX-License-Identifier: GPL-2.0
//! The register map as data.

use arbitrary_int::{u4, u5, u10, u12};

use super::Access::{Control, Counter, Doorbell, Memory, ReadOnly, WideHigh, WideLow};
use super::bits::{
    Autoc, Dmatxctl, Dtxtcpflgh, Dtxtcpflgl, Eec, Esdp, Fwsm, Hlreg0, I2cctl, LinkMode, Maxfrs,
    Msrwd, Rdrxctl, Rxpbsize, Vlnctrl, Wuc,
};
use super::{Access, Effect, Entry, offset};
use crate::counters::wide;

const fn one(name: &'static str, offset: u32, reset: u32, access: Access) -> Entry {
    array(name, offset, 1, 4, reset, access)
}

const fn array(
    name: &'static str,
    offset: u32,
    count: u32,
    stride: u32,
    reset: u32,
    access: Access,
) -> Entry {
    Entry {
        name,
        offset,
        count,
        stride,
        reset,
        access,
    }
}

const fn effect(name: &'static str, offset: u32, reset: u32, effect: Effect) -> Entry {
    one(name, offset, reset, Access::Effect(effect))
}

/// Both I2C lines high: the bus is idle.
const I2C_IDLE: I2cctl = I2cctl::ZERO
    .with_clk_in(true)
    .with_clk_out(true)
    .with_data_in(true)
    .with_data_out(true);
/// The FCS is stripped, and DMA initialisation is done.
const RDRXCTL: Rdrxctl = Rdrxctl::ZERO.with_crcstrip(true).with_dmaidone(true);
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
/// A serial link, as with an SFP+ module.
const AUTOC: Autoc = Autoc::ZERO
    .with_ansf(u5::new(1))
    .with_lms(LinkMode::Serial10G);
/// The transmitter is off.
/// Value of ANLP1: negotiation has left its first state.
pub(crate) const NEGOTIATION_BEGUN: u32 = 0x0001_0000;

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

/// Every register that the model knows. Where two entries cover the same word the first counts.
pub const REGISTERS: &[Entry] = &[
    // General
    effect("CTRL", offset::CTRL, 0, Effect::Ctrl),
    effect("STATUS", offset::STATUS, 0, Effect::Status),
    one("CTRL_EXT", offset::CTRL_EXT, 0, Memory),
    // SDP2: a module is in the SFP cage.
    effect(
        "ESDP",
        offset::ESDP,
        Esdp::ZERO.with_sdp2_data(true).raw_value(),
        Effect::Esdp,
    ),
    effect(
        "I2CCTL",
        offset::I2CCTL,
        I2C_IDLE.raw_value(),
        Effect::I2cctl,
    ),
    effect("FRTIMER", 0x00048, 0, Effect::Frtimer),
    one("TCPTIMER", 0x0004c, 0, Memory),
    // LED 2 shows the link and its activity.
    one("LEDCTL", 0x00200, 0x0004_0000, Memory),
    one("TSSDP", 0x0003c, 0, Memory),
    // Interrupts
    array("PFVFLREC", 0x00600, 2, 4, 0, Memory),
    array("PFMBICR", 0x00710, 4, 4, 0, Memory),
    array("PFMBIMR", 0x00720, 4, 4, 0, Memory),
    effect("EICR", offset::EICR, 0, Effect::Eicr),
    effect("EICS", offset::EICS, 0, Effect::Eics),
    effect("EIAC", offset::EIAC, 0, Effect::Eiac),
    array("EITR", offset::EITR, 24, 4, 0, Access::Effect(Effect::Eitr)),
    effect("EIMS", offset::EIMS, 0, Effect::Eims),
    effect("EIMC", offset::EIMC, 0, Effect::Eimc),
    effect("EIAM", offset::EIAM, 0, Effect::Eiam),
    one("EITRSEL", 0x00894, 0, Memory),
    effect("GPIE", offset::GPIE, 0, Effect::Gpie),
    array("IVAR", offset::IVAR, 64, 4, 0, Control),
    one("IVAR_MISC", offset::IVAR_MISC, 0, Control),
    array(
        "EICS_EX",
        offset::EICS_EX,
        2,
        4,
        0,
        Access::Effect(Effect::EicsEx),
    ),
    array(
        "EIMS_EX",
        offset::EIMS_EX,
        2,
        4,
        0,
        Access::Effect(Effect::EimsEx),
    ),
    array(
        "EIMC_EX",
        offset::EIMC_EX,
        2,
        4,
        0,
        Access::Effect(Effect::EimcEx),
    ),
    array(
        "EIAM_EX",
        offset::EIAM_EX,
        2,
        4,
        0,
        Access::Effect(Effect::EiamEx),
    ),
    array(
        "EITR_HIGH",
        offset::EITR_HIGH,
        104,
        4,
        0,
        Access::Effect(Effect::Eitr),
    ),
    // Receive rings
    array("RDBAL", offset::RDBAL, 64, 0x40, 0, Control),
    array("RDBAH", offset::RDBAH, 64, 0x40, 0, Control),
    array("RDLEN", offset::RDLEN, 64, 0x40, 0, Control),
    array("DCA_RXCTRL_HIGH", 0x0100c, 64, 0x40, 0, Memory),
    array("RDH", offset::RDH, 64, 0x40, 0, Control),
    array("SRRCTL_HIGH", offset::SRRCTL_HIGH, 64, 0x40, 0, Control),
    array("RDT", offset::RDT, 64, 0x40, 0, Doorbell),
    array("RXDCTL", offset::RXDCTL, 64, 0x40, 0, Doorbell),
    array("RSCCTL", offset::RSCCTL, 64, 0x40, 0, Memory),
    array("QPRC", offset::QPRC, 16, 0x40, 0, Counter),
    array("QPRDC", offset::QPRDC, 16, 0x40, 0, Counter),
    array("QBRC_L", offset::QBRC_L, 16, 0x40, 0, WideLow(wide::QBRC)),
    array("QBRC_H", offset::QBRC_H, 16, 0x40, 0, WideHigh(wide::QBRC)),
    array("SRRCTL", offset::SRRCTL, 16, 4, 0, Control),
    array("RTRPT4C", 0x02140, 8, 4, 0, Memory),
    array("RTRPT4S", 0x02160, 8, 4, 0, Memory),
    array("DCA_RXCTRL", 0x02200, 16, 4, 0, Memory),
    array("RQSMR", 0x02300, 32, 4, 0, Memory),
    one("RTRPCS", 0x02430, 0, Memory),
    one("RDRXCTL", offset::RDRXCTL, RDRXCTL.raw_value(), Control),
    one("PFQDE", 0x02f04, 0, Memory),
    one("RXDSTATCTRL", 0x02f40, 0, Memory),
    effect("RXCTRL", offset::RXCTRL, 0, Effect::Rxctrl),
    one("PFCTOP", 0x03008, 0, Memory),
    one("RTRUP2TC", 0x03020, 0, Memory),
    one("RSCDBU", offset::RSCDBU, 0, Memory),
    array("FCTTV", 0x03200, 4, 4, 0, Memory),
    array("FCRTL", 0x03220, 8, 4, 0, Memory),
    array("PXON2OFFCNT", 0x03240, 8, 4, 0, Counter),
    array("FCRTH", 0x03260, 8, 4, 0, Memory),
    one("FCRTV", 0x032a0, 0, Memory),
    // All 512 KiB of packet buffer belong to the first traffic class.
    one("RXPBSIZE0", offset::RXPBSIZE, RXPBSIZE.raw_value(), Control),
    array("RXPBSIZE", offset::RXPBSIZE + 4, 7, 4, 0, Memory),
    array("RTRPT2C", 0x03c20, 8, 4, 0, Memory),
    one("FCCFG", 0x03d00, 0, Memory),
    // Receive rings 64 to 127 exist only for virtual functions; the model gives them no life.
    array("RX_RING_HIGH", 0x0d000, 1024, 4, 0, Memory),
    // Statistics
    array("PXONTXC", 0x03f00, 8, 4, 0, Counter),
    array("PXOFFTXC", 0x03f20, 8, 4, 0, Counter),
    one("LXONTXC", 0x03f60, 0, Counter),
    one("LXOFFTXC", 0x03f68, 0, Counter),
    array("MPC", offset::MPC, 8, 4, 0, Counter),
    array("RNBC", 0x03fc0, 8, 4, 0, Counter),
    one("CRCERRS", offset::CRCERRS, 0, Counter),
    one("ILLERRC", offset::ILLERRC, 0, Counter),
    one("ERRBC", 0x04008, 0, Counter),
    one("MSPDC", 0x04010, 0, Counter),
    one("MLFC", 0x04034, 0, Counter),
    one("MRFC", 0x04038, 0, Counter),
    one("RLEC", offset::RLEC, 0, Counter),
    array("PRC", offset::PRC64, 6, 4, 0, Counter),
    one("GPRC", offset::GPRC, 0, Counter),
    one("BPRC", offset::BPRC, 0, Counter),
    one("MPRC", offset::MPRC, 0, Counter),
    one("GPTC", offset::GPTC, 0, Counter),
    one("GORCL", offset::GORCL, 0, WideLow(wide::GORC)),
    one("GORCH", offset::GORCL + 4, 0, WideHigh(wide::GORC)),
    one("GOTCL", offset::GOTCL, 0, WideLow(wide::GOTC)),
    one("GOTCH", offset::GOTCL + 4, 0, WideHigh(wide::GOTC)),
    one("RUC", offset::RUC, 0, Counter),
    one("RFC", 0x040a8, 0, Counter),
    one("ROC", offset::ROC, 0, Counter),
    one("RJC", 0x040b0, 0, Counter),
    one("MNGPRC", 0x040b4, 0, Counter),
    one("MNGPDC", 0x040b8, 0, Counter),
    one("TORL", offset::TORL, 0, WideLow(wide::TOR)),
    one("TORH", offset::TORL + 4, 0, WideHigh(wide::TOR)),
    one("TPR", offset::TPR, 0, Counter),
    one("TPT", offset::TPT, 0, Counter),
    array("PTC", offset::PTC64, 6, 4, 0, Counter),
    one("MPTC", offset::MPTC, 0, Counter),
    one("BPTC", offset::BPTC, 0, Counter),
    one("XEC", offset::XEC, 0, Counter),
    array("PXONRXCNT", 0x04140, 8, 4, 0, Counter),
    array("PXOFFRXCNT", 0x04160, 8, 4, 0, Counter),
    one("LXONRXCNT", offset::LXONRXCNT, 0, Counter),
    one("LXOFFRXCNT", offset::LXOFFRXCNT, 0, Counter),
    one("RXNFGPC", 0x041b0, 0, Counter),
    array("RXNFGBC", 0x041b4, 2, 4, 0, Counter),
    array("PXONRXC", 0x0cf00, 8, 4, 0, Counter),
    array("PXOFFRXC", 0x0cf20, 8, 4, 0, Counter),
    one("LXONRXC", 0x0cf60, 0, Counter),
    one("LXOFFRXC", 0x0cf68, 0, Counter),
    one("MNGPTC", 0x0cf90, 0, Counter),
    array("QBTC_L", offset::QBTC_L, 16, 8, 0, WideLow(wide::QBTC)),
    array("QBTC_H", offset::QBTC_L + 4, 16, 8, 0, WideHigh(wide::QBTC)),
    one("SSVPC", 0x08780, 0, Counter),
    one("FCCRC", 0x05118, 0, Counter),
    one("FCOERPDC", 0x0241c, 0, Counter),
    one("FCLAST", 0x02424, 0, Counter),
    one("FCOEPRC", 0x02428, 0, Counter),
    one("FCOEDWRC", 0x0242c, 0, Counter),
    one("FCOEPTC", 0x08784, 0, Counter),
    one("FCOEDWTC", 0x08788, 0, Counter),
    // MAC and link
    one("PCS1GCFIG", 0x04200, 0, Memory),
    one("PCS1GLCTL", 0x04208, 0, Memory),
    one("PCS1GLSTA", 0x0420c, 0, ReadOnly),
    one("PCS1GANA", 0x04218, 0, Memory),
    one("PCS1GANLP", 0x0421c, 0, ReadOnly),
    one("HLREG0", offset::HLREG0, HLREG0.raw_value(), Control),
    one("HLREG1", 0x04244, 0, Memory),
    one("PAP", 0x04248, 0, Memory),
    effect("MSCA", offset::MSCA, 0, Effect::Msca),
    // No PHY answers on the management bus.
    one("MSRWD", offset::MSRWD, NO_PHY.raw_value(), ReadOnly),
    one("MAXFRS", offset::MAXFRS, MAXFRS.raw_value(), Control),
    one("MFLCN", offset::MFLCN, 0, Memory),
    one("MACS", 0x0429c, 0, Memory),
    effect("AUTOC", offset::AUTOC, AUTOC.raw_value(), Effect::Autoc),
    effect("LINKS", offset::LINKS, 0, Effect::Links),
    one("AUTOC2", offset::AUTOC2, 0, Memory),
    one("AUTOC3", 0x042ac, 0, Memory),
    one("ANLP1", offset::ANLP1, NEGOTIATION_BEGUN, ReadOnly),
    one("ANLP2", 0x042b4, 0, ReadOnly),
    effect("MMNGC", offset::MMNGC, 0, Effect::Mmngc),
    one("MDFTC1", 0x042b8, 0, Memory),
    one("KRPCSFC", 0x042e0, 0, Memory),
    one("LINKS2", 0x04324, 0, ReadOnly),
    one("MACC", 0x04330, 0, Memory),
    one("ATLASCTL", 0x04800, 0, Memory),
    one("CORECTL", offset::CORECTL, 0, Memory),
    // Transmit
    one("RTTDCS", offset::RTTDCS, 0, Memory),
    one("RTTDQSEL", offset::RTTDQSEL, 0, Memory),
    array("RTTDT1", 0x04908, 2, 4, 0, Memory),
    array("RTTDT2C", 0x04910, 8, 4, 0, Memory),
    array("TXPBTHRESH", 0x04950, 8, 4, 0, Memory),
    one("RTTBCNRM", 0x04980, 0, Memory),
    one("RTTBCNRC", offset::RTTBCNRC, 0, Memory),
    one("DMATXCTL", offset::DMATXCTL, DMATXCTL.raw_value(), Control),
    one(
        "DTXTCPFLGL",
        offset::DTXTCPFLGL,
        DTXTCPFLGL.raw_value(),
        Control,
    ),
    one(
        "DTXTCPFLGH",
        offset::DTXTCPFLGH,
        DTXTCPFLGH.raw_value(),
        Control,
    ),
    array("TDBAL", offset::TDBAL, 128, 0x40, 0, Control),
    array("TDBAH", offset::TDBAH, 128, 0x40, 0, Control),
    array("TDLEN", offset::TDLEN, 128, 0x40, 0, Control),
    array("DCA_TXCTRL", 0x0600c, 128, 0x40, 0, Memory),
    array("TDH", offset::TDH, 128, 0x40, 0, Control),
    array("TDT", offset::TDT, 128, 0x40, 0, Doorbell),
    array("TXDCTL", offset::TXDCTL, 128, 0x40, 0, Doorbell),
    array("QPTC", offset::QPTC, 16, 0x40, 0, Counter),
    array("TDWBAL", offset::TDWBAL, 128, 0x40, 0, Control),
    array("TDWBAH", offset::TDWBAH, 128, 0x40, 0, Control),
    array("PFVMVIR", 0x08000, 64, 4, 0, Memory),
    one("DTXMXSZRQ", 0x08100, 0, Memory),
    one("TXDGPC_LVMMC", 0x08108, 0, Memory),
    array("PFVFTE", 0x08110, 2, 4, 0, Memory),
    one("MTQC", offset::MTQC, 0, Memory),
    array("PFVFSPOOF", 0x08200, 8, 4, 0, Memory),
    one("PFDTXGSWC", 0x08220, 0, Memory),
    array("TXLLQ", 0x082e0, 4, 4, 0, Memory),
    array("TQSM", 0x08600, 32, 4, 0, Memory),
    array("VMECM", 0x08790, 2, 4, 0, Memory),
    array("TXDG", 0x087a0, 3, 4, 0, Counter),
    one("RTTUP2TC", 0x0c800, 0, Memory),
    one("LBDRPEN", 0x0ca00, 0, Memory),
    one("TIPG", 0x0cb00, 0, Memory),
    one("TXPBSIZE0", offset::TXPBSIZE, 0x0002_8000, Memory),
    array("TXPBSIZE", offset::TXPBSIZE + 4, 7, 4, 0, Memory),
    one("RTTPCS", 0x0cd00, 0, Memory),
    one("MNGTXMAP", 0x0cd10, 0, Memory),
    array("RTTPT2C", 0x0cd20, 8, 4, 0, Memory),
    one("TFCS", 0x0ce00, 0, Memory),
    // Receive filters and offloads
    one("RXCSUM", offset::RXCSUM, 0, Control),
    one("RFCTL", offset::RFCTL, 0, Memory),
    one("EXVET", 0x05078, 0, Memory),
    one("FCTRL", offset::FCTRL, 0, Control),
    one("VLNCTRL", offset::VLNCTRL, VLNCTRL.raw_value(), Control),
    one("MCSTCTRL", offset::MCSTCTRL, 0, Control),
    one("RUPPBMR", 0x050a0, 0, Memory),
    array("PFFLP", 0x050b0, 2, 4, 0, Memory),
    one("FCRXCTRL", 0x05100, 0, Memory),
    one("FCFLT", 0x05108, 0, Memory),
    one("FCFLTRW", 0x05110, 0, Memory),
    one("RXMTRL", 0x05120, 0, Memory),
    array("ETQF", 0x05128, 8, 4, 0, Memory),
    array("PFVMTXSW", 0x05180, 2, 4, 0, Memory),
    one("TSYNCRXCTL", 0x05188, 0, Memory),
    array("METF", 0x05190, 4, 4, 0, Memory),
    one("RXSATRL", 0x051a0, 0, ReadOnly),
    one("RXSTMPH", 0x051a4, 0, ReadOnly),
    one("RXSATRH", 0x051a8, 0, ReadOnly),
    one("VT_CTL", 0x051b0, 0, Memory),
    one("RXFECCERR0", 0x051b8, 0, Memory),
    one("FCPARAM", 0x051d8, 0, Memory),
    array("PFVFRE", 0x051e0, 2, 4, 0, Memory),
    one("RXSTMPL", 0x051e8, 0, ReadOnly),
    array("MTA", offset::MTA, 128, 4, 0, Control),
    array("RAL", offset::RAL, 16, 8, 0, Control),
    array("RAH", offset::RAL + 4, 16, 8, 0, Control),
    array("PSRTYPE", offset::PSRTYPE, 16, 4, 0, Memory),
    effect("WUC", offset::WUC, WUC.raw_value(), Effect::Wuc),
    one("WUFC", offset::WUFC, 0, Control),
    // Kept over a reset, and not in this word.
    effect("WUS", offset::WUS, 0, Effect::Wus),
    one("MRQC", offset::MRQC, 0, Control),
    one("VMD_CTL", 0x0581c, 0, Memory),
    one("MANC", 0x05820, 0, Memory),
    one("IPAV", 0x05838, 0, Memory),
    array("IP4AT", 0x05840, 8, 4, 0, Memory),
    array("IMIR", 0x05a80, 8, 4, 0, Memory),
    array("IMIREXT", 0x05aa0, 8, 4, 0, Memory),
    one("IMIRVP", 0x05ac0, 0, Memory),
    array("RETA", offset::RETA, 32, 4, 0, Control),
    array("RSSRK", offset::RSSRK, 10, 4, 0, Control),
    array("VFTA", offset::VFTA, 128, 4, 0, Control),
    array("RAL_HIGH", offset::RAL_HIGH, 128, 8, 0, Control),
    array("RAH_HIGH", offset::RAL_HIGH + 4, 128, 8, 0, Control),
    array("MPSAR", offset::MPSAR, 256, 4, 0, Memory),
    array("FTQF", 0x0e600, 128, 4, 0, Memory),
    array("SAQF", 0x0e000, 128, 4, 0, Memory),
    array("DAQF", 0x0e200, 128, 4, 0, Memory),
    array("SDPQF", 0x0e400, 128, 4, 0, Memory),
    array("L34T_IMIR", 0x0e800, 128, 4, 0, Memory),
    array("PSRTYPE_HIGH", 0x0ea40, 48, 4, 0, Memory),
    array("ETQS", 0x0ec00, 8, 4, 0, Memory),
    one("SYNQF", 0x0ec30, 0, Memory),
    one("RQTC", 0x0ec70, 0, Memory),
    one("LLITHRESH", 0x0ec90, 0, Memory),
    one("FCRECTL", 0x0ed00, 0, Memory),
    array("FCRETA", 0x0ed10, 8, 4, 0, Memory),
    effect("FDIRCTRL", offset::FDIRCTRL, 0, Effect::Fdirctrl),
    array("FDIRIP", offset::FDIRIP, 5, 4, 0, Memory),
    array("FDIRPORT", offset::FDIRPORT, 2, 4, 0, Memory),
    one("FDIRHASH", offset::FDIRHASH, 0, Memory),
    effect("FDIRCMD", offset::FDIRHASH + 4, 0, Effect::Fdircmd),
    one("FDIRFREE", offset::FDIRFREE, 0, Memory),
    array("FDIRMASK", offset::FDIRSIP4M - 4, 4, 4, 0, Control),
    one("FDIRLEN", 0x0ee4c, 0, Memory),
    one("FDIRUSTAT", offset::FDIRUSTAT, 0, Counter),
    one("FDIRFSTAT", offset::FDIRFSTAT, 0, Counter),
    one("FDIRMATCH", offset::FDIRMATCH, 0, Counter),
    one("FDIRMISS", offset::FDIRMISS, 0, Counter),
    array("FDIRKEY", offset::FDIRHKEY, 2, 4, 0, Control),
    array("FDIRM", offset::FDIRM, 3, 4, 0, Control),
    array("PFVMOLR", 0x0f000, 64, 4, 0, Memory),
    array("PFVLVF", 0x0f100, 64, 4, 0, Memory),
    array("PFVLVFB", 0x0f200, 128, 4, 0, Memory),
    array("UTA", offset::UTA, 128, 4, 0, Memory),
    array("PFMRCTL", 0x0f600, 4, 4, 0, Memory),
    array("PFMBMEM", 0x13000, 1024, 4, 0, Memory),
    array("PFMAILBOX", 0x04b00, 64, 4, 0, Memory),
    // Security blocks: present, idle, and off.
    one("SECTXCTRL", 0x08800, 0, Memory),
    one("SECTXSTAT", offset::SECTXSTAT, 0x1, ReadOnly),
    one("SECTXBUFFAF", 0x08808, 0, Memory),
    one("SECTXMINIFG", 0x08810, 0, Memory),
    array("IPSTX", 0x08900, 6, 4, 0, Memory),
    one("SECRXCTRL", offset::SECRXCTRL, 0, Memory),
    one("SECRXSTAT", offset::SECRXSTAT, 0x1, ReadOnly),
    array("IPSRX", 0x08e00, 13, 4, 0, Memory),
    // Time stamps
    one("TSYNCTXCTL", 0x08c00, 0, Memory),
    one("TXSTMPL", 0x08c04, 0, ReadOnly),
    one("TXSTMPH", 0x08c08, 0, ReadOnly),
    effect("SYSTIML", offset::SYSTIML, 0, Effect::Systim),
    effect("SYSTIMH", offset::SYSTIMH, 0, Effect::Systim),
    one("TIMINCA", 0x08c14, 0, Memory),
    array("TIMADJ", 0x08c18, 2, 4, 0, Memory),
    one("TSAUXC", 0x08c20, 0, Memory),
    array("TRGTTIM", 0x08c24, 4, 4, 0, Memory),
    array("CLKTIM", 0x08c34, 2, 4, 0, Memory),
    // EEPROM, semaphores, management
    effect("EEC", offset::EEC, EEC.raw_value(), Effect::Eec),
    effect("EERD", offset::EERD, 0, Effect::Eerd),
    one("EEWR", 0x10018, 0x2, ReadOnly),
    one("FLA", 0x1001c, 0, Memory),
    one("EEMNGCTL", 0x10110, 0x0004_0000, Memory),
    one("FLOP", 0x1013c, 0, Memory),
    effect("SWSM", offset::SWSM, 0, Effect::Swsm),
    one("FWSM", offset::FWSM, FWSM.raw_value(), ReadOnly),
    one("FACTPS", offset::FACTPS, 0, ReadOnly),
    effect("GSSR", offset::GSSR, 0, Effect::Gssr),
    one("GRC", 0x10200, 0, Memory),
    one("HICR", 0x15f00, 0, ReadOnly),
    one("FWSTS", 0x15f0c, 0, Memory),
    // PCIe
    one("GCR", 0x11000, 0, Memory),
    array("GSCL", 0x11010, 8, 4, 0, Memory),
    one("GCR_EXT", offset::GCR_EXT, 0, Memory),
    one("MREVID", 0x11064, 0x0000_0001, ReadOnly),
    one("PBACLR", 0x11068, 0, Memory),
    one("DCA_ID", 0x11070, 0, ReadOnly),
    one("DCA_CTRL", 0x11074, 0x1, Memory),
    one("CIAA", 0x11088, 0, Memory),
    one("CIAD", 0x1108c, 0, Memory),
    one("PICAUSE", 0x110b0, 0, Memory),
    one("PBACL", 0x110c0, 0, Memory),
    one("BARCTRL", 0x110f4, 0, Memory),
];
