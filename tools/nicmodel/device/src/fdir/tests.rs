// SPDX-License-Identifier: GPL-2.0
//! Tests of the flow director.

use arbitrary_int::{u2, u4, u5, u7, u15};

use super::fields::Fields;
use super::*;
use crate::packet::{TCP, parse, put_be16};
use crate::regs::bits::Fdirm;
use crate::testing::{device, set, udp_frame};

/// The key of the stock driver, for which its function has computed the buckets below.
const KEY: u32 = 0x3dad_14e2;
const CONTROL: Fdirctrl = Fdirctrl::ZERO
    .with_pballoc(u2::new(1))
    .with_perfect_match(true)
    .with_flex_offset(u5::new(6));
const UDP_TO_PORT: Fields = Fields {
    source: 0,
    destination: 0x0a00_0102,
    ports: 9,
    vlan: 0,
    flex: 0,
    l4: 1,
};

/// A device that compares destinations and the ports of UDP.
fn directed() -> Device {
    let device = device();
    set(&device, CONTROL);
    device.register_write(offset::FDIRKEY, KEY);
    set(
        &device,
        Fdirm::ZERO
            .with_vlan_id(true)
            .with_vlan_priority(true)
            .with_pool(true)
            .with_flex(true),
    );
    device.register_write(offset::FDIRTCPM, u32::MAX);
    // All bits of the destination port, none of the source port.
    device.register_write(offset::FDIRUDPM, 0x0000_ffff);
    device.register_write(offset::FDIRSIP4M, u32::MAX);
    device.register_write(offset::FDIRDIP4M, 0);
    device
}

fn hash(fields: &Fields, index: u16) -> Fdirhash {
    Fdirhash::ZERO
        .with_hash(u15::new(fields.hash(KEY) & BUCKETS))
        .with_soft_index(u15::new(index))
}

fn command(device: &Device, command: Fdircmd, index: u16) -> Fdircmd {
    let fields = UDP_TO_PORT;
    let port = fields.ports.rotate_left(16);
    device.register_write(offset::FDIRIP + 16, fields.destination.swap_bytes());
    device.register_write(offset::FDIRPORT, port);
    set(device, hash(&fields, index));
    set(device, command.with_l4type(u2::new(fields.l4)));
    Fdircmd::from_raw(device.register_read(Fdircmd::offset(0)))
}

const ADD: Fdircmd = Fdircmd::ZERO
    .with_command(Fdircmd::ADD)
    .with_filter_update(true)
    .with_queue_en(true)
    .with_rx_queue(u7::new(3));

fn found(device: &Device, frame: &[u8]) -> Option<Match> {
    Director::load(device)?.find(frame, &parse(frame))
}

#[test]
fn buckets_are_those_of_the_stock_driver() {
    for (fields, bucket) in STOCK {
        assert_eq!(fields.hash(KEY) & BUCKETS, *bucket, "{fields:x?}");
    }
}

#[test]
fn a_filter_chooses_the_queue_until_it_is_removed() {
    let device = directed();
    let frame = udp_frame(60);
    assert_eq!(found(&device, &frame), None);
    assert!(!command(&device, ADD, 7).filter_valid());
    let wanted = Match {
        queue: Some(3),
        report: None,
    };
    assert_eq!(found(&device, &frame), Some(wanted));
    // Another port, another protocol.
    for (at, value) in [(37, 10), (23, 6)] {
        let mut other = frame.clone();
        other[at] = value;
        assert_eq!(found(&device, &other), None);
    }
    // Bits that are masked.
    let mut same = frame.clone();
    same[26] = 11;
    same[35] = 77;
    assert_eq!(found(&device, &same), Some(wanted));

    let query = Fdircmd::ZERO.with_command(Fdircmd::QUERY);
    assert!(command(&device, query, 7).filter_valid());
    assert!(!command(&device, query, 8).filter_valid());
    let remove = Fdircmd::ZERO.with_command(Fdircmd::REMOVE);
    command(&device, remove, 8);
    assert_eq!(found(&device, &frame), Some(wanted));
    command(&device, remove, 7);
    assert_eq!(found(&device, &frame), None);
    assert_eq!(device.register_read(offset::FDIRUSTAT), 1 << 16 | 1);
    assert_eq!(device.register_read(offset::FDIRFSTAT), 1 << 8);
}

#[test]
fn a_filter_drops_or_is_reported() {
    let device = directed();
    let frame = udp_frame(60);
    command(&device, ADD.with_drop(true), 7);
    assert_eq!(found(&device, &frame).map(|one| one.queue), Some(None));
    // Updated, rather than added.
    command(&device, ADD, 7);
    assert_eq!(device.register_read(offset::FDIRFREE), 2045);
    set(&device, CONTROL.with_report_status(true));
    assert_eq!(found(&device, &frame), None, "the table is empty");
    command(&device, ADD, 7);
    let report = found(&device, &frame).and_then(|one| one.report);
    let hash = u32::from(UDP_TO_PORT.hash(KEY) & BUCKETS);
    assert_eq!(report, Some(7 << 16 | hash));
}

#[test]
fn a_wrong_bucket_never_matches() {
    let device = directed();
    command(&device, ADD, 7);
    device.register_write(offset::FDIRKEY, KEY ^ 0x100);
    assert_eq!(found(&device, &udp_frame(60)), None);
}

#[test]
fn a_full_table_refuses() {
    let device = directed();
    for index in 0..2046 {
        command(&device, ADD, index);
    }
    assert_eq!(device.register_read(offset::FDIRFREE), 0);
    assert_eq!(device.register_read(offset::FDIRFSTAT), 0);
    command(&device, ADD, 2046);
    assert_eq!(device.register_read(offset::FDIRFSTAT), 1);
}

/// The key of the stock driver for signatures.
const SIGNATURE_KEY: u32 = 0x174d_3614;
/// Signature filters, as the stock driver sets them up.
const SIGNATURES: Fdirctrl = CONTROL
    .with_perfect_match(false)
    .with_full_thresh(u4::new(4));

fn signing() -> Device {
    let device = device();
    device.register_write(offset::FDIRKEY, KEY);
    device.register_write(offset::FDIRKEY + 4, SIGNATURE_KEY);
    set(&device, SIGNATURES);
    device
}

/// A frame of TCP to port 80.
fn tcp_frame() -> Vec<u8> {
    let mut frame = udp_frame(60);
    frame[23] = TCP;
    put_be16(&mut frame, 34, 1234);
    put_be16(&mut frame, 36, 80);
    frame
}

/// The result of the function of the stock driver for that flow: signature and bucket.
const STOCK_TCP: u32 = 0x41e4_4f23;

fn sign(device: &Device, place: u32, command: Fdircmd) -> Fdircmd {
    set(device, Fdirhash::from_raw(place));
    set(device, command.with_l4type(u2::new(2)));
    Fdircmd::from_raw(device.register_read(Fdircmd::offset(0)))
}

fn to_queue(queue: u32) -> Option<Match> {
    Some(Match {
        queue: Some(queue),
        report: None,
    })
}

#[test]
fn a_signature_chooses_the_queue() {
    let device = signing();
    assert_eq!(device.register_read(offset::FDIRFREE), 8190);
    let frame = tcp_frame();
    // Before there is a filter: a receiver need not look again.
    let director = Director::load(&device).expect("there is memory");
    let find = |frame: &[u8]| director.find(frame, &parse(frame));
    assert_eq!(find(&frame), None);
    sign(&device, STOCK_TCP, ADD);
    assert_eq!(find(&frame), to_queue(3));
    // The flow has moved.
    sign(&device, STOCK_TCP, ADD.with_rx_queue(u7::new(5)));
    assert_eq!(find(&frame), to_queue(5));
    assert_eq!(device.register_read(offset::FDIRFREE), 8189);
    // Each field counts: addresses, ports, protocol.
    for at in [26, 33, 34, 37, 23] {
        let mut other = frame.clone();
        other[at] ^= 1;
        assert_eq!(find(&other), None, "byte {at}");
    }
    // The type of service and the flags do not.
    let mut same = frame;
    (same[15], same[47]) = (0x10, 2);
    assert_eq!(find(&same), to_queue(5));
}

#[test]
fn a_signature_of_ipv6_chooses_the_queue() {
    let device = signing();
    // 2001:db8:9::1 port 443 to 2001:db8:9::2 port 50000, by the function of the stock driver.
    sign(&device, 0x7f80_4735, ADD);
    let mut frame = vec![0; 74];
    frame[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
    (frame[19], frame[20]) = (20, TCP);
    for (at, last) in [(22, 1), (38, 2)] {
        frame[at..at + 6].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8, 0, 9]);
        frame[at + 15] = last;
    }
    put_be16(&mut frame, 54, 443);
    put_be16(&mut frame, 56, 50_000);
    assert_eq!(found(&device, &frame), to_queue(3));
    frame[53] = 3;
    assert_eq!(found(&device, &frame), None);
}

#[test]
fn a_signature_covers_the_tag() {
    let device = signing();
    // 192.168.1.1 port 80 to 192.168.1.2 port 40000, id 5 and priority 3.
    sign(&device, 0x0e5f_05f2, ADD);
    let mut frame = tcp_frame();
    frame[26..34].copy_from_slice(&[192, 168, 1, 1, 192, 168, 1, 2]);
    put_be16(&mut frame, 34, 80);
    put_be16(&mut frame, 36, 40_000);
    assert_eq!(found(&device, &frame), None);
    frame.splice(12..12, [0x81, 0, 0x60, 5]);
    assert_eq!(found(&device, &frame), to_queue(3));
    frame[15] = 6;
    assert_eq!(found(&device, &frame), None);
}

#[test]
fn signatures_are_removed_and_counted() {
    let device = signing();
    let query = Fdircmd::ZERO.with_command(Fdircmd::QUERY);
    let remove = Fdircmd::ZERO.with_command(Fdircmd::REMOVE);
    sign(&device, STOCK_TCP, ADD);
    // It is there, and may not be changed.
    let frozen = ADD.with_filter_update(false).with_rx_queue(u7::new(1));
    assert!(sign(&device, STOCK_TCP, frozen).filter_valid());
    assert_eq!(found(&device, &tcp_frame()), to_queue(3));
    // The same bucket, and another signature.
    let other = STOCK_TCP ^ 1 << 20;
    assert!(!sign(&device, other, query).filter_valid());
    sign(&device, other, remove);
    sign(&device, STOCK_TCP, remove);
    assert_eq!(found(&device, &tcp_frame()), None);
    assert_eq!(device.register_read(offset::FDIRUSTAT), 1 << 16 | 1);
    assert_eq!(device.register_read(offset::FDIRFSTAT), 1 << 8 | 1);
}

#[test]
fn a_table_of_signatures_is_full_and_emptied() {
    let device = signing();
    let is_reported = || device.register_read(offset::EICS) & CAUSE_TABLE_FULL != 0;
    for number in 0..8190 {
        assert_eq!(is_reported(), number > 8190 - 64);
        sign(&device, number, ADD);
    }
    assert_eq!(device.register_read(offset::FDIRFSTAT), 0);
    sign(&device, STOCK_TCP, ADD);
    assert_eq!(device.register_read(offset::FDIRFSTAT), 1);
    assert_eq!(found(&device, &tcp_frame()), None);
    // As the stock driver does it.
    set(&device, Fdircmd::ZERO.with_clear_table(true));
    set(&device, Fdircmd::ZERO);
    set(&device, SIGNATURES);
    assert_eq!(device.register_read(offset::FDIRFREE), 8190);
    sign(&device, STOCK_TCP, ADD);
    assert_eq!(found(&device, &tcp_frame()), to_queue(3));
}

#[test]
fn each_mode_has_its_own_filters() {
    let device = signing();
    sign(&device, STOCK_TCP, ADD);
    set(&device, CONTROL);
    assert_eq!(found(&device, &tcp_frame()), None);
    set(&device, SIGNATURES);
    assert_eq!(found(&device, &tcp_frame()), None, "the table is empty");
}

const STOCK: &[(Fields, u16)] = &[
    (
        Fields {
            source: 0x0,
            destination: 0xa000102,
            ports: 0x9,
            vlan: 0x0,
            flex: 0x0,
            l4: 1,
        },
        0x154,
    ),
    (
        Fields {
            source: 0xa000002,
            destination: 0xa000102,
            ports: 0x4d20050,
            vlan: 0x0,
            flex: 0x0,
            l4: 2,
        },
        0xb51,
    ),
    (
        Fields {
            source: 0xc0a80101,
            destination: 0x0,
            ports: 0x0,
            vlan: 0x6123,
            flex: 0x0,
            l4: 0,
        },
        0x1fd0,
    ),
    (
        Fields {
            source: 0xffffffff,
            destination: 0xffffffff,
            ports: 0xffffffff,
            vlan: 0xefff,
            flex: 0xffff,
            l4: 3,
        },
        0xb19,
    ),
    (
        Fields {
            source: 0x1,
            destination: 0x0,
            ports: 0x0,
            vlan: 0x0,
            flex: 0x800,
            l4: 2,
        },
        0x71,
    ),
];
