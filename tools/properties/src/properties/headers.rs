// SPDX-License-Identifier: GPL-2.0

//! The headers of packets that LRO is said to have aggregated.

use super::check;
use crate::net::skbuff::UniqueSkBuff;
use crate::prelude::EINVAL;

/// Frames of TCP with tags, options and extension headers, or nearly.
fn frame(bytes: [u8; 32], len: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = bytes.iter().copied().cycle().take(len).collect();
    let mut put = |at: usize, value: u8| {
        if let Some(byte) = frame.get_mut(at) {
            *byte = value;
        }
    };
    let tags = usize::from(bytes[0] & 3);
    for tag in 0..tags {
        let [high, low] = [[0x81, 0], [0x88, 0xa8]][usize::from(bytes[1] >> tag & 1)];
        put(12 + 4 * tag, high);
        put(13 + 4 * tag, low);
    }
    let network = 14 + 4 * tags;
    let [high, low] = [[8, 0], [0x86, 0xdd]][usize::from(bytes[1] >> 4 & 1)];
    put(network - 2, high);
    put(network - 1, low);
    if bytes[2] & 3 != 0 {
        put(network, 0x45 | bytes[3] & 0xf);
        put(network + 9, 6);
        put(network + 6, 6);
    }
    frame
}

#[test]
fn sizes_are_those_of_the_data() {
    let values = (
        proptest::array::uniform32(0u8..),
        0usize..128,
        0u32..100_000,
        0u32..80,
    );

    check(values, |(bytes, len, more, packets)| {
        // Less data than packets, too.
        let more = if bytes[4] & 1 != 0 { more % 64 } else { more };
        let mut skb = UniqueSkBuff::new(frame(bytes, len), more);
        let (found, whole) = (skb.set_lro(packets), skb.len());
        let (size, count) = (
            u32::from(skb.info().gso_size),
            u32::from(skb.info().gso_segs),
        );

        match found {
            Ok(()) if packets > 1 => {
                assert_eq!(count, packets);
                // No more than a share of the data, which is behind all headers.
                assert!(len >= 54 && count <= whole - 54);
                assert!(
                    size > 0 && size < 0xffff && (size - 1) * count < whole - 54,
                    "{size}"
                );
                assert_eq!(skb.set_lro(packets), Err(EINVAL));
            }
            Ok(()) => assert_eq!((size, count), (0, 0)),
            Err(error) => assert_eq!((error, size, count), (EINVAL, 0, 0)),
        }
    });
}
