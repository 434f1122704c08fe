// SPDX-License-Identifier: GPL-2.0

//! Tests of slab caches.

#[crate::prelude::kunit_tests(rust_slab)]
mod cases {
    use super::super::*;
    use crate::{
        interrupt::local_interrupt_disable,
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            Arc, //
        }, //
    };

    /// A value that counts how often values like it were dropped.
    struct Counted(Arc<Atomic<u32>>, usize);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.add(1u32, Relaxed);
        }
    }

    fn counter() -> Result<Arc<Atomic<u32>>> {
        Ok(Arc::new(Atomic::new(0), GFP_KERNEL)?)
    }

    #[test]
    fn objects_hold_values() -> Result {
        let drops = counter()?;
        let cache = Cache::new(c"rust_slab_values", 8)?;

        let mut one = cache.alloc(Counted(drops.clone(), 1), GFP_KERNEL)?;
        let two = cache.alloc(Counted(drops.clone(), 2), GFP_KERNEL)?;
        one.1 += 10;
        assert_eq!((one.1, two.1), (11, 2));
        drop(one);
        assert_eq!(drops.load(Relaxed), 1);
        let value = Object::into_inner(two);
        assert_eq!(drops.load(Relaxed), 1);
        assert_eq!(value.1, 2);
        drop(value);
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
        let cache = Cache::new(c"rust_slab_batch", 64)?;

        // Twice what a bulk call was going to be, too: slower, but not wrong.
        for count in [1, 2, 64, 200] {
            drops.store(0, Relaxed);
            let mut batch = Batch::<_, 200>::new(&cache);
            batch.alloc(count, GFP_KERNEL, |i| {
                Ok::<_, Error>(Counted(drops.clone(), i))
            })?;
            assert_eq!(batch.len(), count);
            batch.iter_mut().for_each(|object| object.1 *= 3);
            assert!(batch
                .iter()
                .enumerate()
                .all(|(i, object)| object.1 == 3 * i));
            assert_eq!(drops.load(Relaxed), 0);
            drop(batch);
            assert_eq!(drops.load(Relaxed) as usize, count);
        }
        Ok(())
    }

    #[test]
    fn a_batch_has_room_for_so_many_only() -> Result {
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

        batch.alloc(2, GFP_KERNEL, |i| Ok::<_, Error>(Counted(drops.clone(), i)))?;
        let result = batch.alloc(10, GFP_KERNEL, |i| {
            if i == 5 {
                Err(EBUSY)
            } else {
                Ok(Counted(drops.clone(), 100 + i))
            }
        });
        assert_eq!(result, Err(EBUSY));
        assert_eq!(drops.load(Relaxed), 5);
        assert_eq!(batch.len(), 2);
        assert!(batch.iter().map(|object| object.1).eq(0..2));

        // The memory is back in the cache, and the batch can go on.
        batch.alloc(14, GFP_KERNEL, |i| {
            Ok::<_, Error>(Counted(drops.clone(), 2 + i))
        })?;
        assert!(batch.iter().map(|object| object.1).eq(0..16));
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

        batch.alloc(2, GFP_KERNEL, |i| Ok::<_, Error>(Counted(drops.clone(), i)))?;
        let last = batch.pop().ok_or(EINVAL)?;
        assert_eq!(last.1, 1);
        assert_eq!(batch.len(), 1);
        batch.clear();
        assert_eq!(drops.load(Relaxed), 1);
        assert!(batch.pop().is_none());
        assert!(batch.push(last).is_ok());

        // Memory of one cache must not be freed to another.
        let stranger = other.alloc(Counted(drops.clone(), 7), GFP_KERNEL)?;
        assert!(batch.push(stranger).is_err());
        assert_eq!(drops.load(Relaxed), 2);
        drop(batch);
        assert_eq!(drops.load(Relaxed), 3);
        Ok(())
    }

    #[test]
    fn works_with_interrupts_disabled() -> Result {
        let cache = Cache::<[u64; 8]>::new(c"rust_slab_irq", 32)?;
        let mut batch = Batch::<_, 32>::new(&cache);

        let irq = local_interrupt_disable();
        let result = batch.alloc(32, GFP_ATOMIC, |i| Ok::<_, Error>([i as u64; 8]));
        let right = batch.iter().enumerate().all(|(i, o)| o[7] == i as u64);
        batch.clear();
        drop(irq);

        assert_eq!(result, Ok(()));
        assert!(right);
        assert!(batch.is_empty());
        Ok(())
    }

    #[test]
    fn refuses_sizes_that_do_not_fit() {
        assert!(Cache::<u8>::new(c"rust_slab_huge", usize::MAX).is_err_and(|e| e == EINVAL));
        assert!(Cache::<u8>::new(c"rust_slab_big", 1 << 40).is_err());
    }
}
