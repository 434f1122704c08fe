// SPDX-License-Identifier: GPL-2.0

//! Descriptors: the NIC's words, and ours.

use super::check;
use crate::ixgbe::desc::{RxInfo, RxStatus, TxContext, TxTemplate, TX_MAX_PACKET};
use crate::net::inflight::Descriptors;
use crate::net::rx_list::Protocol;
use crate::net::skbuff::{ChecksumKind, PartialChecksum, Segmentation, SegmentedProtocol};
use std::cell::Cell;

#[test]
fn the_fast_path_takes_no_frame_that_the_slow_one_refuses() {
    check(0u64.., |raw| {
        let status = RxStatus::from_raw(raw);

        assert!(!status.is_ordinary() || status.is_whole_and_good());
        assert!(!status.is_whole_and_good() || status.is_whole());
        assert!(!status.is_whole_and_good() || !(status.rxe() || status.ipe() || status.l4e()));
        assert!(!status.is_whole() || status.eop() && !status.rxe());
        assert_eq!(
            status.is_ordinary(),
            status.is_whole_and_good() && !status.vp()
        );
        assert_eq!(status.vlan_tag().is_some(), status.vp());
        assert!(status.next_descriptor() < 1 << 16);
    });
}

#[test]
fn a_first_word_has_what_it_says() {
    check(0u64.., |raw| {
        let info = RxInfo::from_raw(raw);

        assert!(info.packets() < 15);
        assert!(info.may_be_lro() || info.packets() == 0);
        assert!(info.has_hash() || info.hash().is_none());
        assert!(info.protocol() == Protocol::Other || info.udp());
    });
}

/// The words of what is written to a descriptor.
fn written(write: impl FnOnce(&Descriptors<'_>)) -> [u64; 2] {
    let ring = [Cell::new([0; 2])];

    write(&Descriptors(&ring));
    ring[0].get()
}

/// A field of a word.
fn field(word: u64, low: u32, width: u32) -> u64 {
    word >> low & ((1 << width) - 1)
}

#[test]
fn a_context_has_all_of_its_offsets() {
    // Most of them fit, or nearly.
    check(
        (0u32..200, 0u32..600, 0u16..20, 0u16.., 0u8..),
        |(network, start, offset, tag, crc)| {
            let kind = match crc {
                0..64 => ChecksumKind::Crc32c,
                _ => ChecksumKind::Internet,
            };
            let checksum = PartialChecksum {
                start,
                offset,
                kind,
            };
            let Some(context) = TxContext::new(checksum, network) else {
                return;
            };
            let [low, high] = written(|ring| context.with_vlan(tag).write(ring, 0));

            assert_eq!(field(low, 9, 7), network.into());
            assert_eq!(network + field(low, 0, 9) as u32, start);
            assert_eq!(field(low, 16, 16), tag.into());
            assert_eq!(field(high, 20, 4), 2);
        },
    );
}

#[test]
fn nothing_is_cut_into_pieces_that_are_too_long() {
    let fields = (0u16.., 0u32..150, 0u32..100, 0u32..100, 0u8..4);

    check(fields, |(size, network, ip, tcp, kind)| {
        let segmentation = Segmentation {
            protocol: [SegmentedProtocol::Tcp, SegmentedProtocol::Udp][usize::from(kind & 1)],
            ipv4: kind & 2 != 0,
            size,
            network,
            transport: network + ip,
            headers: network + ip + tcp,
        };
        let Some(context) = TxContext::segmented(&segmentation) else {
            return;
        };
        let [low, high] = written(|ring| context.write(ring, 0));

        assert_eq!(field(high, 48, 16), size.into());
        assert_eq!(field(high, 40, 8), tcp.into());
        assert_eq!(
            (field(low, 9, 7), field(low, 0, 9)),
            (network.into(), ip.into())
        );
        assert!(segmentation.headers + u32::from(size) <= TX_MAX_PACKET);
    });
}

#[test]
fn a_length_is_told_or_refused() {
    check(
        (0u32..1 << 19, 0u64.., 0u16.., 0u8..2),
        |(len, address, part, last)| {
            let Some(template) = TxTemplate::new(len, false) else {
                assert!(len >= 1 << 18);
                return;
            };
            let [first, second] = written(|ring| template.write(ring, 0, address, part, last != 0));

            assert_eq!((first, field(second, 46, 18)), (address, len.into()));
            assert_eq!(field(second, 0, 16), part.into());
            assert_eq!(field(second, 24, 1), last.into());
        },
    );
}
