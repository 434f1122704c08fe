// SPDX-License-Identifier: GPL-2.0

//! The hashes of the flow director.

use super::check;
use crate::ixgbe::director_hash::{hash, BUCKET_KEY, SIGNATURE_KEY};

/// The bits of a hash that count.
const MASK: u32 = 0x7fff;

fn both(head: u32, body: u32) -> [u32; 2] {
    [hash::<BUCKET_KEY>, hash::<SIGNATURE_KEY>].map(|hash| hash(head, body) & MASK)
}

#[test]
fn a_hash_is_a_sum() {
    // Of the hashes of its parts, without carry.
    check(
        proptest::array::uniform4(0u32..),
        |[head, body, more, other]| {
            let (head, more) = (head >> 8, more >> 8);
            let (one, two) = (both(head, body), both(more, other));
            let sum = both(head ^ more, body ^ other);

            assert_eq!([one[0] ^ two[0], one[1] ^ two[1]], sum);
        },
    );
}

#[test]
fn each_bit_of_the_body_adds_a_part_of_the_key() {
    check((0u32.., 0u32..32), |(body, place)| {
        for (key, of) in [
            (BUCKET_KEY, hash::<BUCKET_KEY> as fn(u32, u32) -> u32),
            (SIGNATURE_KEY, hash::<SIGNATURE_KEY>),
        ] {
            let changed = of(0, body) ^ of(0, body ^ 1 << place);
            let window = (0..15).map(|bit| (key.rotate_right(place + 16 + 32 - bit) & 1) << bit);

            assert_eq!(changed & MASK, window.sum::<u32>());
        }
    });
}
