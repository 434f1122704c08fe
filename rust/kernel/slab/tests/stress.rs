// SPDX-License-Identifier: GPL-2.0

//! A cache used concurrently by tasks and by softirqs that interrupt them.

#[crate::prelude::kunit_tests(rust_slab_stress)]
mod cases {
    use crate::{
        alloc::Flags,
        new_mutex,
        prelude::*,
        slab::{
            Batch,
            Cache, //
        },
        sync::{
            atomic::{
                Acquire,
                Atomic,
                Relaxed,
                Release, //
            },
            Arc,
            Completion,
            Mutex, //
        },
        workqueue::{
            self,
            impl_has_work,
            new_work,
            Work,
            WorkItem, //
        }, //
    };

    const WORKERS: usize = 4;
    /// Further workers, which run in softirqs.
    const SOFTIRQS: usize = 4;
    const ROUNDS: usize = 200;
    const MOST: usize = 64;

    /// A unique number, in all words, so that a partial overwrite is detected.
    type Element = [usize; 24];
    type Parcel = Batch<'static, Element, MOST>;

    #[pin_data]
    struct Shared {
        cache: &'static Cache<Element>,
        /// Objects in transit from one worker to another.
        #[pin]
        table: Mutex<KVec<Parcel>>,
        /// Sums of the numbers of allocated and of freed objects.
        made: Atomic<usize>,
        freed: Atomic<usize>,
        errors: Atomic<usize>,
        busy: Atomic<usize>,
        #[pin]
        done: Completion,
    }

    impl Shared {
        fn check(&self, batch: &Parcel) {
            for object in batch.iter() {
                if object.iter().any(|word| *word != object[0]) {
                    self.errors.add(1usize, Relaxed);
                }
                self.freed.add(object[0], Relaxed);
            }
        }

        /// Allocates some objects, and accounts for them.
        fn make(&self, worker: usize, round: usize, flags: Flags) -> Result<Parcel> {
            let number = |i| worker << 24 | round << 8 | i;
            let count = 1 + (worker * 31 + round * 17) % MOST;
            let mut batch = Batch::<Element, MOST>::new(self.cache);

            batch.alloc(count, flags, |i| Ok::<_, Error>([number(i); 24]))?;
            self.made
                .add((0..count).map(number).sum::<usize>(), Relaxed);
            Ok(batch)
        }

        /// A round in a task: allocate some objects, exchange some with another worker, free some.
        fn round(&self, worker: usize, round: usize) -> Result {
            let mut batch = self.make(worker, round, GFP_KERNEL)?;

            let mut table = self.table.lock();
            if round % 3 == 0 {
                table.push(batch, GFP_KERNEL)?;
                return Ok(());
            }
            let other = table.pop();
            drop(table);
            if let Some(other) = other {
                self.check(&other);
            }
            if round % 5 == 0 {
                // Free one by one, in reverse order.
                while let Some(object) = batch.pop() {
                    if object.iter().any(|word| *word != object[0]) {
                        self.errors.add(1usize, Relaxed);
                    }
                    self.freed.add(object[0], Relaxed);
                }
            }
            self.check(&batch);
            Ok(())
        }

        /// Runs all rounds of a worker.
        fn work(&self, work: impl Fn(usize) -> Result) {
            for round in 0..ROUNDS {
                if work(round).is_err() {
                    self.errors.add(1usize, Relaxed);
                }
            }
            self.finish();
        }

        fn finish(&self) {
            // The release makes the work of this worker visible to the last one, which completes.
            if self.busy.fetch_add(usize::MAX, Release) == 1 {
                self.done.complete_all();
            }
        }
    }

    /// A worker in a softirq. It is a work item type of its own, since lockdep cannot distinguish
    /// items made from closures, and others of those run in tasks.
    #[pin_data]
    struct SoftirqWorker {
        shared: Arc<Shared>,
        number: usize,
        #[pin]
        work: Work<SoftirqWorker>,
    }

    impl_has_work! {
        impl HasWork<Self> for SoftirqWorker { self.work }
    }

    impl WorkItem for SoftirqWorker {
        type Pointer = Arc<Self>;

        fn run(this: Arc<Self>) {
            let shared = &this.shared;
            shared.work(|round| {
                shared.check(&shared.make(this.number, round, GFP_ATOMIC)?);
                Ok(())
            });
        }
    }

    impl SoftirqWorker {
        fn spawn(shared: Arc<Shared>, number: usize) -> Result {
            let worker = Arc::pin_init(
                pin_init!(Self {
                    shared,
                    number,
                    work <- new_work!("rust_slab_stress"),
                }),
                GFP_KERNEL,
            )?;
            // A new item is never queued yet.
            workqueue::system_bh().enqueue(worker).map_err(|_| EBUSY)
        }
    }

    fn run(cache: &'static Cache<Element>) -> Result {
        let shared = Arc::pin_init(
            try_pin_init!(Shared {
                cache,
                table <- new_mutex!(KVec::new()),
                made: Atomic::new(0),
                freed: Atomic::new(0),
                errors: Atomic::new(0),
                busy: Atomic::new(WORKERS + SOFTIRQS),
                done <- Completion::new(),
            }),
            GFP_KERNEL,
        )?;

        for worker in 0..WORKERS + SOFTIRQS {
            let mine = shared.clone();
            let spawned = if worker < WORKERS {
                workqueue::system_unbound()
                    .try_spawn(GFP_KERNEL, move || {
                        mine.work(|round| mine.round(worker, round))
                    })
                    .map_err(Error::from)
            } else {
                SoftirqWorker::spawn(mine, worker)
            };
            if spawned.is_err() {
                // Wait for the others nevertheless: they use the cache.
                shared.errors.add(1usize, Relaxed);
                shared.finish();
            }
        }
        shared.done.wait_for_completion();
        // Pairs with the release above: all workers are done.
        assert_eq!(shared.busy.load(Acquire), 0);

        for parcel in core::mem::take(&mut *shared.table.lock()) {
            shared.check(&parcel);
        }
        assert_eq!(shared.errors.load(Relaxed), 0);
        // Each number was freed exactly once.
        assert_eq!(shared.made.load(Relaxed), shared.freed.load(Relaxed));
        Ok(())
    }

    #[test]
    fn objects_change_hands() -> Result {
        let cache = core::ptr::from_mut(KBox::leak(KBox::new(
            Cache::new(c"rust_slab_stress", MOST)?,
            GFP_KERNEL,
        )?));
        // SAFETY: The cache is not dropped before the workers are done.
        let result = run(unsafe { &*cache });
        // SAFETY: This was a box, and all objects are gone.
        drop(unsafe { KBox::from_raw(cache) });
        result
    }
}
