// SPDX-License-Identifier: GPL-2.0

//! Tests of the objects that a cache retains.
//!
//! That bulk calls fill sheaves, and shrinking empties them, is for `slub_kunit` to test.

#[crate::prelude::kunit_tests(rust_slab_sheaves)]
mod cases {
    use crate::{
        prelude::*,
        slab::{
            Batch,
            Cache,
            Options, //
        }, //
    };

    #[test]
    fn the_sheaf_has_the_requested_capacity() -> Result {
        for (options, capacity) in [
            (Options::new(), 0),
            // Less its header: a list and two numbers of 32 bits, or with 32 bits five words.
            (
                Options::new().bulk(100),
                if cfg!(CONFIG_64BIT) { 196 } else { 195 },
            ),
            (Options::new().bulk(100).keep(120), 120),
            (Options::new().bulk(100).keep(1), 100),
            (Options::new().keep(130), 130),
        ] {
            assert_eq!(options.capacity()?, capacity);
        }
        Ok(())
    }

    #[test]
    fn shrinking_spares_objects_in_use() -> Result {
        const COUNT: usize = 256;

        let cache = Cache::<[u64; 29]>::new(c"rust_slab_shrink", COUNT)?;
        let mut batch = Batch::<_, COUNT>::new(&cache);
        batch.alloc(COUNT, GFP_KERNEL, |i| Ok::<_, Error>([i as u64; 29]))?;
        batch.clear();
        let object = cache.alloc([7; 29], GFP_KERNEL)?;

        cache.shrink();
        assert_eq!(*object, [7; 29]);
        drop(object);
        cache.shrink();

        // The cache is still usable.
        batch.alloc(COUNT, GFP_KERNEL, |i| Ok::<_, Error>([i as u64; 29]))?;
        assert!(batch.iter().enumerate().all(|(i, o)| o[28] == i as u64));
        Ok(())
    }
}
