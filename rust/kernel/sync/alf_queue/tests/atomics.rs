// SPDX-License-Identifier: GPL-2.0

//! Tests of an assumption of the model checker: that positions and claims are atomic.

#[crate::prelude::kunit_tests(rust_alf_queue_atomics)]
mod cases {
    use super::super::super::{
        index::AtomicIndex,
        reserve::{
            self,
            Wanted, //
        },
        ring::Ring, //
    };
    use crate::{
        kthread,
        prelude::*,
        sync::atomic::{
            Atomic,
            Relaxed, //
        },
        time::{
            delay::fsleep,
            Delta,
            Instant,
            Monotonic, //
        }, //
    };

    /// How long each CPU claims: longer than the start of a thread may be delayed.
    const TIME: Delta = Delta::from_millis(60);

    #[test]
    fn users_wait_for_those_before_them() -> Result {
        // On a single CPU, the waiting thread would not let the other one run.
        let Some((first, second)) = kthread::two_cpus_for_case() else {
            return Ok(());
        };
        let ring = Ring::<u32>::new(8, 0, GFP_KERNEL)?;
        let tail = &ring.producer.tail;
        let (published, waited) = (Atomic::new(0u32), Atomic::new(0u32));

        kthread::scope(|scope| {
            scope.spawn_on(first, c"alf_first", || {
                fsleep(Delta::from_millis(20));
                published.store(1, Relaxed);
                tail.store_release(3);
            })?;
            scope.spawn_on(second, c"alf_second", || {
                tail.wait_for(3);
                waited.store(published.load(Relaxed), Relaxed);
            })
        })?;
        // The ring is empty: keep it from dropping elements.
        tail.store_release(0);
        assert_eq!(waited.load(Relaxed), 1);
        Ok(())
    }

    #[test]
    fn no_position_is_claimed_twice() -> Result {
        let cpus = kthread::online_cpus().count() as u32;
        let ring = Ring::<u32>::new(8, 0, GFP_KERNEL)?;
        let (ready, claimed) = (Atomic::new(0u32), Atomic::new(0u32));
        let claim = || {
            let wanted = Wanted {
                count: 1,
                all: true,
            };
            // With this lead there is room for so many claims. The slots are not accessed.
            ring.producer
                .claim(&ring.consumer.tail, reserve::MAX_CAPACITY, wanted)
        };

        kthread::run_on_each(kthread::online_cpus(), c"alf_claim", |_| {
            ready.add(1u32, Relaxed);
            // Start together, unless one of the threads could not be started.
            for _ in 0..1000 {
                if ready.load(Relaxed) == cpus {
                    break;
                }
                fsleep(Delta::from_micros(100));
            }
            let start = Instant::<Monotonic>::now();
            while start.elapsed() < TIME {
                let done = (0..1000).filter(|_| claim().is_some()).count();
                claimed.add(done as u32, Relaxed);
            }
        })?;
        let claimed = claimed.load(Relaxed);
        // More room makes it certain that there is another position.
        ring.consumer.tail.store_release(1);
        assert_eq!(claim().map(|run| run.start), Some(claimed));
        ring.consumer.tail.store_release(0);
        Ok(())
    }
}
