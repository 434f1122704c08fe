// SPDX-License-Identifier: GPL-2.0

//! Tests with allocations that fail.

#[cfg(CONFIG_FAILSLAB)]
#[crate::prelude::kunit_tests(rust_slab_failing)]
mod cases {
    use crate::{
        alloc::flags::__GFP_NOWARN,
        bindings,
        prelude::*,
        slab::{
            tests::counted::{
                counter,
                Counted, //
            },
            Batch,
            Cache, //
        },
        sync::atomic::Relaxed, //
    };

    /// Runs `body` so that the `nth` allocation in it that may fail does so.
    fn failing<R>(nth: u32, body: impl FnOnce() -> R) -> R {
        // SAFETY: This is the current task, and only the task itself sets this field.
        let field = unsafe { &raw mut (*bindings::get_current()).fail_nth };

        // SAFETY: As above; only the task itself uses the field for fault injection.
        unsafe { field.write_volatile(nth) };
        let result = body();
        // SAFETY: As above.
        unsafe { field.write_volatile(0) };
        result
    }

    /// Fault injection only hits allocations that cannot sleep.
    fn flags() -> crate::alloc::Flags {
        GFP_NOWAIT | __GFP_NOWARN
    }

    #[test]
    fn single_objects() -> Result {
        let drops = counter()?;
        let cache = Cache::new(c"rust_slab_fail_one", 0)?;

        assert!(failing(1, || cache.alloc(Counted::new(drops.clone(), 1), flags())).is_err());
        // The value was moved into the call, and dropped there.
        assert_eq!(drops.load(Relaxed), 1);
        Ok(())
    }

    #[test]
    fn batches() -> Result {
        let drops = counter()?;
        let cache = Cache::new(c"rust_slab_fail_many", 8)?;
        let mut batch = Batch::<_, 8>::new(&cache);
        let mut calls = 0;

        batch.alloc(2, GFP_KERNEL, |i| {
            Ok::<_, Error>(Counted::new(drops.clone(), i))
        })?;
        for count in [1, 2, 6] {
            let result = failing(1, || {
                batch.alloc(count, flags(), |i| {
                    calls += 1;
                    Ok::<_, Error>(Counted::new(drops.clone(), i))
                })
            });
            assert_eq!(result, Err(ENOMEM));
        }
        assert_eq!((calls, batch.len(), drops.load(Relaxed)), (0, 2, 0));
        Ok(())
    }

    // The allocator may sleep with it.
    #[cfg(not(CONFIG_PREEMPT_RT))]
    #[test]
    fn with_interrupts_disabled() -> Result {
        let drops = counter()?;
        let cache = Cache::new(c"rust_slab_fail_irq", 8)?;
        let mut batch = Batch::<_, 8>::new(&cache);

        let irq = crate::interrupt::local_interrupt_disable();
        let result = failing(1, || {
            batch.alloc(8, flags(), |i| {
                Ok::<_, Error>(Counted::new(drops.clone(), i))
            })
        });
        drop(irq);
        assert_eq!((result, batch.len()), (Err(ENOMEM), 0));
        assert_eq!(drops.load(Relaxed), 0);
        Ok(())
    }
}
