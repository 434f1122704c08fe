// SPDX-License-Identifier: GPL-2.0

//! Tests of pools that all CPUs use concurrently.

#[crate::prelude::kunit_tests(rust_qmempool_stress)]
mod cases {
    use super::super::super::*;
    use crate::{
        cpu::CpuId,
        kthread,
        new_spinlock,
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            SpinLock, //
        }, //
    };

    type Value = [u64; 8];

    /// The content of a value before its object is freed.
    const FREED: Value = [u64::MAX; 8];

    /// Objects that any CPU may free.
    type Shelf<'p> = SpinLock<KVec<Object<'p, Value>>>;

    fn shelf<'p>() -> Result<Pin<KBox<Shelf<'p>>>> {
        let objects = KVec::with_capacity(128, GFP_KERNEL)?;
        KBox::pin_init(new_spinlock!(objects), GFP_KERNEL)
    }

    /// Takes an object off the shelf and frees it. Returns whether its value was intact, which
    /// means that the object had one owner at a time.
    fn free_one(local: &Local<'_, '_, Value>, shelf: &Shelf<'_>) -> bool {
        let Some(mut object) = shelf.lock().pop() else {
            return true;
        };
        let whole = object.iter().all(|word| *word == object[0]) && *object != FREED;
        *object = FREED;
        local.free(object);
        whole
    }

    #[test]
    fn objects_go_round_between_cpus() -> Result {
        let cache = Cache::new(c"rust_qmempool_round", 16)?;
        let pool = QMemPool::new(c"kunit_round", cache, Options::new().magazine(8).depot(4))?;
        let shelf = shelf()?;
        let wrong = Atomic::new(0u32);

        kthread::run_on_each(kthread::online_cpus(), c"qmempool", |cpu: CpuId| {
            for round in 0..1000u32 {
                let Some(guard) = BhGuard::new() else {
                    wrong.add(1u32, Relaxed);
                    return;
                };
                let local = pool.local(guard.softirq());
                // The number changes from round to round, so that magazines become full and empty.
                let some = (round / 50 % 4) as usize * 10;
                for i in 0..some as u64 {
                    let id = u64::from(cpu.as_u32()) << 32 | u64::from(round) << 8 | i;
                    if let Ok(object) = local.alloc([id; 8], GFP_ATOMIC) {
                        // An object that does not fit is dropped, which frees it to the slab.
                        let _ = shelf.lock().push_within_capacity(object);
                    }
                }
                for _ in 0..15 {
                    if !free_one(&local, &shelf) {
                        wrong.add(1u32, Relaxed);
                    }
                }
            }
        })?;

        assert_eq!(wrong.load(Relaxed), 0);
        let stats = pool.stats();
        assert!(stats.hits > 0 && stats.refills > 0);
        // The maximum: two magazines per CPU, and the depot.
        let most = 8 * (2 * kthread::online_cpus().count() + 4);
        assert!(stats.held <= most);
        Ok(())
    }

    #[test]
    fn objects_are_taken_away_while_cpus_are_busy() -> Result {
        let cache = Cache::new(c"rust_qmempool_reclaim", 16)?;
        let pool = QMemPool::new(c"kunit_reclaim", cache, Options::new().magazine(4).depot(8))?;
        let wrong = Atomic::new(0u32);
        let taken = Atomic::new(0u64);

        kthread::run_on_each(kthread::online_cpus(), c"qmempool", |cpu: CpuId| {
            let mut batch = Batch::<Value, 48>::new(pool.cache());
            for round in 0..500u64 {
                let id = u64::from(cpu.as_u32()) << 32 | round;
                {
                    let Some(guard) = BhGuard::new() else {
                        wrong.add(1u32, Relaxed);
                        return;
                    };
                    let local = pool.local(guard.softirq());
                    local.alloc_bulk(&mut batch, 48, GFP_ATOMIC, |_| [id; 8]);
                    if !batch.iter().all(|value| *value == [id; 8]) {
                        wrong.add(1u32, Relaxed);
                    }
                    batch.iter_mut().for_each(|value| *value = FREED);
                    local.free_bulk(&mut batch, 48);
                }
                if round % 16 == 0 {
                    taken.add(pool.shrink(8) as u64, Relaxed);
                }
            }
        })?;

        assert_eq!(wrong.load(Relaxed), 0);
        assert!(taken.load(Relaxed) > 0);
        Ok(())
    }
}
