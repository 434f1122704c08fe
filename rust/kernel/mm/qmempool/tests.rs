// SPDX-License-Identifier: GPL-2.0

//! Tests of pools.

#[cfg(CONFIG_QMEMPOOL_KUNIT_TEST)]
mod failing;
mod stress;

#[cfg(CONFIG_KUNIT)]
impl<T> super::QMemPool<T> {
    fn as_raw(&self) -> *mut crate::bindings::qmempool {
        self.pool.as_raw()
    }

    /// As `qmempool_stats()`.
    fn stats(&self) -> crate::bindings::qmempool_stats {
        self.pool.stats()
    }

    /// As memory reclaim.
    fn shrink(&self, objects: usize) -> usize {
        self.pool.shrink(objects)
    }
}

#[crate::prelude::kunit_tests(rust_qmempool)]
mod cases {
    use super::super::*;
    use crate::{
        bindings,
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            Arc, //
        }, //
    };

    type Value = [u64; 8];

    fn pool(options: Options) -> Result<QMemPool<Value>> {
        named(c"kunit", options)
    }

    fn named(name: &CStr, options: Options) -> Result<QMemPool<Value>> {
        QMemPool::new(name, Cache::new(c"rust_qmempool_test", 64)?, options)
    }

    /// A value that counts drops in a shared counter.
    struct Counted(Arc<Atomic<u32>>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.add(1u32, Relaxed);
        }
    }

    #[test]
    fn the_last_object_freed_is_the_first_allocated() -> Result {
        let pool = pool(Options::new())?;
        let guard = BhGuard::new().ok_or(EINVAL)?;
        let local = pool.local(guard.softirq());

        let object = local.alloc([7; 8], GFP_ATOMIC)?;
        assert_eq!(*object, [7; 8]);
        let place = core::ptr::from_ref(&*object);
        local.free(object);
        let again = local.alloc([8; 8], GFP_ATOMIC)?;
        assert!(core::ptr::eq(place, &*again));
        assert_eq!(*again, [8; 8]);

        // Dropped rather than freed to the pool: its memory goes to the slab.
        let before = pool.stats();
        drop(again);
        assert_eq!(pool.stats().held, before.held);
        Ok(())
    }

    #[test]
    fn magazines_go_to_the_depot_and_come_back() -> Result {
        let pool = pool(Options::new().magazine(4).depot(2))?;
        let guard = BhGuard::new().ok_or(EINVAL)?;
        let local = pool.local(guard.softirq());
        let mut objects = KVec::with_capacity(32, GFP_ATOMIC)?;

        for i in 0..32u64 {
            objects.push(local.alloc([i; 8], GFP_ATOMIC)?, GFP_ATOMIC)?;
        }
        for (i, object) in objects.iter().enumerate() {
            assert_eq!(**object, [i as u64; 8]);
        }
        let stats = pool.stats();
        assert_eq!((stats.refills, stats.hits, stats.held), (8, 32, 0));
        assert_eq!((stats.exchanges, stats.returns), (0, 0));

        // The CPU keeps 4 + 4, the depot takes 2 * 4, the slab 4 * 4.
        while let Some(object) = objects.pop() {
            local.free(object);
        }
        let stats = pool.stats();
        assert_eq!((stats.exchanges, stats.returns), (2, 4));
        assert_eq!(stats.held, 16);
        assert_eq!(stats.bytes, 16 * size_of::<Value>());

        // The pool serves all objects that it holds without the slab.
        for i in 0..16u64 {
            objects.push(local.alloc([i; 8], GFP_ATOMIC)?, GFP_ATOMIC)?;
        }
        let stats = pool.stats();
        assert_eq!((stats.refills, stats.exchanges, stats.held), (8, 4, 0));
        // All of them are distinct.
        for (i, object) in objects.iter().enumerate() {
            assert_eq!(**object, [i as u64; 8]);
        }
        Ok(())
    }

    #[test]
    fn a_pool_without_depot_works() -> Result {
        let pool = pool(Options::new().magazine(1).depot(0))?;
        let guard = BhGuard::new().ok_or(EINVAL)?;
        let local = pool.local(guard.softirq());

        let [a, b, c] = [1, 2, 3].map(|i| local.alloc([i; 8], GFP_ATOMIC));
        let (a, b, c) = (a?, b?, c?);
        assert_eq!((a[0], b[0], c[0]), (1, 2, 3));
        local.free(a);
        local.free(b);
        local.free(c);
        let stats = pool.stats();
        assert_eq!((stats.held, stats.exchanges, stats.returns), (2, 0, 1));
        Ok(())
    }

    #[test]
    fn sizes_are_checked() -> Result {
        assert_eq!(pool(Options::new().magazine(0)).err(), Some(EINVAL));
        let most = magazine::MAX;
        assert_eq!(pool(Options::new().magazine(most + 1)).err(), Some(EINVAL));
        assert!(pool(Options::new().magazine(most)).is_ok());
        assert_eq!(pool(Options::new().depot(usize::MAX)).err(), Some(EINVAL));
        Ok(())
    }

    #[test]
    fn values_are_dropped() -> Result {
        let drops = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let cache = Cache::new(c"rust_qmempool_drop", 8)?;
        let pool = QMemPool::new(c"kunit_drop", cache, Options::new())?;

        let one = pool.alloc(Counted(drops.clone()), GFP_KERNEL)?;
        let two = pool.alloc(Counted(drops.clone()), GFP_KERNEL)?;
        pool.free(one);
        assert_eq!(drops.load(Relaxed), 1);
        drop(two);
        assert_eq!(drops.load(Relaxed), 2);
        drop(pool);
        assert_eq!(drops.load(Relaxed), 2);
        Ok(())
    }

    #[test]
    fn objects_of_others_go_home() -> Result {
        let one = pool(Options::new())?;
        let two = named(c"kunit_two", Options::new())?;

        one.free(two.alloc([1; 8], GFP_KERNEL)?);
        assert_eq!(one.stats().held, 0);
        Ok(())
    }

    #[test]
    fn process_context_uses_the_pool_too() -> Result {
        let pool = pool(Options::new().magazine(8))?;

        for i in 0..100 {
            let object = pool.alloc([i; 8], GFP_KERNEL)?;
            assert_eq!(*object, [i; 8]);
            pool.free(object);
        }
        // This may have migrated: each CPU needs one refill.
        assert!(pool.stats().hits >= 100);
        assert!(pool.stats().held >= 8);
        Ok(())
    }

    // The allocator may sleep with it.
    #[cfg(not(CONFIG_PREEMPT_RT))]
    #[test]
    fn interrupts_may_be_disabled() -> Result {
        let pool = pool(Options::new().magazine(4).depot(1))?;

        {
            let _irq = crate::interrupt::local_interrupt_disable();
            // Without a guard, these calls bypass the pool.
            let object = pool.alloc([1; 8], GFP_ATOMIC)?;
            pool.free(object);
            assert_eq!(pool.shrink(1), 0);
        }
        assert_eq!(pool.stats().hits, 0);

        let guard = BhGuard::new().ok_or(EINVAL)?;
        let local = pool.local(guard.softirq());
        let _irq = crate::interrupt::local_interrupt_disable();
        // A token from before remains valid.
        let mut objects = KVec::with_capacity(32, GFP_ATOMIC)?;
        for i in 0..32 {
            objects.push(local.alloc([i; 8], GFP_ATOMIC)?, GFP_ATOMIC)?;
        }
        assert_eq!(pool.stats().refills, 8);
        while let Some(object) = objects.pop() {
            local.free(object);
        }
        assert_eq!(pool.stats().held, 12);
        Ok(())
    }

    #[test]
    fn pools_of_large_objects_are_small() -> Result {
        type Large = [u8; 1 << 16];
        let large = |magazine| {
            let cache = Cache::<Large>::new(c"rust_qmempool_large", 1)?;
            QMemPool::new(
                c"kunit_large",
                cache,
                Options::new().magazine(magazine).depot(0),
            )
        };
        // 128 KiB in a magazine.
        assert!(large(2).is_ok());
        assert!(large(3).is_err_and(|e| e == EINVAL));
        assert!(large(62).is_err_and(|e| e == EINVAL));
        Ok(())
    }

    #[cfg(CONFIG_MEMCG)]
    #[test]
    fn objects_that_are_charged_are_refused() {
        let flags = 1 << bindings::_slab_flag_bits__SLAB_ACCOUNT;
        let name = c"rust_qmempool_charged".as_char_ptr();
        let mut args: bindings::kmem_cache_args = pin_init::zeroed();
        // SAFETY: The name and the arguments are valid.
        let cache = unsafe { bindings::__kmem_cache_create_args(name, 8, &raw mut args, flags) };
        assert!(!cache.is_null());

        // SAFETY: The cache is valid, and has no objects. There is no pool, or it would warn.
        let pool = unsafe {
            let pool = bindings::qmempool_create(name, cache, 8, 8);
            bindings::kmem_cache_destroy(cache);
            pool
        };
        assert!(pool.is_null());
    }

    #[test]
    fn shrinking_empties_the_depot_and_the_store() -> Result {
        let pool = pool(Options::new().magazine(4).depot(4))?;
        let guard = BhGuard::new().ok_or(EINVAL)?;
        let local = pool.local(guard.softirq());
        let mut objects = KVec::with_capacity(24, GFP_ATOMIC)?;

        for i in 0..24 {
            objects.push(local.alloc([i; 8], GFP_ATOMIC)?, GFP_ATOMIC)?;
        }
        while let Some(object) = objects.pop() {
            local.free(object);
        }
        assert_eq!(pool.stats().held, 24);
        assert_eq!(pool.shrink(0), 0);
        // Shrinking frees whole magazines.
        assert_eq!(pool.shrink(5), 8);
        assert_eq!(pool.stats().held, 16);
        assert_eq!(pool.shrink(usize::MAX), 16);
        assert_eq!(pool.stats().held, 0);
        assert_eq!(pool.shrink(1), 0);
        // The magazines are still there, empty.
        for i in 0..24 {
            objects.push(local.alloc([i; 8], GFP_ATOMIC)?, GFP_ATOMIC)?;
        }
        while let Some(object) = objects.pop() {
            local.free(object);
        }
        assert_eq!(pool.stats().held, 24);
        Ok(())
    }

    #[test]
    fn the_store_of_a_dead_cpu_is_emptied() -> Result {
        let pool = pool(Options::new().magazine(4).depot(0))?;
        let guard = BhGuard::new().ok_or(EINVAL)?;
        let local = pool.local(guard.softirq());

        let [a, b] = [1, 2].map(|i| local.alloc([i; 8], GFP_ATOMIC));
        let (a, b) = (a?, b?);
        local.free(a);
        local.free(b);
        assert_eq!(pool.stats().held, 4);
        // SAFETY: This CPU has not stopped, but does not use the pool meanwhile.
        unsafe { pool.pool.cpu_dead(crate::cpu::CpuId::current()) };
        assert_eq!(pool.stats().held, 0);
        // The CPU could come back online.
        let object = local.alloc([3; 8], GFP_ATOMIC)?;
        assert_eq!(object[0], 3);
        local.free(object);
        Ok(())
    }

    #[test]
    fn bulk_calls_take_what_they_need() -> Result {
        let pool = pool(Options::new().magazine(4).depot(2))?;
        let raw = pool.as_raw();
        let guard = BhGuard::new().ok_or(EINVAL)?;
        let mut objects = [core::ptr::null_mut(); 30];

        for n in [0, 1, 3, 4, 5, 8, 9, 30] {
            // SAFETY: The pool is valid, bottom halves are disabled, and there is room.
            let got = unsafe {
                bindings::qmempool_alloc_bulk_softirq(
                    raw,
                    GFP_ATOMIC.as_raw(),
                    n as u32,
                    objects.as_mut_ptr(),
                )
            };
            assert_eq!(got as usize, n);
            for (i, object) in objects.iter().take(n).enumerate() {
                // SAFETY: These are objects of this size that are ours.
                unsafe { object.cast::<Value>().write([i as u64; 8]) };
            }
            for (i, object) in objects.iter().take(n).enumerate() {
                // SAFETY: As above.
                assert_eq!(unsafe { object.cast::<Value>().read() }, [i as u64; 8]);
            }
            // SAFETY: They come from the pool, and are not used any more.
            unsafe { bindings::qmempool_free_bulk_softirq(raw, n as u32, objects.as_mut_ptr()) };
        }
        drop(guard);
        // The maximum: two magazines of this CPU, and two in the depot.
        assert_eq!(pool.stats().held, 16);
        Ok(())
    }

    #[test]
    fn batches_are_filled_and_freed() -> Result {
        let drops = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let cache = Cache::new(c"rust_qmempool_batch", 8)?;
        let pool = QMemPool::new(c"kunit_batch", cache, Options::new().magazine(4).depot(1))?;
        let other = Cache::new(c"rust_qmempool_other", 8)?;
        let guard = BhGuard::new().ok_or(EINVAL)?;
        let local = pool.local(guard.softirq());
        let mut batch = Batch::<_, 16>::new(pool.cache());
        let mut foreign = Batch::<_, 16>::new(&other);
        let counted = |_| Counted(drops.clone());

        // Limited by the room of the batch, and refused for a batch of another cache.
        assert_eq!(local.alloc_bulk(&mut batch, 10, GFP_ATOMIC, counted), 10);
        assert_eq!(local.alloc_bulk(&mut batch, 10, GFP_ATOMIC, counted), 6);
        assert_eq!(local.alloc_bulk(&mut batch, 10, GFP_ATOMIC, counted), 0);
        assert_eq!(local.alloc_bulk(&mut foreign, 10, GFP_ATOMIC, counted), 0);
        assert_eq!((batch.len(), foreign.len()), (16, 0));

        foreign.alloc(2, GFP_ATOMIC, |i| Ok::<_, Error>(counted(i)))?;
        assert_eq!(local.free_bulk(&mut foreign, 2), 0);
        assert_eq!((foreign.len(), drops.load(Relaxed)), (2, 0));
        assert_eq!(local.free_bulk(&mut batch, 5), 5);
        assert_eq!((batch.len(), drops.load(Relaxed)), (11, 5));
        assert_eq!(local.free_bulk(&mut batch, 50), 11);
        assert_eq!(local.free_bulk(&mut batch, 50), 0);
        assert_eq!(drops.load(Relaxed), 16);
        assert_eq!(pool.stats().held, 12);
        Ok(())
    }

    #[test]
    fn c_callers_can_have_zeros() -> Result {
        let pool = pool(Options::new().magazine(4))?;
        let gfp = (GFP_ATOMIC | crate::alloc::flags::__GFP_ZERO).as_raw();
        let guard = BhGuard::new().ok_or(EINVAL)?;

        let object = pool
            .local(guard.softirq())
            .alloc([u64::MAX; 8], GFP_ATOMIC)?;
        pool.local(guard.softirq()).free(object);
        for _ in 0..2 {
            // SAFETY: The pool is valid, and bottom halves are disabled.
            let object = unsafe { bindings::__qmempool_alloc(pool.as_raw(), gfp) };
            assert!(!object.is_null());
            // SAFETY: This is an object of this size, and ours.
            assert_eq!(unsafe { object.cast::<Value>().read() }, [0; 8]);
            // SAFETY: As above. It is given up.
            unsafe {
                object.cast::<Value>().write([u64::MAX; 8]);
                bindings::__qmempool_free(pool.as_raw(), object);
            }
        }
        Ok(())
    }

    #[test]
    fn c_callers_make_pools() -> Result {
        let cache = Cache::<Value>::new(c"rust_qmempool_c", 16)?;
        let create = |cache, magazine| {
            // SAFETY: The name is a string, and the cache lives longer than the pool.
            unsafe { bindings::qmempool_create(c"kunit_c".as_char_ptr(), cache, magazine, 8) }
        };

        assert!(create(core::ptr::null_mut(), 8).is_null());
        assert!(create(cache.as_raw(), 0).is_null());
        // SAFETY: There is nothing to destroy.
        unsafe { bindings::qmempool_destroy(core::ptr::null_mut()) };

        let pool = create(cache.as_raw(), 8);
        assert!(!pool.is_null());
        let mut stats = bindings::qmempool_stats::default();
        // SAFETY: The pool is valid.
        unsafe { bindings::qmempool_stats(pool, &raw mut stats) };
        assert_eq!((stats.hits, stats.held), (0, 0));
        // SAFETY: The pool is valid, and not used any more.
        unsafe { bindings::qmempool_destroy(pool) };
        Ok(())
    }
}
