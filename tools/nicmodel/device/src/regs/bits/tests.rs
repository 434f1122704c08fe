// SPDX-License-Identifier: GPL-2.0
use super::*;
use crate::regs::{Index, name};

#[test]
fn reset_values_are_those_of_the_map() {
    // Reset values as drivers see them, by number: a field in the wrong place would show here.
    for (at, value) in [
        (offset::ESDP, 0x4),
        (offset::I2CCTL, 0xf),
        (offset::SRRCTL, 0x402),
        (offset::RDRXCTL, 0x0010_0008),
        (offset::RXPBSIZE0, 0x0008_0000),
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
