// SPDX-License-Identifier: GPL-2.0

//! Tests of freeing packets whose data is a page of a page pool, in bulk.

mod halves;
mod lab;

use self::lab::{
    build,
    lab,
    Lab,
    Pool, //
};
use super::BulkStats;
use crate::{
    bindings,
    net::skbuff::SkBuff,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};
use core::ptr::NonNull;

/// The fields of a packet for reading and writing.
macro_rules! fields {
    ($skb:expr) => {
        // SAFETY: The packet is valid, and the test alone uses it.
        unsafe { &mut *$skb.as_raw() }
    };
}

#[macros::kunit_tests(rust_skb_free_pages)]
mod cases {
    use super::*;

    /// Number of packets that a case frees.
    const COUNT: usize = 8;

    #[test]
    fn pages_return_to_the_ring_of_another_consumer() -> Result {
        let seen = lab(0, 16, 64, |lab| {
            lab.free(lab.packets(COUNT)?);
            Some(lab.seen())
        })?;
        assert_eq!((seen.bulk, seen.ring), (8, COUNT));
        assert_eq!((seen.alone, seen.used), (0, 0));
        Ok(())
    }

    // In a real-time kernel, only the poll function itself puts pages there: it may have been
    // preempted by another one that frees them.
    #[cfg(not(CONFIG_PREEMPT_RT))]
    #[test]
    fn pages_return_to_the_cache_of_this_consumer() -> Result {
        let seen = lab(0, 16, 64, |lab| {
            lab.consume_here();
            let packets = lab.packets(COUNT)?;
            let before = lab.seen();
            assert_eq!((before.used, before.ring), (COUNT, 0));
            lab.free(packets);
            let after = lab.seen();
            Some((after.cached - before.cached, after))
        })?;
        assert_eq!((seen.0, seen.1.used, seen.1.ring), (COUNT, 0, 0));
        assert_eq!((seen.1.bulk, seen.1.alone), (8, 0));
        Ok(())
    }

    /// More than the cache holds, and more than the ring holds.
    #[cfg(not(CONFIG_PREEMPT_RT))]
    #[test]
    fn surplus_pages_go_to_the_ring_and_to_the_allocator() -> Result {
        let seen = lab(0, 16, 64, |lab| {
            lab.consume_here();
            let packets = lab.packets(lab.cache_len() + 72)?;
            lab.free(packets);
            Some((lab.cache_len(), lab.seen()))
        })?;
        let (len, seen) = seen;
        assert_eq!((seen.cached, seen.ring, seen.used), (len, 16, 0));
        assert_eq!((seen.bulk, seen.alone), (len as u64 + 72, 0));
        Ok(())
    }

    /// The pages of two pools take turns.
    #[test]
    fn each_page_returns_to_its_own_pool() -> Result {
        let other = Arc::new(Pool::new(0, 16)?, GFP_KERNEL)?;
        let theirs = other.clone();
        let seen = lab(0, 16, 64, move |lab| {
            let second = Lab {
                cx: lab.cx,
                pool: &theirs,
                stats: BulkStats::new(),
            };
            let mut packets = KVec::new();
            for _ in 0..COUNT / 2 {
                packets.push(lab.packet()?, GFP_ATOMIC).ok()?;
                packets.push(second.packet()?, GFP_ATOMIC).ok()?;
            }
            lab.free(packets);
            Some((lab.seen(), second.seen()))
        })?;
        assert_eq!((seen.0.ring, seen.0.used, seen.0.bulk), (COUNT / 2, 0, 8));
        assert_eq!((seen.1.ring, seen.1.used), (COUNT / 2, 0));
        Ok(())
    }

    /// A packet and its clone share the page.
    #[test]
    fn a_clone_does_not_return_the_page_again() -> Result {
        let seen = lab(0, 16, 64, |lab| {
            let skb = lab.packet()?;
            // SAFETY: The packet is valid.
            let clone = unsafe { bindings::skb_clone(skb.as_raw(), bindings::GFP_ATOMIC) };
            // SAFETY: It is ours.
            let clone = unsafe { SkBuff::from_raw(NonNull::new(clone)?) };

            lab.free([clone]);
            let first = lab.seen();
            assert_eq!((first.ring, first.used), (0, 1));
            lab.free([skb]);
            Some(lab.seen())
        })?;
        assert_eq!((seen.bulk, seen.ring, seen.used), (2, 1, 0));
        Ok(())
    }

    #[test]
    fn a_packet_with_another_owner_keeps_its_page() -> Result {
        let seen = lab(0, 16, 64, |lab| {
            let skb = lab.packet()?;
            // SAFETY: The packet is valid; this makes a second owner.
            let second = unsafe {
                bindings::refcount_inc(&raw mut (*skb.as_raw()).users);
                SkBuff::from_raw(NonNull::new(skb.as_raw())?)
            };

            lab.free([skb]);
            let first = lab.seen();
            assert_eq!((first.alone, first.ring, first.used), (1, 0, 1));
            lab.free([second]);
            Some(lab.seen())
        })?;
        assert_eq!((seen.bulk, seen.ring, seen.used), (1, 1, 0));
        Ok(())
    }

    #[test]
    fn destructors_run() -> Result {
        static RUNS: Atomic<u32> = Atomic::new(0);

        extern "C" fn destructor(_skb: *mut bindings::sk_buff) {
            RUNS.fetch_add(1, Relaxed);
        }

        RUNS.store(0, Relaxed);
        let seen = lab(0, 16, 64, |lab| {
            let packets = lab.packets(COUNT)?;
            for skb in &packets {
                fields!(skb).__bindgen_anon_3.__bindgen_anon_1.destructor = Some(destructor);
            }
            lab.free(packets);
            Some(lab.seen())
        })?;
        assert_eq!(RUNS.load(Relaxed), COUNT as u32);
        assert_eq!((seen.bulk, seen.ring, seen.used), (8, COUNT, 0));
        Ok(())
    }

    #[test]
    fn the_reference_to_a_route_is_dropped() -> Result {
        // Two references, counted from zero; the route itself is ours.
        let mut route = KBox::new(pin_init::zeroed::<bindings::dst_entry>(), GFP_KERNEL)?;
        route.__rcuref.refcnt.counter = 1;
        let address = &raw mut *route as usize;

        let seen = lab(0, 16, 64, move |lab| {
            let skb = lab.packet()?;
            fields!(skb).__bindgen_anon_3.__bindgen_anon_1._skb_refdst = address;
            lab.free([skb]);
            Some(lab.seen())
        })?;
        assert_eq!(route.__rcuref.refcnt.counter, 0);
        assert_eq!((seen.bulk, seen.ring, seen.used), (1, 1, 0));
        Ok(())
    }

    #[test]
    fn fragments_return_too() -> Result {
        let seen = lab(0, 16, 64, |lab| {
            let skb = lab.packet()?;
            let page = lab.page()?;
            // SAFETY: The packet has room for a fragment, which is a page that it owns then.
            unsafe { bindings::skb_add_rx_frag(skb.as_raw(), 0, page.as_ptr(), 0, 100, 4096) };
            lab.free([skb]);
            Some(lab.seen())
        })?;
        assert_eq!((seen.bulk, seen.ring, seen.used), (1, 2, 0));
        Ok(())
    }

    #[test]
    fn packets_on_a_packet_return_too() -> Result {
        let seen = lab(0, 16, 64, |lab| {
            let (skb, inner) = (lab.packet()?, lab.packet()?);
            // SAFETY: The packet is valid, and owns the other one from here on.
            unsafe { (*skb.shared_info()).frag_list = inner.into_raw().as_ptr() };
            lab.free([skb]);
            Some(lab.seen())
        })?;
        assert_eq!((seen.bulk, seen.ring, seen.used), (1, 2, 0));
        Ok(())
    }

    /// The sender of data that is not copied learns that it is not used any more.
    #[test]
    fn zero_copy_is_completed() -> Result {
        static RUNS: Atomic<u32> = Atomic::new(0);

        extern "C" fn complete(
            _skb: *mut bindings::sk_buff,
            _uarg: *mut bindings::ubuf_info,
            _success: bool,
        ) {
            RUNS.fetch_add(1, Relaxed);
        }

        RUNS.store(0, Relaxed);
        let seen = lab(0, 16, 64, |lab| {
            let ops = bindings::ubuf_info_ops {
                complete: Some(complete),
                ..Default::default()
            };
            let mut uarg = bindings::ubuf_info {
                ops: &ops,
                ..Default::default()
            };
            let skb = lab.packet()?;
            // SAFETY: The packet is valid, and is freed before `uarg` goes away. The flag is
            // SKBFL_ZEROCOPY_ENABLE.
            unsafe {
                let info = skb.shared_info();
                (*info).__bindgen_anon_2.destructor_arg = (&raw mut uarg).cast();
                (*info).flags = 1;
            }
            lab.free([skb]);
            Some(lab.seen())
        })?;
        assert_eq!(RUNS.load(Relaxed), 1);
        assert_eq!((seen.bulk, seen.ring, seen.used), (1, 1, 0));
        Ok(())
    }

    /// A packet that has no mark to return its page to a pool only drops a reference to the page.
    #[test]
    fn a_page_is_not_recycled_without_the_mark() -> Result {
        let seen = lab(0, 16, 64, |lab| {
            let page = lab.page()?;
            let skb = build(page, 0, bindings::PAGE_SIZE as u32)?;

            fields!(skb).set_pp_recycle(0);
            // SAFETY: The page is valid. The packet gets a reference of its own.
            unsafe { bindings::get_page(page.as_ptr()) };
            lab.free([skb]);
            let seen = lab.seen();
            // The first reference is that of the pool's user.
            lab.free([build(page, 0, bindings::PAGE_SIZE as u32)?]);
            Some((seen, lab.seen()))
        })?;
        assert_eq!((seen.0.bulk, seen.0.ring, seen.0.used), (1, 0, 1));
        assert_eq!((seen.1.bulk, seen.1.ring, seen.1.used), (2, 1, 0));
        Ok(())
    }

    /// A page to which there is another reference is given up by the pool.
    #[test]
    fn a_page_with_another_reference_leaves_the_pool() -> Result {
        let seen = lab(0, 16, 64, |lab| {
            let (page, other) = (lab.page()?, lab.packet()?);
            let skb = build(page, 0, bindings::PAGE_SIZE as u32)?;

            // SAFETY: The page is valid. This reference is ours, so it stays.
            unsafe { bindings::get_page(page.as_ptr()) };
            lab.free([skb, other]);
            let seen = lab.seen();
            // SAFETY: It is ours, and nothing refers to the page any more.
            unsafe { bindings::put_page(page.as_ptr()) };
            Some(seen)
        })?;
        assert_eq!((seen.bulk, seen.ring, seen.used), (2, 1, 0));
        Ok(())
    }

    /// A page that has been allocated elsewhere, in a packet with the mark.
    #[test]
    fn pages_of_other_owners_are_freed() -> Result {
        let seen = lab(0, 16, 64, |lab| {
            // SAFETY: There is no requirement but the context, which the flags allow.
            let page = unsafe { bindings::alloc_pages(bindings::GFP_ATOMIC, 0) };
            let page = NonNull::new(page)?;
            // SAFETY: The page is valid. This reference is ours, besides that of the packet.
            unsafe { bindings::get_page(page.as_ptr()) };

            lab.free([build(page, 0, bindings::PAGE_SIZE as u32)?]);
            // SAFETY: There is our reference, which we give up.
            let left = unsafe {
                let left = bindings::page_count(page.as_ptr());
                bindings::put_page(page.as_ptr());
                left
            };
            Some((lab.seen(), left))
        })?;
        let (seen, left) = seen;
        assert_eq!((seen.bulk, seen.ring, seen.cached, seen.used), (1, 0, 0, 0));
        assert_eq!(left, 1);
        Ok(())
    }

    /// Packets in two halves of a page return it together.
    #[test]
    fn a_page_with_several_users_is_not_recycled_early() -> Result {
        let seen = lab(0, 16, 64, |lab| {
            const HALF: u32 = (bindings::PAGE_SIZE / 2) as u32;
            let mut offset = 0;
            let mut half = || {
                // SAFETY: Nothing else allocates from the pool.
                let page = unsafe {
                    bindings::page_pool_dev_alloc_frag(lab.pool.0.as_ptr(), &mut offset, HALF)
                };
                build(NonNull::new(page)?, offset as usize, HALF)
            };
            let packets = [half()?, half()?];

            // The pool keeps a page that it takes fragments of.
            lab.free(packets);
            let first = lab.seen();
            // The next one makes it give that up.
            let next = half()?;
            let second = lab.seen();
            lab.free([next]);
            Some((first, second))
        })?;
        assert_eq!((seen.0.bulk, seen.0.ring, seen.0.used), (2, 0, 1));
        assert_eq!((seen.1.ring, seen.1.used), (0, 1));
        Ok(())
    }

    /// Bit 1 of the word that marks pages of a pool says that it is from the reserves.
    #[test]
    fn pages_of_the_reserves_are_freed() -> Result {
        let seen = lab(0, 16, 64, |lab| {
            let packets = lab.packets(2)?;
            let head = fields!(packets[0]).head;
            // SAFETY: The page is valid, the word is the second one of its struct.
            unsafe {
                let page = bindings::virt_to_page(head.cast());
                *page.cast::<usize>().add(1) |= 2;
            }
            lab.free(packets);
            Some(lab.seen())
        })?;
        assert_eq!((seen.bulk, seen.ring, seen.used), (2, 1, 0));
        Ok(())
    }

    /// The data of a packet can be in a page that is not the first one.
    #[test]
    fn tail_pages_return_as_a_whole() -> Result {
        let seen = lab(1, 16, 64, |lab| {
            let skb = lab.packet_at(bindings::PAGE_SIZE)?;
            lab.free([skb, lab.packet()?]);
            Some(lab.seen())
        })?;
        assert_eq!((seen.bulk, seen.ring, seen.used), (2, 2, 0));
        Ok(())
    }

    /// Pages that packets never pass to `page_pool_put_netmem_bulk()`, but other callers may.
    #[test]
    fn other_pages_take_the_ordinary_way_of_pools() -> Result {
        let seen = lab(1, 16, 64, |lab| {
            let (reserve, plain, tail) = (lab.page()?, lab.page()?, lab.page()?);

            // SAFETY: The pages are ours. The word is the second one of the struct, and the tail
            // page is the second one of two.
            unsafe {
                *reserve.as_ptr().cast::<usize>().add(1) |= 2;
                let mut pages = [
                    reserve.as_ptr() as bindings::netmem_ref,
                    tail.as_ptr().add(1) as bindings::netmem_ref,
                    plain.as_ptr() as bindings::netmem_ref,
                ];
                bindings::page_pool_put_netmem_bulk(pages.as_mut_ptr(), 3);
            }
            Some(lab.seen())
        })?;
        // The first page was freed.
        assert_eq!((seen.ring, seen.cached, seen.used), (2, 0, 0));
        Ok(())
    }

    /// Without a budget this could be hard interrupt context: nothing may go to the caches.
    #[test]
    fn netpoll_takes_the_ordinary_way() -> Result {
        let seen = lab(0, 16, 0, |lab| {
            lab.free(lab.packets(COUNT)?);
            Some(lab.seen())
        })?;
        assert_eq!((seen.bulk, seen.alone), (0, 8));
        assert_eq!(seen.used + seen.ring, COUNT);
        Ok(())
    }

    /// Taking pages in bulk, from the cache and beyond it.
    #[test]
    fn pages_are_allocated_in_bulk() -> Result {
        let seen = lab(0, 256, 64, |lab| {
            let mut pages = [core::ptr::null_mut::<bindings::page>(); 150];
            // SAFETY: Nothing else allocates from the pool, and there is that much room.
            let got = unsafe {
                bindings::page_pool_dev_alloc_pages_bulk(
                    lab.pool.0.as_ptr(),
                    pages.as_mut_ptr(),
                    pages.len() as u32,
                )
            };
            let used = lab.seen().used;
            // None was handed out twice.
            pages.sort_unstable();
            let distinct = pages.windows(2).all(|two| two[0] != two[1]);
            for page in pages {
                let page = NonNull::new(page)?;
                lab.free([build(page, 0, bindings::PAGE_SIZE as u32)?]);
            }
            Some((got, used, distinct, lab.seen()))
        })?;
        assert_eq!((seen.0, seen.1, seen.2), (150, 150, true));
        assert_eq!((seen.3.used, seen.3.bulk), (0, 150));
        Ok(())
    }
}
