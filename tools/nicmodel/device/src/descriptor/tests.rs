// SPDX-License-Identifier: GPL-2.0
use super::*;

#[test]
fn single_bits_are_where_the_data_sheet_has_them() {
    for (raw, bit) in [
        (RxStatus::ZERO.with_dd(true).raw_value(), 0),
        (RxStatus::ZERO.with_eop(true).raw_value(), 1),
        (RxStatus::ZERO.with_vp(true).raw_value(), 3),
        (RxStatus::ZERO.with_udpcs(true).raw_value(), 4),
        (RxStatus::ZERO.with_l4cs(true).raw_value(), 5),
        (RxStatus::ZERO.with_ipcs(true).raw_value(), 6),
        (RxStatus::ZERO.with_l4e(true).raw_value(), 30),
        (RxStatus::ZERO.with_ipe(true).raw_value(), 31),
    ] {
        assert_eq!(raw, 1_u32 << bit, "bit {bit}");
    }
    for (raw, bit) in [
        (RxInfo::ZERO.with_ipv4(true).raw_value(), 4),
        (RxInfo::ZERO.with_ipv4e(true).raw_value(), 5),
        (RxInfo::ZERO.with_ipv6(true).raw_value(), 6),
        (RxInfo::ZERO.with_tcp(true).raw_value(), 8),
        (RxInfo::ZERO.with_udp(true).raw_value(), 9),
        (RxInfo::ZERO.with_sctp(true).raw_value(), 10),
        (RxLegacy::ZERO.with_eop(true).raw_value(), 33),
        (RxLegacy::ZERO.with_l4e(true).raw_value(), 46),
        (RxLegacy::ZERO.with_ipe(true).raw_value(), 47),
        (TxData::ZERO.with_eop(true).raw_value(), 24),
        (TxData::ZERO.with_ifcs(true).raw_value(), 25),
        (TxData::ZERO.with_rs(true).raw_value(), 27),
        (TxData::ZERO.with_dext(true).raw_value(), 29),
        (TxData::ZERO.with_vle(true).raw_value(), 30),
        (TxData::ZERO.with_tse(true).raw_value(), 31),
        (TxData::ZERO.with_dd(true).raw_value(), 32),
        (TxData::ZERO.with_idx(true).raw_value(), 36),
        (TxData::ZERO.with_ixsm(true).raw_value(), 40),
        (TxData::ZERO.with_txsm(true).raw_value(), 41),
        (TxLegacy::ZERO.with_ic(true).raw_value(), 26),
        (TxLegacy::ZERO.with_vle(true).raw_value(), 30),
        (TxContextHigh::ZERO.with_ipv4(true).raw_value(), 10),
        (TxContextHigh::ZERO.with_dext(true).raw_value(), 29),
        (TxContextHigh::ZERO.with_idx(true).raw_value(), 36),
    ] {
        assert_eq!(raw, 1_u64 << bit, "bit {bit}");
    }
}

#[test]
fn wider_fields_are_where_the_data_sheet_has_them() {
    let context = TxContextLow::ZERO
        .with_iplen(u9::new(20))
        .with_maclen(u7::new(14))
        .with_vlan(7);
    assert_eq!(context.raw_value(), 7 << 16 | 14 << 9 | 20);
    let context = TxContextHigh::ZERO
        .with_l4t(Transport::Tcp)
        .with_dtyp(TxType::Context)
        .with_l4len(20)
        .with_mss(1448);
    assert_eq!(
        context.raw_value(),
        1448 << 48 | 20 << 40 | 2 << 20 | 1 << 11
    );
    let data = TxData::ZERO
        .with_dtalen(60)
        .with_dtyp(TxType::Data)
        .with_paylen(u18::new(60));
    assert_eq!(data.raw_value(), 60 << 46 | 3 << 20 | 60);
    let legacy = TxLegacy::ZERO.with_cso(40).with_css(34).with_vlan(5);
    assert_eq!(legacy.raw_value(), 5 << 48 | 34 << 40 | 40 << 16);
    let result = RxResult::ZERO.with_pkt_len(100).with_vlan(5);
    assert_eq!(result.raw_value(), 5 << 48 | 100 << 32);
    let info = RxInfo::ZERO
        .with_rss_hash(9)
        .with_rss_type(RssType::Ipv6Udp);
    assert_eq!(info.raw_value(), 9 << 32 | 8);
}
