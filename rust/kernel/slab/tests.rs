// SPDX-License-Identifier: GPL-2.0

//! Tests of slab caches.

mod counted;
mod failing;
mod sheaves;
mod stress;

#[crate::prelude::kunit_tests(rust_slab)]
mod cases {
    use super::{
        super::*,
        counted::{
            counter,
            Counted, //
        }, //
    };
    use crate::sync::atomic::Relaxed;

    #[test]
    fn objects_hold_values() -> Result {
        let drops = counter()?;
        let cache = Cache::new(c"rust_slab_values", 8)?;

        let mut one = cache.alloc(Counted::new(drops.clone(), 1), GFP_KERNEL)?;
        let two = cache.alloc(Counted::new(drops.clone(), 2), GFP_KERNEL)?;
        one.number += 10;
        assert_eq!((one.number, two.number), (11, 2));
        drop(one);
        assert_eq!(drops.load(Relaxed), 1);
        drop(two);
        assert_eq!(drops.load(Relaxed), 2);
        Ok(())
    }

    #[test]
    fn objects_are_aligned() -> Result {
        #[repr(align(256))]
        struct Aligned(u8);

        let cache = Cache::new(c"rust_slab_aligned", 8)?;
        let mut batch = Batch::<_, 8>::new(&cache);
        batch.alloc(8, GFP_KERNEL, |i| Ok::<_, Error>(Aligned(i as u8)))?;
        for (i, object) in batch.iter().enumerate() {
            assert_eq!(core::ptr::from_ref(object).addr() % 256, 0);
            assert_eq!(usize::from(object.0), i);
        }
        Ok(())
    }

    #[test]
    fn types_without_size_are_objects_too() -> Result {
        let cache = Cache::new(c"rust_slab_unit", 8)?;
        let mut batch = Batch::<(), 4>::new(&cache);

        batch.alloc(4, GFP_KERNEL, |_| Ok::<_, Error>(()))?;
        assert_eq!(batch.iter().count(), 4);
        Ok(())
    }

    #[test]
    fn a_batch_owns_its_objects() -> Result {
        let drops = counter()?;
        let cache = Cache::new(c"rust_slab_batch", 32)?;

        // More than twice the announced size as well: slower, but allowed.
        for count in [1, 2, 32, 80] {
            drops.store(0, Relaxed);
            let mut batch = Batch::<_, 80>::new(&cache);
            batch.alloc(count, GFP_KERNEL, |i| {
                Ok::<_, Error>(Counted::new(drops.clone(), i))
            })?;
            assert_eq!(batch.len(), count);
            batch.iter_mut().for_each(|object| object.number *= 3);
            assert!(batch
                .iter()
                .enumerate()
                .all(|(i, object)| object.number == 3 * i));
            assert_eq!(drops.load(Relaxed), 0);
            drop(batch);
            assert_eq!(drops.load(Relaxed) as usize, count);
        }
        Ok(())
    }

    #[test]
    fn a_full_batch_refuses_objects() -> Result {
        let cache = Cache::<u64>::new(c"rust_slab_room", 4)?;
        let mut batch = Batch::<_, 4>::new(&cache);
        let mut calls = 0;

        batch.alloc(3, GFP_KERNEL, |i| Ok::<_, Error>(i as u64))?;
        let result = batch.alloc(2, GFP_KERNEL, |_| {
            calls += 1;
            Ok::<_, Error>(0)
        });
        assert_eq!(result, Err(ENOSPC));
        assert_eq!(calls, 0);
        assert_eq!(batch.len(), 3);
        batch.alloc(0, GFP_KERNEL, |_| Err::<u64, _>(EINVAL))?;

        assert!(batch.push(cache.alloc(3, GFP_KERNEL)?).is_ok());
        let back = batch.push(cache.alloc(4, GFP_KERNEL)?);
        assert!(back.is_err_and(|object| *object == 4));
        assert!(batch.iter().copied().eq(0..4));
        Ok(())
    }

    #[test]
    fn a_failing_initializer_leaks_nothing() -> Result {
        let drops = counter()?;
        let cache = Cache::new(c"rust_slab_fail", 16)?;
        let mut batch = Batch::<_, 16>::new(&cache);

        batch.alloc(2, GFP_KERNEL, |i| {
            Ok::<_, Error>(Counted::new(drops.clone(), i))
        })?;
        let result = batch.alloc(10, GFP_KERNEL, |i| {
            if i == 5 {
                Err(EBUSY)
            } else {
                Ok(Counted::new(drops.clone(), 100 + i))
            }
        });
        assert_eq!(result, Err(EBUSY));
        assert_eq!(drops.load(Relaxed), 5);
        assert_eq!(batch.len(), 2);
        assert!(batch.iter().map(|object| object.number).eq(0..2));

        // The memory returned to the cache, and the batch is still usable.
        batch.alloc(14, GFP_KERNEL, |i| {
            Ok::<_, Error>(Counted::new(drops.clone(), 2 + i))
        })?;
        assert!(batch.iter().map(|object| object.number).eq(0..16));
        drop(batch);
        assert_eq!(drops.load(Relaxed), 5 + 16);
        Ok(())
    }

    #[test]
    fn objects_move_between_batch_and_owner() -> Result {
        let drops = counter()?;
        let cache = Cache::new(c"rust_slab_move", 4)?;
        let other = Cache::new(c"rust_slab_other", 4)?;
        let mut batch = Batch::<_, 4>::new(&cache);

        batch.alloc(2, GFP_KERNEL, |i| {
            Ok::<_, Error>(Counted::new(drops.clone(), i))
        })?;
        let last = batch.pop().ok_or(EINVAL)?;
        assert_eq!(last.number, 1);
        assert_eq!(batch.len(), 1);
        batch.clear();
        assert_eq!(drops.load(Relaxed), 1);
        assert!(batch.pop().is_none());
        assert!(batch.push(last).is_ok());

        // Memory of one cache must not be freed to another.
        let stranger = other.alloc(Counted::new(drops.clone(), 7), GFP_KERNEL)?;
        assert!(batch.push(stranger).is_err());
        assert_eq!(drops.load(Relaxed), 2);
        drop(batch);
        assert_eq!(drops.load(Relaxed), 3);
        Ok(())
    }

    #[test]
    fn objects_are_gathered() -> Result {
        let drops = counter()?;
        let cache = Cache::new(c"rust_slab_gather", 4)?;
        let other = Cache::new(c"rust_slab_gather2", 4)?;
        let mut batch = Batch::<_, 4>::new(&cache);
        let mut room = batch.room();
        assert_eq!(room, 4);

        for i in 0..9 {
            batch.gather(cache.alloc(Counted::new(drops.clone(), i), GFP_KERNEL)?);
            room = if room == 0 { 3 } else { room - 1 };
            assert_eq!(batch.room(), room);
            // A full batch is freed at once.
            assert_eq!(drops.load(Relaxed) as usize, i / 4 * 4);
        }
        assert!(batch.iter().map(|object| object.number).eq(8..9));

        // An object of another cache is freed there, at once.
        batch.gather(other.alloc(Counted::new(drops.clone(), 9), GFP_KERNEL)?);
        assert_eq!(drops.load(Relaxed), 9);
        assert_eq!(batch.len(), 1);

        let mut none = Batch::<_, 0>::new(&cache);
        none.gather(cache.alloc(Counted::new(drops.clone(), 10), GFP_KERNEL)?);
        assert_eq!(drops.load(Relaxed), 10);
        Ok(())
    }

    // The allocator may sleep with it.
    #[cfg(not(CONFIG_PREEMPT_RT))]
    #[test]
    fn works_with_interrupts_disabled() -> Result {
        // Within the capacity of the sheaf and beyond it, both ways.
        for bulk in [0, 200] {
            let cache = Cache::<[u64; 64]>::new(c"rust_slab_irq", bulk)?;
            let mut batch = Batch::<_, 200>::new(&cache);

            for count in [1, 32, 200] {
                let irq = crate::interrupt::local_interrupt_disable();
                let result = batch.alloc(count, GFP_ATOMIC, |i| Ok::<_, Error>([i as u64; 64]));
                let right = batch.iter().enumerate().all(|(i, o)| o[7] == i as u64);
                batch.clear();
                drop(irq);

                assert_eq!(result, Ok(()));
                assert!(right);
                assert!(batch.is_empty());
            }
        }
        Ok(())
    }

    #[test]
    fn refuses_sizes_that_do_not_fit() {
        assert!(Cache::<u8>::new(c"rust_slab_huge", usize::MAX).is_err_and(|e| e == EINVAL));
        // The allocator would try, and warn.
        for most in [1 << 20, u32::MAX as usize, 1 << (usize::BITS - 1)] {
            assert!(Cache::<u8>::new(c"rust_slab_big", most).is_err_and(|e| e == EINVAL));
        }
    }

    #[test]
    fn refuses_a_cache_without_a_name() {
        assert!(Cache::<u64>::new(c"", 8).is_err_and(|e| e == EINVAL));
    }

    #[test]
    fn refuses_objects_that_are_too_large() {
        #[repr(align(0x1000_0000))]
        struct Aligned;

        const MOST: usize = bindings::KMALLOC_MAX_SIZE as usize;

        // Debugging options may add to the size.
        assert!(Cache::<[u8; MOST / 2]>::new(c"rust_slab_most", 0).is_ok());
        assert!(Cache::<[u8; MOST + 1]>::new(c"rust_slab_more", 0).is_err_and(|e| e == EINVAL));
        // Rounded up in 32 bits, this wraps to zero.
        // No type is that large elsewhere.
        #[cfg(CONFIG_64BIT)]
        assert!(Cache::<[u8; 0xffff_fffe]>::new(c"rust_slab_wrap", 0).is_err_and(|e| e == EINVAL));
        assert!(Cache::<Aligned>::new(c"rust_slab_align", 0).is_err_and(|e| e == EINVAL));
    }

    #[test]
    fn options_reach_the_allocator() -> Result {
        let options = Options::new().hwcache_align();
        let cache = Cache::<[u8; 100]>::with_options(c"rust_slab_options", options)?;
        let mut batch = Batch::<_, 16>::new(&cache);

        batch.alloc(16, GFP_KERNEL, |i| Ok::<_, Error>([i as u8; 100]))?;
        let line = 1 << bindings::L1_CACHE_SHIFT;
        assert!(batch
            .iter()
            .all(|object| core::ptr::from_ref(object).addr() % line == 0));
        Ok(())
    }
}
