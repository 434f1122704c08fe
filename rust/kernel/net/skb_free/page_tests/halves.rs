// SPDX-License-Identifier: GPL-2.0

//! Tests of packets in halves of pages.

use super::lab::{
    build,
    lab,
    Lab,
    Seen, //
};
use crate::{
    bindings,
    net::skbuff::SkBuff,
    prelude::*, //
};

/// Number of pages that a case fills.
const PAGES: usize = 4;

/// A packet in each half of a page.
fn halves(lab: &Lab<'_>) -> Option<[SkBuff; 2]> {
    const HALF: usize = bindings::PAGE_SIZE / 2;
    let page = lab.page()?;

    // SAFETY: The page was just allocated: nobody else has a reference to it.
    unsafe { bindings::page_pool_fragment_page(page.as_ptr(), 2) };
    // CAST: A page is not that large.
    Some([
        build(page, 0, HALF as u32)?,
        build(page, HALF, HALF as u32)?,
    ])
}

/// Fills pages of a pool with a ring of that size, and frees the packets in that order. Then it
/// takes pages again, which are whole. Returns the state before and after that.
fn free(ring: u32, here: bool, order: &'static [usize; 2 * PAGES]) -> Result<(Seen, Seen)> {
    lab(0, ring, 64, move |lab| {
        if here {
            lab.consume_here();
        }
        let mut packets = [const { None }; 2 * PAGES];
        for pair in packets.chunks_mut(2) {
            for (place, skb) in pair.iter_mut().zip(halves(lab)?) {
                *place = Some(skb);
            }
        }
        lab.free(order.iter().filter_map(|at| packets[*at].take()));
        let first = lab.seen();

        lab.free(lab.packets(PAGES)?);
        Some((first, lab.seen()))
    })
}

#[macros::kunit_tests(rust_skb_free_halves)]
mod cases {
    use super::*;

    const IN_TURN: [usize; 2 * PAGES] = [0, 1, 2, 3, 4, 5, 6, 7];
    const APART: [usize; 2 * PAGES] = [0, 2, 1, 4, 3, 6, 5, 7];
    const LATE: [usize; 2 * PAGES] = [1, 3, 5, 7, 0, 2, 4, 6];

    #[test]
    fn a_page_returns_to_the_ring_once() -> Result {
        for order in [&IN_TURN, &APART, &LATE] {
            let (first, again) = free(16, false, order)?;
            assert_eq!((first.bulk, first.used), (8, 0));
            assert_eq!((again.bulk, again.used), (12, 0));
            assert_eq!(first.ring + first.cached, again.ring + again.cached);
        }
        Ok(())
    }

    // See `pages_return_to_the_cache_of_this_consumer`.
    #[cfg(not(CONFIG_PREEMPT_RT))]
    #[test]
    fn a_page_returns_to_the_cache_once() -> Result {
        for order in [&IN_TURN, &APART, &LATE] {
            let (first, again) = free(16, true, order)?;
            assert_eq!((first.bulk, first.used, first.ring), (8, 0, 0));
            assert_eq!((again.bulk, again.used, again.ring), (12, 0, 0));
            assert_eq!(first.cached, again.cached);
        }
        Ok(())
    }

    /// Pages that find no room in the ring leave the pool, both halves of them.
    #[test]
    fn a_page_without_a_place_is_freed_once() -> Result {
        let (first, again) = free(2, false, &IN_TURN)?;
        assert_eq!((first.bulk, first.ring, first.used), (8, 2, 0));
        assert_eq!((again.bulk, again.used), (12, 0));
        Ok(())
    }

    #[test]
    fn one_half_keeps_its_page() -> Result {
        let seen = lab(0, 16, 64, |lab| {
            let ([first, second], [third, fourth]) = (halves(lab)?, halves(lab)?);

            // A page is whole among halves.
            lab.free([first, third, fourth, lab.packet()?]);
            let kept = lab.seen();
            lab.free([second]);
            Some((kept, lab.seen()))
        })?;
        assert_eq!((seen.0.bulk, seen.0.ring, seen.0.used), (4, 2, 1));
        assert_eq!((seen.1.bulk, seen.1.ring, seen.1.used), (5, 3, 0));
        Ok(())
    }
}
