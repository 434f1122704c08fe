// SPDX-License-Identifier: GPL-2.0

//! Tests of the objects that a cache retains. That bulk calls fill sheaves is for `slub_kunit`.

#[crate::prelude::kunit_tests(rust_slab_sheaves)]
mod cases {
    use crate::{
        prelude::*,
        slab::Options, //
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
            // Not less than a call, whatever the header takes.
            (Options::new().bulk(1), 1),
        ] {
            assert_eq!(options.capacity()?, capacity);
        }
        Ok(())
    }
}
