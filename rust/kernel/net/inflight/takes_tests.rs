// SPDX-License-Identifier: GPL-2.0

//! Tests of packets that need many descriptors.

#[crate::prelude::kunit_tests(rust_net_inflight_limits)]
mod cases {
    use super::super::{
        tests::cases::{
            linear,
            scattered,
            LIMITS, //
        },
        *, //
    };

    fn takes(descriptors: usize, skb: &crate::net::skbuff::SkBuff, contexts: usize) -> bool {
        let limits = Limits {
            descriptors,
            ..LIMITS
        };

        limits.takes(skb, contexts)
    }

    #[test]
    fn each_part_takes_descriptors_of_its_own() -> Result {
        // 100 bytes, two pages of 4 KiB, and 4 bytes of another one, in pieces of 1 KiB.
        let skb = scattered(100, 2 * 4096 + 4)?;

        assert!(takes(10, &skb, 0));
        assert!(!takes(9, &skb, 0));
        assert!(takes(11, &skb, 1));
        assert!(!takes(10, &skb, 1));
        Ok(())
    }

    #[test]
    fn a_linear_packet_is_one_part() -> Result {
        let skb = linear(2048)?;

        assert!(takes(2, &skb, 0));
        assert!(!takes(1, &skb, 0));
        assert!(takes(3, &linear(2049)?, 0));
        assert!(!takes(2, &linear(2049)?, 0));
        Ok(())
    }
}
