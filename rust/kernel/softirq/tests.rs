// SPDX-License-Identifier: GPL-2.0

//! Tests of bottom halves.

#[crate::prelude::kunit_tests(rust_softirq)]
mod cases {
    use super::super::*;
    use crate::{
        impl_has_work,
        interrupt::local_interrupt_disable,
        new_work,
        prelude::*,
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            Arc, //
        },
        workqueue::{
            self,
            Work,
            WorkItem, //
        }, //
    };

    fn softirqs_wait() -> bool {
        // SAFETY: This only reads a counter.
        unsafe { bindings::softirq_count() != 0 }
    }

    #[cfg(not(CONFIG_PREEMPT_RT))]
    fn interrupts_are_off() -> bool {
        // SAFETY: This only reads a flag.
        unsafe { bindings::irqs_disabled() }
    }

    /// Counts how often a softirq has run.
    #[pin_data]
    struct Runs {
        count: Atomic<u32>,
        #[pin]
        work: Work<Self>,
    }

    impl_has_work! {
        impl HasWork<Self> for Runs { self.work }
    }

    impl Runs {
        fn new() -> Result<Arc<Self>> {
            Arc::pin_init(
                pin_init!(Self {
                    count: Atomic::new(0),
                    work <- new_work!("Runs::work"),
                }),
                GFP_KERNEL,
            )
        }

        /// Makes a softirq due that counts one more.
        fn request(self: &Arc<Self>) -> Result {
            workqueue::system_bh()
                .enqueue(self.clone())
                .map_err(|_| EBUSY)
        }

        fn get(&self) -> u32 {
            self.count.load(Relaxed)
        }

        /// Waits for a softirq that runs by itself.
        #[cfg(not(CONFIG_PREEMPT_RT))]
        fn wait_for(&self, count: u32) -> bool {
            for _ in 0..1000 {
                if self.get() == count {
                    return true;
                }
                crate::time::delay::fsleep(crate::time::Delta::from_millis(1));
            }
            false
        }
    }

    impl WorkItem for Runs {
        type Pointer = Arc<Self>;

        fn run(this: Arc<Self>) {
            this.count.add(1u32, Relaxed);
        }
    }

    #[test]
    fn softirqs_wait_for_all_guards() -> Result {
        let before = softirqs_wait();
        let one = BhGuard::new().ok_or(EINVAL)?;
        let while_one = softirqs_wait();
        let two = BhGuard::new().ok_or(EINVAL)?;
        drop(one);
        let while_two = softirqs_wait();
        drop(two);
        let after = softirqs_wait();

        assert_eq!((before, after), (false, false));
        assert_eq!((while_one, while_two), (true, true));
        Ok(())
    }

    #[test]
    fn the_last_guard_runs_what_is_due() -> Result {
        let runs = Runs::new()?;
        let one = BhGuard::new().ok_or(EINVAL)?;
        let two = BhGuard::new().ok_or(EINVAL)?;
        runs.request()?;
        drop(one);
        let while_two = runs.get();
        drop(two);
        let after = runs.get();

        assert_eq!((while_two, after), (0, 1));
        Ok(())
    }

    #[test]
    fn there_is_no_guard_with_interrupts_disabled() {
        let irq = local_interrupt_disable();
        let none = BhGuard::new().is_none();
        let waits = softirqs_wait();
        drop(irq);

        assert!(none);
        assert!(!waits);
        assert!(BhGuard::new().is_some());
    }

    #[test]
    fn a_guard_stays_when_interrupts_are_disabled_later() -> Result {
        let guard = BhGuard::new().ok_or(EINVAL)?;
        let irq = local_interrupt_disable();
        // Another guard is not needed here.
        let none = BhGuard::new().is_none();
        let waits = softirqs_wait();
        drop(irq);
        drop(guard);

        assert!(none);
        assert!(waits);
        assert!(!softirqs_wait());
        Ok(())
    }

    // The lock that bottom halves are with it is not released there.
    #[cfg(not(CONFIG_PREEMPT_RT))]
    #[test]
    fn a_guard_that_goes_first_leaves_interrupts_disabled() -> Result {
        let runs = Runs::new()?;
        let guard = BhGuard::new().ok_or(EINVAL)?;
        runs.request()?;
        let irq = local_interrupt_disable();
        drop(guard);
        let (early, off, waits) = (runs.get(), interrupts_are_off(), softirqs_wait());
        drop(irq);
        let on_again = !interrupts_are_off();

        // Softirqs enable interrupts: none has run.
        assert_eq!((early, off, waits, on_again), (0, true, false, true));
        assert!(runs.wait_for(1));
        Ok(())
    }

    // As above.
    #[cfg(not(CONFIG_PREEMPT_RT))]
    #[test]
    fn a_guard_of_many_that_goes_first_runs_nothing() -> Result {
        let runs = Runs::new()?;
        let outer = BhGuard::new().ok_or(EINVAL)?;
        let inner = BhGuard::new().ok_or(EINVAL)?;
        runs.request()?;
        let irq = local_interrupt_disable();
        drop(inner);
        let while_outer = (softirqs_wait(), interrupts_are_off());
        drop(irq);
        let early = runs.get();
        drop(outer);
        let after = runs.get();

        assert_eq!(while_outer, (true, true));
        assert_eq!((early, after), (0, 1));
        Ok(())
    }

    #[test]
    fn there_are_no_more_guards_than_can_be_counted() -> Result {
        let mut guards = KVec::with_capacity(200, GFP_KERNEL)?;
        let mut all_wait = true;
        while let Some(guard) = BhGuard::new() {
            if guards.push(guard, GFP_ATOMIC).is_err() {
                break;
            }
            all_wait &= softirqs_wait();
            if guards.len() == 200 {
                break;
            }
        }
        let count = guards.len();
        drop(guards);

        assert!(all_wait);
        assert!((32..128).contains(&count));
        assert!(!softirqs_wait());
        Ok(())
    }
}
