// SPDX-License-Identifier: GPL-2.0

//! Tests of values that are initialised in place and pinned.

#[crate::prelude::kunit_tests(rust_slab_in_place)]
mod cases {
    use crate::{
        new_spinlock,
        prelude::*,
        slab::{
            tests::counted::{
                counter,
                Counted, //
            },
            Cache,
            Object,
            PinnedBatch, //
        },
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            Arc,
            SpinLock, //
        },
    };

    /// A value that must not move, and records its address.
    #[pin_data]
    struct Place {
        counted: Counted,
        address: usize,
        #[pin]
        lock: SpinLock<usize>,
    }

    impl Place {
        fn new(drops: Arc<Atomic<u32>>, number: usize) -> impl PinInit<Self> {
            pin_init!(&this in Self {
                counted: Counted::new(drops, number),
                address: this.as_ptr().addr(),
                lock <- new_spinlock!(number),
            })
        }

        /// An initialiser that fails half-way if `fails` is set.
        fn maybe(drops: Arc<Atomic<u32>>, number: usize, fails: bool) -> impl PinInit<Self, Error> {
            try_pin_init!(&this in Self {
                counted: Counted::new(drops, number),
                address: if fails {
                    return Err(EBUSY);
                } else {
                    this.as_ptr().addr()
                },
                lock <- new_spinlock!(number),
            })
        }

        fn is_right(&self, number: usize) -> bool {
            self.counted.number == number
                && *self.lock.lock() == number
                && self.address == core::ptr::from_ref(self).addr()
        }
    }

    #[test]
    fn single_objects() -> Result {
        let drops = counter()?;
        let cache = Cache::<Place>::new(c"rust_slab_pin", 0)?;

        let object = cache.alloc_pin_init(Place::new(drops.clone(), 5), GFP_KERNEL)?;
        assert!(object.is_right(5));
        let result = cache.alloc_pin_init(Place::maybe(drops.clone(), 6, true), GFP_KERNEL);
        assert!(result.is_err_and(|error| error == EBUSY));
        assert_eq!(drops.load(Relaxed), 1);
        drop(object);
        assert_eq!(drops.load(Relaxed), 2);

        let plain = Cache::new(c"rust_slab_init", 0)?;
        let init = || Counted::init(drops.clone(), 7);
        let object = plain.alloc_init(init(), GFP_KERNEL)?;
        assert_eq!(object.number, 7);
        assert_eq!(Object::into_pin(object).number, 7);
        assert_eq!(drops.load(Relaxed), 3);
        Ok(())
    }

    #[test]
    fn batches() -> Result {
        let drops = counter()?;
        let cache = Cache::<Place>::new(c"rust_slab_pins", 8)?;
        let other = Cache::<Place>::new(c"rust_slab_pins2", 8)?;
        let mut batch = PinnedBatch::<_, 8>::new(&cache);

        batch.alloc(6, GFP_KERNEL, |i| Place::new(drops.clone(), i))?;
        assert_eq!((batch.len(), batch.room(), batch.is_empty()), (6, 2, false));
        assert!(batch.iter().enumerate().all(|(i, place)| place.is_right(i)));
        for (i, place) in batch.iter_mut().enumerate() {
            *place.lock.lock() += 10;
            *place.into_ref().lock.lock() -= 10;
            assert!(i < 6);
        }

        let last = batch.pop().ok_or(EINVAL)?;
        assert!(last.is_right(5));
        assert_eq!(batch.len(), 5);
        assert!(batch.push(last).is_ok());
        let stranger = other.alloc_pin_init(Place::new(drops.clone(), 9), GFP_KERNEL)?;
        let back = batch.push(stranger).err().ok_or(EINVAL)?;
        assert!(back.is_right(9));
        batch.gather(back);
        assert_eq!(drops.load(Relaxed), 1);

        // Moving objects between batches does not move values.
        let mut more = PinnedBatch::<_, 4>::new(&cache);
        assert_eq!(more.append(&mut batch), 4);
        assert!((0..4).all(|i| more.pop().is_some_and(|place| place.is_right(5 - i))));
        assert_eq!(drops.load(Relaxed), 1 + 4);
        batch.clear();
        assert!(batch.is_empty() && batch.pop().is_none());
        assert_eq!(drops.load(Relaxed), 1 + 6);
        Ok(())
    }

    #[test]
    fn a_failure_leaks_nothing() -> Result {
        let drops = counter()?;
        let cache = Cache::<Place>::new(c"rust_slab_pin_fail", 16)?;
        let mut batch = PinnedBatch::<_, 16>::new(&cache);

        batch.alloc(3, GFP_KERNEL, |i| Place::new(drops.clone(), i))?;
        for fails in [0, 1, 12] {
            drops.store(0, Relaxed);
            let result = batch.alloc(13, GFP_KERNEL, |i| {
                Place::maybe(drops.clone(), 3 + i, i == fails)
            });
            assert_eq!(result, Err(EBUSY));
            // The complete ones, and the initialised part of the failed one.
            assert_eq!(drops.load(Relaxed) as usize, fails + 1);
            assert_eq!(batch.len(), 3);
        }
        assert_eq!(
            batch.alloc(14, GFP_KERNEL, |i| Place::new(drops.clone(), i)),
            Err(ENOSPC)
        );
        batch.alloc(13, GFP_KERNEL, |i| Place::new(drops.clone(), 3 + i))?;
        assert!(batch.iter().enumerate().all(|(i, place)| place.is_right(i)));
        drops.store(0, Relaxed);
        drop(batch);
        assert_eq!(drops.load(Relaxed), 16);
        Ok(())
    }
}
