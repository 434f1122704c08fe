// SPDX-License-Identifier: GPL-2.0

//! Tests of freeing in bulk, and the context that they need.

/// Helpers for tests of the poll function's side.
#[cfg(CONFIG_KUNIT = "y")]
pub(in crate::net) mod context {
    use crate::{
        net::napi::{
            Napi,
            Orphans,
            Poll, //
        },
        new_work,
        prelude::*,
        sync::{
            Arc,
            Completion,
            SetOnce, //
        },
        workqueue::{
            self,
            Work,
            WorkItem, //
        }, //
    };

    /// A closure to be run in softirq context.
    ///
    /// Not `Queue::try_spawn()`: all of its users share a lock class, and lockdep would mix up
    /// softirq context and process context.
    #[pin_data]
    struct Job<F> {
        #[pin]
        work: Work<Job<F>>,
        run: Option<F>,
    }

    crate::impl_has_work! {
        impl{F} HasWork<Self> for Job<F> { self.work }
    }

    impl<F: FnOnce()> WorkItem for Job<F> {
        type Pointer = Pin<KBox<Self>>;

        fn run(mut this: Pin<KBox<Self>>) {
            // SAFETY: The closure is not structurally pinned.
            let run = unsafe { &mut this.as_mut().get_unchecked_mut().run };
            if let Some(run) = run.take() {
                run()
            }
        }
    }

    #[pin_data]
    struct Outcome<R> {
        #[pin]
        done: Completion,
        value: SetOnce<R>,
    }

    /// Runs `f` in softirq context, as a poll function with this budget.
    pub(in crate::net) fn in_poll<R: Copy + Send + Sync + 'static>(
        budget: c_int,
        f: impl FnOnce(&Poll<'_>) -> R + Send + 'static,
    ) -> Result<R> {
        let napi = KBox::pin_init(Napi::new(Orphans::new()?), GFP_KERNEL)?;
        let outcome = Arc::pin_init(
            pin_init!(Outcome {
                done <- Completion::new(),
                value: SetOnce::new(),
            }),
            GFP_KERNEL,
        )?;

        let theirs = outcome.clone();
        let run = move || {
            // SAFETY: This is softirq context. The tests do not use the instance in a way that
            // needs a device, and there is no other poll function for it.
            let cx = unsafe { Poll::new(&napi, budget, 0) };
            theirs.value.populate(f(&cx));
            theirs.done.complete_all();
        };
        let job = KBox::pin_init(
            pin_init!(Job {
                work <- new_work!("in_poll"),
                run: Some(run),
            }),
            GFP_KERNEL,
        )?;
        workqueue::system_bh().enqueue(job);
        outcome.done.wait_for_completion();
        outcome.value.copy().ok_or(EINVAL)
    }
}

#[crate::prelude::kunit_tests(rust_skb_free)]
mod cases {
    use super::{
        super::*,
        context::in_poll, //
    };
    use crate::{
        interrupt::local_interrupt_disable,
        net::skbuff::UniqueSkBuff, //
    };
    use core::ptr::NonNull;

    /// The counters after a test.
    #[derive(Clone, Copy)]
    struct Counts {
        calls: [u64; CLASSES],
        packets: u64,
        alone: u64,
    }

    /// Adds packets of `make` to a list `count` times, and returns the counters.
    fn free(
        budget: c_int,
        count: usize,
        make: impl Fn() -> Option<SkBuff> + Send + 'static,
    ) -> Result<Counts> {
        in_poll(budget, move |cx| {
            let stats = BulkStats::new();
            let mut list = SkbFreeList::new(cx, &stats);
            let made = (0..count)
                .filter_map(|_| make())
                .map(|skb| list.push(skb))
                .count();
            drop(list);
            (made == count).then(|| Counts {
                calls: stats.calls(),
                packets: stats.packets(),
                alone: stats.alone(),
            })
        })?
        .ok_or(ENOMEM)
    }

    fn alloc() -> Option<SkBuff> {
        Some(UniqueSkBuff::alloc(128, GFP_ATOMIC).ok()?.into())
    }

    /// Makes a packet from the result of a C function.
    fn owned(skb: *mut bindings::sk_buff) -> Option<SkBuff> {
        // SAFETY: The callers pass packets that they own.
        NonNull::new(skb).map(|skb| unsafe { SkBuff::from_raw(skb) })
    }

    #[test]
    fn an_empty_list_does_nothing() -> Result {
        let counts = free(64, 0, alloc)?;

        assert_eq!(counts.calls, [0; 7]);
        assert_eq!((counts.packets, counts.alone), (0, 0));
        Ok(())
    }

    #[test]
    fn calls_are_sorted_by_their_size() -> Result {
        for (count, calls) in [
            (1, [1, 0, 0, 0, 0, 0, 0]),
            (2, [0, 1, 0, 0, 0, 0, 0]),
            (3, [0, 1, 0, 0, 0, 0, 0]),
            (4, [0, 0, 1, 0, 0, 0, 0]),
            (15, [0, 0, 0, 1, 0, 0, 0]),
            (16, [0, 0, 0, 0, 1, 0, 0]),
            (63, [0, 0, 0, 0, 0, 1, 0]),
            (64, [0, 0, 0, 0, 0, 0, 1]),
            (70, [0, 0, 1, 0, 0, 0, 1]),
        ] {
            let counts = free(64, count, alloc)?;
            assert_eq!(counts.calls, calls);
            assert_eq!((counts.packets, counts.alone), (count as u64, 0));
        }
        Ok(())
    }

    /// More than the cache of the CPU holds, in batches of sizes that fill it up in all ways.
    #[test]
    fn the_cache_of_heads_overflows_in_order() -> Result {
        for count in [1, 5, 31, 32, 33, 40, 63, 64] {
            let packets = in_poll(64, move |cx| {
                let stats = BulkStats::new();
                for _ in 0..20 {
                    let mut list = SkbFreeList::new(cx, &stats);
                    (0..count)
                        .filter_map(|_| alloc())
                        .for_each(|skb| list.push(skb));
                }
                stats.packets()
            })?;
            assert_eq!(packets, 20 * count as u64);
        }
        Ok(())
    }

    /// The next packets reuse the memory of freed ones: the most recent one first.
    #[test]
    fn heads_go_to_the_cache_of_the_cpu() -> Result {
        let same = in_poll(64, |cx| {
            let stats = BulkStats::new();
            let mut list = SkbFreeList::new(cx, &stats);
            let mut freed = [core::ptr::null_mut(); 8];
            for place in &mut freed {
                let skb = alloc()?;
                *place = skb.as_raw();
                list.push(skb);
            }
            drop(list);

            let mut taken = [core::ptr::null_mut::<bindings::sk_buff>(); 8];
            // SAFETY: This is softirq context, and there is room for as many pointers as we ask
            // for.
            let count = unsafe { bindings::napi_skb_cache_get_bulk(taken.as_mut_ptr().cast(), 8) };
            let same = count == 8 && taken == freed;
            for skb in taken.into_iter().filter(|skb| !skb.is_null()) {
                // SAFETY: A zeroed head becomes a packet when it gets data; that can be freed.
                unsafe { give_back(skb) };
            }
            Some(same)
        })?;
        assert_eq!(same, Some(true));
        Ok(())
    }

    /// Frees a head without data.
    ///
    /// # Safety
    ///
    /// `skb` comes from `napi_skb_cache_get_bulk()`.
    unsafe fn give_back(skb: *mut bindings::sk_buff) {
        const SIZE: u32 = 1024;

        // SAFETY: There is no requirement but the context, which the flags allow.
        let data = unsafe { bindings::__netdev_alloc_frag_align(SIZE, !0) };
        // SAFETY: `skb` is a zeroed head, `data` a fragment of `SIZE` bytes; if either is null, or
        // it fails, nothing has been taken over.
        let built = unsafe { bindings::build_skb_around(skb, data, SIZE) };
        drop(owned(built));
    }

    #[test]
    fn packets_with_other_owners_survive() -> Result {
        let lens = in_poll(64, |cx| {
            let stats = BulkStats::new();
            let mut list = SkbFreeList::new(cx, &stats);
            let mut skb = UniqueSkBuff::alloc(128, GFP_ATOMIC).ok()?;
            skb.put(b"hello").ok()?;
            let skb = SkBuff::from(skb);

            // SAFETY: The packet is valid, so its reference count can be raised, which makes a
            // second owner.
            unsafe { bindings::refcount_inc(&raw mut (*skb.as_raw()).users) };
            let second = owned(skb.as_raw())?;
            list.push(skb);
            drop(list);
            let alive = second.data() == b"hello" && !second.is_shared();
            Some((alive, stats.packets(), stats.alone()))
        })?;
        assert_eq!(lens, Some((true, 0, 1)));
        Ok(())
    }

    #[test]
    fn fast_clones_take_the_ordinary_way() -> Result {
        let counts = in_poll(64, |cx| {
            let stats = BulkStats::new();
            let mut list = SkbFreeList::new(cx, &stats);
            for _ in 0..5 {
                // SAFETY: The flags allow the context.
                let skb = owned(unsafe {
                    bindings::__alloc_skb(
                        128,
                        bindings::GFP_ATOMIC,
                        bindings::SKB_ALLOC_FCLONE as c_int,
                        bindings::NUMA_NO_NODE,
                    )
                })?;
                // SAFETY: The packet is valid, and the flags allow the context.
                let clone =
                    owned(unsafe { bindings::skb_clone(skb.as_raw(), bindings::GFP_ATOMIC) })?;
                list.push(clone);
                list.push(skb);
            }
            drop(list);
            Some((stats.packets(), stats.alone()))
        })?;
        assert_eq!(counts, Some((0, 10)));
        Ok(())
    }

    #[test]
    fn a_full_list_is_freed_when_another_packet_comes() -> Result {
        let counts = in_poll(64, |cx| {
            let stats = BulkStats::new();
            let mut list = SkbFreeList::new(cx, &stats);
            for _ in 0..CAPACITY {
                list.push(alloc()?);
            }
            let full = stats.packets();
            list.push(alloc()?);
            let more = stats.packets();
            drop(list);
            Some((full, more, stats.packets()))
        })?;
        assert_eq!(counts, Some((0, CAPACITY as u64, CAPACITY as u64 + 1)));
        Ok(())
    }

    /// Destructors would enable interrupts in kernels that trace them.
    #[test]
    fn interrupts_stay_disabled() -> Result {
        if !cfg!(CONFIG_TRACE_IRQFLAGS) {
            return Ok(());
        }
        let outcome = in_poll(64, |cx| {
            let stats = BulkStats::new();
            let mut list = SkbFreeList::new(cx, &stats);
            let off = local_interrupt_disable();
            for _ in 0..4 {
                list.push(alloc()?);
            }
            drop(list);
            // SAFETY: There are no requirements.
            let stay = unsafe { bindings::irqs_disabled() };
            drop(off);
            Some((stay, stats.packets() + stats.alone(), stats.alone()))
        })?;
        assert_eq!(outcome, Some((true, 4, 4)));
        Ok(())
    }

    /// Without a budget this could be hard interrupt context: nothing may go to the cache.
    #[test]
    fn netpoll_takes_the_ordinary_way() -> Result {
        let counts = free(0, 70, alloc)?;

        assert_eq!(counts.calls, [0; 7]);
        assert_eq!((counts.packets, counts.alone), (0, 70));
        Ok(())
    }
}
