// SPDX-License-Identifier: GPL-2.0

//! Tests of dynamic interrupt moderation.

#[crate::prelude::kunit_tests(rust_net_dim)]
mod cases {
    use super::super::*;
    use crate::{
        net::napi::Orphans,
        softirq::BhGuard,
        sync::Completion,
        time::{
            delay::fsleep,
            Delta, //
        },
    };

    /// The time of one measurement, in ns.
    const MILLISECOND: i64 = 1_000_000;

    /// The decisions of a [`Dim`].
    #[pin_data]
    struct Log {
        usecs: Atomic<u32>,
        begun: Atomic<u32>,
        applied: Atomic<u32>,
        dropped: Atomic<u32>,
        /// The first one is being applied.
        #[pin]
        begins: Completion,
        /// It may go on.
        #[pin]
        ends: Completion,
    }

    impl Log {
        fn new() -> Result<Arc<Self>> {
            Arc::pin_init(
                pin_init!(Self {
                    usecs: Atomic::new(0),
                    begun: Atomic::new(0),
                    applied: Atomic::new(0),
                    dropped: Atomic::new(0),
                    begins <- Completion::new(),
                    ends <- Completion::new(),
                }),
                GFP_KERNEL,
            )
        }
    }

    struct Target {
        log: Arc<Log>,
        takes: Delta,
    }

    impl Moderate for Target {
        fn moderate(&self, moderation: Moderation) {
            self.log.begun.fetch_add(1, Relaxed);
            self.log.begins.complete_all();
            self.log.ends.wait_for_completion();
            fsleep(self.takes);
            self.log.usecs.store(moderation.usecs.into(), Relaxed);
            self.log.applied.fetch_add(1, Relaxed);
        }
    }

    impl Drop for Target {
        fn drop(&mut self) {
            self.log.dropped.fetch_add(1, Relaxed);
        }
    }

    /// A queue whose load tests choose.
    struct Queue {
        napi: Pin<KBox<Napi>>,
        dim: Dim<Target>,
        log: Arc<Log>,
        interrupts: u16,
        bytes: u32,
    }

    impl Queue {
        /// To apply a decision takes so long, from the time at which that may end.
        fn slow(takes: Delta) -> Result<Self> {
            let log = Log::new()?;
            let napi = KBox::pin_init(Napi::new(Orphans::new()?), GFP_KERNEL)?;
            let target = Target {
                log: log.clone(),
                takes,
            };

            log.usecs
                .store(Moderation::default_of_dim().usecs.into(), Relaxed);
            Ok(Self {
                dim: Dim::new(&napi, target)?,
                napi,
                log,
                interrupts: 0,
                bytes: 0,
            })
        }

        fn new() -> Result<Self> {
            let queue = Self::slow(Delta::from_millis(0))?;

            queue.log.ends.complete_all();
            Ok(queue)
        }

        fn raw(&self) -> *mut bindings::dim {
            self.dim.0.dim.get()
        }

        /// The queue vector goes away.
        fn close(&self) {
            self.napi.drop_if(|_of, _object| true);
        }

        /// Measures what has come, so long after the measurement has begun.
        fn sample(&mut self, after: i64) {
            // SAFETY: Only we use it.
            let start = unsafe { (*self.raw()).start_sample.time };

            self.dim.measure(bindings::dim_sample {
                time: start + after,
                pkt_ctr: self.bytes / 100,
                byte_ctr: self.bytes,
                event_ctr: self.interrupts,
                comp_ctr: 0,
            });
        }

        /// So many bytes come with 64 interrupts in a millisecond.
        fn load(&mut self, bytes: u32) {
            // The measurement begins, unless it has.
            self.sample(0);
            self.interrupts = self.interrupts.wrapping_add(64);
            self.bytes = self.bytes.wrapping_add(bytes);
            self.sample(MILLISECOND);
        }

        /// Waits until the decision, if there is one, is applied. Returns the last time.
        fn settle(&self) -> u32 {
            // SAFETY: The work is initialized.
            unsafe { bindings::flush_work(&raw mut (*self.raw()).work) };
            self.log.usecs.load(Relaxed)
        }

        /// The times that the queue has after each of these loads.
        fn settings<const N: usize>(&mut self, loads: [u32; N]) -> [u32; N] {
            loads.map(|bytes| {
                self.load(bytes);
                self.settle()
            })
        }
    }

    #[test]
    fn there_is_a_default() {
        let Moderation { usecs, pkts } = Moderation::default_of_dim();

        assert_eq!((usecs, pkts), (8, 128));
    }

    #[test]
    fn a_load_that_grows_gets_the_longest_time() -> Result {
        let mut queue = Queue::new()?;

        // It tries the shorter one first.
        assert_eq!(
            queue.settings([1, 2, 4, 8, 16, 32, 64, 64].map(|load| load * 10_000)),
            [2, 2, 8, 16, 32, 64, 64, 64]
        );
        assert_eq!(queue.log.applied.load(Relaxed), 5);
        Ok(())
    }

    #[test]
    fn a_step_that_costs_bytes_is_taken_back() -> Result {
        let mut queue = Queue::new()?;

        assert_eq!(
            queue.settings([1, 2, 4, 8, 4, 8].map(|load| load * 10_000)),
            [2, 2, 8, 16, 8, 8]
        );
        Ok(())
    }

    #[test]
    fn nothing_is_decided_before_64_interrupts() -> Result {
        let mut queue = Queue::new()?;
        // It wraps.
        let first = u32::MAX - 31;

        queue.dim.update(first, 0, 0);
        fsleep(Delta::from_micros(10));
        queue.dim.update(first, 1000, 100_000);
        queue.dim.update(first.wrapping_add(63), 1000, 100_000);
        assert_eq!(queue.settle(), 8);
        assert_eq!(queue.log.begun.load(Relaxed), 0);
        queue.dim.update(first.wrapping_add(64), 1000, 100_000);
        assert_eq!(queue.settle(), 2);
        Ok(())
    }

    #[test]
    fn nothing_is_measured_until_a_decision_is_applied() -> Result {
        let mut queue = Queue::slow(Delta::from_millis(0))?;

        queue.load(10_000);
        queue.log.begins.wait_for_completion();
        for _ in 0..3 {
            queue.load(20_000);
        }
        // SAFETY: The work item only reads it.
        assert_eq!(unsafe { (*queue.raw()).state }, APPLY_NEW_PROFILE);
        queue.log.ends.complete_all();
        assert_eq!(queue.settle(), 2);
        assert_eq!(queue.log.begun.load(Relaxed), 1);

        // It is measured from here on: at the edge, and back.
        assert_eq!(queue.settings([40_000, 80_000]), [2, 8]);
        Ok(())
    }

    #[test]
    fn the_vector_waits_for_a_decision_that_is_being_applied() -> Result {
        let mut queue = Queue::slow(Delta::from_millis(10))?;

        queue.load(10_000);
        queue.log.begins.wait_for_completion();
        queue.log.ends.complete_all();
        queue.close();
        assert_eq!(queue.log.applied.load(Relaxed), 1);
        Ok(())
    }

    #[test]
    fn no_decision_is_applied_after_the_vector() -> Result {
        for _ in 0..100 {
            let mut queue = Queue::new()?;

            queue.load(10_000);
            queue.close();
            // Whether it was cancelled or not.
            let begun = queue.log.begun.load(Relaxed);
            assert_eq!(queue.log.applied.load(Relaxed), begun);
            fsleep(Delta::from_micros(50));
            assert_eq!(queue.log.begun.load(Relaxed), begun);

            // Nor is another one.
            queue.load(20_000);
            queue.load(40_000);
            queue.settle();
            assert_eq!(queue.log.begun.load(Relaxed), begun);
        }
        Ok(())
    }

    #[test]
    fn a_drop_waits_for_nothing() -> Result {
        let mut queue = Queue::slow(Delta::from_millis(0))?;

        queue.load(10_000);
        queue.log.begins.wait_for_completion();
        {
            // As in a poll function.
            let _bh = BhGuard::new();
            drop(queue.dim);
        }
        assert_eq!(queue.log.applied.load(Relaxed), 0);
        queue.log.ends.complete_all();
        queue.napi.drop_if(|_of, _object| true);
        assert_eq!(queue.log.applied.load(Relaxed), 1);
        assert_eq!(queue.log.dropped.load(Relaxed), 1);
        Ok(())
    }
}
