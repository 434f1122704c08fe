// SPDX-License-Identifier: GPL-2.0

//! Tests of the objects that a cache retains.
//!
//! KASAN holds freed objects in a quarantine, and caches with debugging enabled have no sheaves.

#[cfg(all(CONFIG_SLUB_DEBUG, not(CONFIG_SLUB_DEBUG_ON), not(CONFIG_KASAN)))]
#[crate::prelude::kunit_tests(rust_slab_sheaves)]
mod cases {
    use crate::{
        cpu,
        new_spinlock,
        prelude::*,
        slab::{
            Batch,
            Cache,
            Footprint,
            Options, //
        }, //
    };

    type Element = [u64; 29];
    const MOST: usize = 256;

    fn footprint(cache: &Cache<Element>) -> Result<Footprint> {
        cache.footprint().ok_or(EOPNOTSUPP)
    }

    /// The number of objects in a sheaf that was filled for one of them.
    fn capacity(options: Options) -> Result<usize> {
        let cache = Cache::with_options(c"rust_slab_keep", options)?;
        // A single allocation fills a sheaf, and takes its object from there.
        let object = cache.alloc([0; 29], GFP_KERNEL)?;
        let objects = footprint(&cache)?.objects;

        drop(object);
        Ok(objects)
    }

    /// Allocates and frees one batch on one CPU.
    fn cycle(cache: &Cache<Element>, count: usize) -> Result {
        let mut batch = Batch::<_, MOST>::new(cache);
        // A spinlock keeps the task on its CPU.
        pin_init::stack_pin_init!(let lock = new_spinlock!(()));
        let guard = lock.lock();
        let result = batch.alloc(count, GFP_ATOMIC, |i| Ok::<_, Error>([i as u64; 29]));
        batch.clear();
        drop(guard);
        result
    }

    #[test]
    fn a_whole_batch_stays_in_the_sheaf() -> Result {
        let cache = Cache::new(c"rust_slab_cliff", MOST)?;

        for count in 1..=MOST {
            cache.shrink();
            cycle(&cache, count)?;
            // No object went back to the slabs: the sheaf serves all of the next batch.
            assert_eq!(footprint(&cache)?.objects, count);
            cycle(&cache, count)?;
            cycle(&cache, count)?;
            let after = footprint(&cache)?;
            assert!(after.objects >= count);
            assert!(after.objects <= count * cpu::nr_cpu_ids() as usize);
        }
        Ok(())
    }

    #[test]
    fn the_sheaf_has_the_requested_capacity() -> Result {
        // That of the allocator, which has room for more pointers if they have 32 bits.
        let least = capacity(Options::new())?;

        for (options, keep) in [
            // Less its header: a list and two numbers of 32 bits, or with 32 bits five words.
            (
                Options::new().bulk(100),
                if cfg!(CONFIG_64BIT) { 196 } else { 195 },
            ),
            (Options::new().bulk(100).keep(120), 120),
            (Options::new().bulk(100).keep(1), 100),
            (Options::new().keep(130), 130),
            (Options::new().keep(1), least),
        ] {
            assert_eq!(capacity(options)?, keep.max(least));
        }
        Ok(())
    }

    #[test]
    fn a_batch_that_exceeds_the_sheaf_stays_in_several() -> Result {
        let cpus = cpu::nr_cpu_ids() as usize;
        let cache = Cache::with_options(c"rust_slab_small", Options::new())?;

        for _ in 0..3 {
            cycle(&cache, MOST)?;
            let kept = footprint(&cache)?.objects;
            assert!((MOST..=MOST * cpus).contains(&kept));
        }
        Ok(())
    }

    #[test]
    fn shrinking_empties_the_sheaves() -> Result {
        let cache = Cache::new(c"rust_slab_shrink", MOST)?;

        assert_eq!(footprint(&cache)?, Footprint::default());
        cycle(&cache, MOST)?;
        let mut batch = Batch::<_, MOST>::new(&cache);
        let object = cache.alloc([7; 29], GFP_KERNEL)?;
        let kept = footprint(&cache)?;
        assert!(kept.objects >= MOST);
        assert!(kept.bytes >= kept.objects * size_of::<Element>());

        cache.shrink();
        let left = footprint(&cache)?;
        assert_eq!((left.objects, left.slabs), (1, 1));
        assert!(left.bytes < kept.bytes);
        assert_eq!(*object, [7; 29]);
        drop(object);
        cache.shrink();
        assert_eq!(footprint(&cache)?, Footprint::default());

        // The cache is still usable.
        batch.alloc(MOST, GFP_KERNEL, |i| Ok::<_, Error>([i as u64; 29]))?;
        assert!(batch.iter().enumerate().all(|(i, o)| o[28] == i as u64));
        Ok(())
    }

    #[test]
    fn single_calls_keep_no_more_than_documented() -> Result {
        let options = Options::new().bulk(64).keep(64);
        let (keep, cpus) = (capacity(options.clone())?, cpu::nr_cpu_ids() as usize);
        let cache = Cache::with_options(c"rust_slab_mixed", options)?;
        let mut objects = KVec::with_capacity(4000, GFP_KERNEL)?;

        for i in 0..4000 {
            objects.push(cache.alloc([i; 29], GFP_KERNEL)?, GFP_KERNEL)?;
        }
        drop(objects);
        // Two sheaves per CPU, and up to ten for the node. Migrating to another CPU adds one.
        assert!(footprint(&cache)?.objects <= keep * (2 * cpus + 10 + cpus));
        cache.shrink();
        assert_eq!(footprint(&cache)?.objects, 0);
        Ok(())
    }
}
