// SPDX-License-Identifier: GPL-2.0
use super::*;
use crate::packet::be16;
use crate::testing::tcp_frame;

fn good() -> RxStatus {
    RxStatus::ZERO.with_ipcs(true).with_l4cs(true)
}

fn is_candidate(frame: &[u8]) -> bool {
    look(frame, good(), false)
        .expect("TCP over IPv4")
        .segment
        .is_some()
}

#[test]
fn plain_segments_are_joined() {
    assert!(is_candidate(&tcp_frame(1, &[7; 100], false)));
    assert!(is_candidate(&tcp_frame(1, &[7; 100], true)));
}

#[test]
fn segments_stay_alone_for_a_reason() {
    let frame = tcp_frame(1, &[7; 100], true);
    let changed = |at: usize, value: u8| {
        let mut frame = frame.clone();
        frame[at] = value;
        frame
    };
    // Flags: FIN, SYN, RST, URG, ECE, CWR, none, and NS.
    for flags in [0x11, 0x12, 0x14, 0x30, 0x50, 0x90, 0x00] {
        assert!(!is_candidate(&changed(47, flags)), "{flags:#x}");
    }
    assert!(!is_candidate(&changed(46, 0x81)));
    // Congestion experienced, another option, padding behind the packet, no payload.
    assert!(!is_candidate(&changed(15, 3)));
    assert!(!is_candidate(&changed(56, 5)));
    let mut padded = frame.clone();
    padded.push(0);
    assert!(!is_candidate(&padded));
    assert!(!is_candidate(&tcp_frame(1, &[], true)));
    assert!(
        look(&tcp_frame(1, &[], true), good(), true)
            .expect("TCP")
            .segment
            .is_some()
    );
    // Checksums.
    for status in [good().with_l4e(true), good().with_ipe(true), RxStatus::ZERO] {
        let look = look(&frame, status, false).expect("TCP");
        assert!(look.segment.is_none());
    }
    // A fragment, and another protocol.
    assert!(look(&changed(20, 0x20), good(), false).is_none());
    assert!(look(&changed(23, 17), good(), false).is_none());
}

#[test]
fn every_truncation_is_survived() {
    let frame = tcp_frame(1, &[7; 100], true);
    for end in 0..frame.len() {
        let found = look(&frame[..end], good(), true);
        assert!(found.is_none_or(|look| look.segment.is_none()));
    }
}

#[test]
fn segments_follow_each_other() {
    let first = tcp_frame(100, &[1; 50], true);
    let look_at = |frame: &[u8]| look(frame, good(), false).expect("TCP");
    let begun = look_at(&first);
    let segment = begun.segment.expect("a candidate");
    let mut headers = Headers::new(begun.flow, segment, &first, None);
    let takes = |headers: &Headers, frame: &[u8], vlan| {
        let segment = look_at(frame).segment.expect("a candidate");
        headers.takes(&segment, frame, vlan)
    };
    let next = tcp_frame(150, &[2; 60], true);
    assert!(takes(&headers, &next, None));
    assert!(!takes(&headers, &next, Some(5)), "another VLAN");
    assert!(!takes(&headers, &tcp_frame(151, &[2; 60], true), None));
    assert!(!takes(&headers, &tcp_frame(100, &[2; 60], true), None));
    assert!(!takes(&headers, &tcp_frame(150, &[2; 60], false), None));
    let mut other = next.clone();
    other[15] = 4;
    assert!(!takes(&headers, &other, None), "another service");
    let segment = look_at(&next).segment.expect("a candidate");
    let mut last = next.clone();
    last[42..46].copy_from_slice(&[9, 9, 9, 9]);
    last[47] = ACK | PSH;
    last[48] = 3;
    last[60] = 77;
    headers.append(&segment, &last);
    let bytes = headers.bytes();
    assert_eq!(be16(bytes, 16), 20 + 32 + 110);
    assert_eq!(bytes[42..48], [9, 9, 9, 9, 0x80, ACK | PSH]);
    assert_eq!((bytes[48], bytes[60]), (3, 77));
    assert_eq!(bytes[38..42], 100_u32.to_be_bytes());
}
