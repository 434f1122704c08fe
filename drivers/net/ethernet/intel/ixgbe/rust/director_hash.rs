// SPDX-License-Identifier: GPL-2.0

//! The hashes of the flow director over the fields of a packet (datasheet 7.1.2.7).

use kernel::prelude::*;

/// The keys of the hashes, for the bucket of a filter and for its signature. Any will do; these are
/// those of `ixgbe`.
pub(crate) const BUCKET_KEY: u32 = 0x3dad_14e2;
pub(crate) const SIGNATURE_KEY: u32 = 0x174d_3614;

/// The hash over `head`, the type of a packet and its VLAN tag, and `body`, all other fields, added
/// without carry. Users take its lower bits.
///
/// Each bit of the key adds the fields, moved by as many bits, seen as a ring of 351 bits: the type
/// and the tag are its last ones, so that one half of the key meets them twice.
pub(crate) fn hash<const KEY: u32>(head: u32, body: u32) -> u32 {
    let upper = body ^ head ^ head >> 16;
    let lower = body.rotate_left(16);
    let mut hash = 0;

    for bit in 0..16 {
        if KEY >> (bit + 16) & 1 != 0 {
            hash ^= upper >> bit;
        }
        if KEY >> bit & 1 != 0 {
            let head = if bit == 0 { 0 } else { head ^ head << 16 };
            hash ^= (lower ^ head) >> bit;
        }
    }
    hash
}

#[kunit_tests(ixgbe_rust_director_hash)]
mod tests {
    use super::*;

    /// The hash bit by bit: each of its bits is a sum of those bits of the fields that the key
    /// chooses. The key is a ring; the further a bit is from that of the hash, the further on is
    /// its bit of the key.
    fn bit_by_bit(key: u32, head: u32, body: u32) -> u32 {
        let key = |number: i32| key >> number.rem_euclid(32) & 1;
        let mut hash = 0;

        for bit in 0..15 {
            for place in 0..32 {
                let distance = place - bit;
                // The head counts twice, and goes not all the way round.
                let first = if distance < 16 { key(distance + 16) } else { 0 };
                let second = if distance > 0 { key(distance) } else { 0 };

                hash ^= (body >> place & key(distance + 16) & 1) << bit;
                hash ^= (head >> place & (first ^ second) & 1) << bit;
            }
        }
        hash
    }

    #[test]
    fn the_hash_is_the_sum_of_its_bits() {
        let mut number = 1u32;
        let mut next = || {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            number
        };

        for _ in 0..200 {
            let (head, body) = (next() >> 8, next());

            assert_eq!(
                hash::<BUCKET_KEY>(head, body) & 0x7fff,
                bit_by_bit(BUCKET_KEY, head, body)
            );
            assert_eq!(
                hash::<SIGNATURE_KEY>(head, body) & 0x7fff,
                bit_by_bit(SIGNATURE_KEY, head, body)
            );
        }
    }

    #[test]
    fn hashes_are_those_of_the_c_driver() {
        // As the function of `ixgbe` computes both.
        let both = |head, body| {
            (
                hash::<SIGNATURE_KEY>(head, body) & 0x7fff,
                hash::<BUCKET_KEY>(head, body) & 0x7fff,
            )
        };

        assert_eq!(both(2 << 16, 0), (0x6a12, 0x4a52));
        assert_eq!(both(0, 1), (0x50d9, 0x0e51));
        assert_eq!(both(0, 1 << 31), (0x286c, 0x4728));
    }
}
