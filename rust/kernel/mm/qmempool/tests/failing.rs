// SPDX-License-Identifier: GPL-2.0

//! Tests of pools with failing allocations.

#[crate::prelude::kunit_tests(rust_qmempool_failing)]
mod cases {
    use super::super::super::*;
    use crate::{
        alloc::flags::__GFP_ZERO,
        bindings,
        percpu::possible_cpus,
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            Arc, //
        }, //
    };

    /// A value that counts drops in a shared counter.
    struct Counted(Arc<Atomic<u32>>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.add(1u32, Relaxed);
        }
    }

    fn pool<T>(options: Options) -> Result<QMemPool<T>> {
        QMemPool::new(
            c"kunit_failing",
            Cache::new(c"rust_qmempool_failing", 64)?,
            options,
        )
    }

    /// Calls `body`, in which the allocation `step` of the creation of a pool fails.
    fn at_step<R>(step: usize, body: impl FnOnce() -> R) -> R {
        shortage::STEP.store(step, Relaxed);
        let result = body();
        shortage::STEP.store(0, Relaxed);
        result
    }

    /// Calls `body` with a shortage of `cache`.
    fn short<R>(cache: *mut bindings::kmem_cache, left: usize, body: impl FnOnce() -> R) -> R {
        shortage::begin(cache, left);
        let result = body();
        shortage::begin(core::ptr::null_mut(), 0);
        result
    }

    #[test]
    fn creating_a_pool_can_fail_at_each_step() -> Result {
        let options = Options::new().magazine(4).depot(3);
        // Two magazines for each CPU and three for the depot, the per-CPU memory, two queues, the
        // pool itself, and attaching it (shrinker, CPU hotplug).
        let steps = 2 * possible_cpus().count() + 3 + 5;

        for step in 1..=steps {
            let result = at_step(step, || pool::<u64>(options));
            assert_eq!(result.err(), Some(ENOMEM));
        }
        // There is no further step, and the failures have left nothing behind.
        let pool = at_step(steps + 1, || pool::<u64>(options))?;
        let object = pool.alloc(7, GFP_KERNEL)?;
        assert_eq!(*object, 7);
        Ok(())
    }

    #[test]
    fn single_objects_until_memory_runs_out() -> Result {
        let drops = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let pool = pool(Options::new().magazine(4))?;
        let cache = pool.cache().as_raw();
        let counted = || Counted(drops.clone());
        let guard = BhGuard::new().ok_or(EINVAL)?;
        let local = pool.local(guard.softirq());

        let (one, two, none) = short(cache, 2, || {
            let alloc = || local.alloc(counted(), GFP_ATOMIC);
            (alloc(), alloc(), alloc())
        });
        assert!(one.is_ok() && two.is_ok() && none.is_err());
        // The value of the failed call was dropped.
        assert_eq!(drops.load(Relaxed), 1);
        // Each object was allocated by itself, and none is left over.
        assert_eq!(pool.stats().held, 0);

        // Freed objects are available again, without the slab.
        local.free(one?);
        let again = short(cache, 0, || local.alloc(counted(), GFP_ATOMIC));
        assert!(again.is_ok());
        drop((again, two));
        assert_eq!(drops.load(Relaxed), 4);
        // The slab has memory again.
        drop(local.alloc(counted(), GFP_ATOMIC)?);
        assert_eq!(pool.stats().held, 3);
        Ok(())
    }

    #[test]
    fn batches_are_filled_partially() -> Result {
        let drops = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let pool = pool(Options::new().magazine(4))?;
        let cache = pool.cache().as_raw();
        let mut batch = Batch::<_, 16>::new(pool.cache());
        let guard = BhGuard::new().ok_or(EINVAL)?;
        let local = pool.local(guard.softirq());

        for (left, expected) in [(0, 0), (3, 3), (1, 1), (0, 0)] {
            let before = batch.len();
            let mut calls = 0;
            let got = short(cache, left, || {
                local.alloc_bulk(&mut batch, 10, GFP_ATOMIC, |_| {
                    calls += 1;
                    Counted(drops.clone())
                })
            });
            assert_eq!((got, calls), (expected, expected));
            assert_eq!(batch.len(), before + expected);
        }
        assert_eq!(drops.load(Relaxed), 0);
        assert_eq!(local.free_bulk(&mut batch, 16), 4);
        assert_eq!(drops.load(Relaxed), 4);
        Ok(())
    }

    #[test]
    fn process_context_falls_back_to_the_slab() -> Result {
        let pool = pool::<u64>(Options::new().magazine(4))?;

        // The pool cannot wait for memory, but with bottom halves enabled the slab can.
        let object = short(pool.cache().as_raw(), 0, || pool.alloc(7, GFP_KERNEL));
        assert_eq!(*object?, 7);
        assert_eq!(pool.stats().hits, 0);
        Ok(())
    }

    #[test]
    fn pools_never_wait_for_memory() {
        let bit = |number: u32| -> bindings::gfp_t { 1 << number };
        let reclaim = bit(bindings::___GFP_DIRECT_RECLAIM_BIT);
        let no_fail = bit(bindings::___GFP_NOFAIL_BIT);
        let all = GFP_KERNEL.as_raw() | no_fail | __GFP_ZERO.as_raw();

        let gfp = slab::without_waiting(all);
        assert_eq!(gfp & (reclaim | no_fail | __GFP_ZERO.as_raw()), 0);
        // Waking kswapd is allowed.
        let wake = bit(bindings::___GFP_KSWAPD_RECLAIM_BIT);
        assert_ne!(gfp & wake, 0);
    }
}
