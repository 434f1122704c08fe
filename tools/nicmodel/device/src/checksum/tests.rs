// SPDX-License-Identifier: GPL-2.0
use super::*;
use crate::packet::parse;
use crate::testing::udp_frame;

#[test]
fn known_values() {
    assert_eq!(fcs(b"123456789"), 0xcbf4_3926);
    // CRC-32C of the same digits, with no field to skip: prefix kept under eight bytes.
    assert_eq!(
        sctp(b"1234567"),
        !b"1234567"
            .iter()
            .fold(u32::MAX, |c, b| crc_step(c, *b, 0x82f6_3b78))
    );
    let header = [
        0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0x00,
        0x01, 0xc0, 0xa8, 0x00, 0xc7,
    ];
    assert_eq!(ipv4_header(&header), 0xb861);
}

#[test]
fn a_good_frame_is_good_and_a_bad_one_is_bad() {
    let mut frame = udp_frame(77);
    let good = verify(&frame, &parse(&frame));
    assert_eq!(
        good,
        Verdict {
            ip_checked: true,
            ip_bad: false,
            l4_checked: true,
            l4_bad: false
        }
    );
    frame[50] ^= 1;
    assert!(verify(&frame, &parse(&frame)).l4_bad);
    frame[50] ^= 1;
    frame[22] ^= 1;
    assert!(verify(&frame, &parse(&frame)).ip_bad);
}

#[test]
fn odd_lengths_are_padded_with_zero() {
    assert_eq!(sum(&[1, 2, 3], 0), 0x0102 + 0x0300);
}

#[test]
fn a_sum_is_that_of_its_words_whatever_their_number() {
    // Multiplied so that every carry occurs.
    let data: Vec<u8> = (0..1000_u32)
        .map(|i| (i * 251 % 256) as u8 | 0x80)
        .collect();
    for length in (0..40).chain(960..1000) {
        for start in [0, 17, 0xffff, 0x1_2345, u32::MAX] {
            let slow = data[..length]
                .chunks(2)
                .fold(u64::from(start), |sum, word| {
                    sum + (u64::from(word[0]) << 8) + word.get(1).map_or(0, |low| u64::from(*low))
                });
            // Zero only comes of zeros, so the sum has one value for each remainder.
            let expected = if slow == 0 {
                0
            } else {
                (slow - 1) % 0xffff + 1
            };
            let found = !finish(sum(&data[..length], start));
            assert_eq!(u64::from(found), expected, "{length} bytes, {start:#x}");
        }
    }
}
