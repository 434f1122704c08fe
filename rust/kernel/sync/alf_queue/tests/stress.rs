// SPDX-License-Identifier: GPL-2.0

//! Tests of concurrent use on all CPUs.

#[crate::prelude::kunit_tests(rust_alf_queue_stress)]
mod cases {
    use super::super::super::*;
    use crate::{
        kthread,
        softirq::{
            BhGuard,
            Softirq, //
        },
        sync::atomic::{
            Atomic,
            Relaxed, //
        },
        time::{
            Delta,
            Instant,
            Monotonic, //
        }, //
    };

    /// Number of elements that each producer pushes.
    const COUNT: u32 = 4_000;
    /// Capacity of the queues, so small that they are full or empty most of the time.
    const CAPACITY: usize = 16;
    /// The first position: positions wrap half-way.
    const START: u32 = u32::MAX - COUNT;

    /// How long a thread may be idle before the test fails. Under a busy hypervisor, other CPUs may
    /// stall for a while.
    const PATIENCE: Delta = Delta::from_secs(30);

    /// Number of the producer, and of the element.
    type Element = (u32, u32);
    type Elements = Chunk<Element, 8>;

    /// The state that all threads share.
    struct Board {
        /// For each element of each producer, how often it was popped.
        seen: KVec<Atomic<u32>>,
        /// Number of popped elements.
        taken: Atomic<u32>,
        /// Number of elements that were out of order or corrupt, and of threads that gave up.
        wrong: Atomic<u32>,
        total: u32,
    }

    impl Board {
        fn new(producers: u32) -> Result<Self> {
            let total = producers * COUNT;
            let mut seen = KVec::with_capacity(total as usize, GFP_KERNEL)?;
            for _ in 0..total {
                seen.push(Atomic::new(0), GFP_KERNEL)?;
            }
            Ok(Self {
                seen,
                taken: Atomic::new(0),
                wrong: Atomic::new(0),
                total,
            })
        }

        fn is_done(&self) -> bool {
            self.taken.load(Relaxed) >= self.total
        }

        /// Records elements; `last` has the last one of each producer that this consumer got.
        fn note(&self, elements: &Elements, last: &mut [Option<u32>; 8]) {
            for &(producer, number) in elements.as_slice() {
                let index = (producer * COUNT + number) as usize;
                let (Some(seen), Some(last), true) = (
                    self.seen.get(index),
                    last.get_mut(producer as usize),
                    number < COUNT,
                ) else {
                    self.wrong.add(1u32, Relaxed);
                    continue;
                };
                seen.add(1u32, Relaxed);
                if *last >= Some(number) {
                    self.wrong.add(1u32, Relaxed);
                }
                *last = Some(number);
            }
            self.taken.add(elements.len() as u32, Relaxed);
        }
    }

    /// Reschedules if the thread is idle. Returns false if the test has failed.
    fn go_on(board: &Board, done: usize, idle: &mut Option<Instant<Monotonic>>) -> bool {
        if done != 0 {
            *idle = None;
            return true;
        }
        let since = idle.get_or_insert_with(Instant::now);
        if since.elapsed() > PATIENCE {
            board.wrong.add(1u32, Relaxed);
        }
        // On a single CPU, the other thread could run only after a time slice otherwise.
        //
        // SAFETY: May be called in process context at any time.
        unsafe { bindings::yield_() };
        board.wrong.load(Relaxed) == 0
    }

    fn produce(
        board: &Board,
        producer: u32,
        mut push: impl FnMut(Softirq<'_>, &mut Elements) -> usize,
    ) {
        let mut next = 0;
        let mut idle = None;
        let mut elements = Elements::new();
        while next < COUNT || !elements.is_empty() {
            let bulk = 1 + (next % 7) as usize;
            while next < COUNT && elements.len() < bulk {
                let _ = elements.push((producer, next));
                next += 1;
            }
            let put = BhGuard::new().map_or(0, |guard| push(guard.softirq(), &mut elements));
            if !go_on(board, put, &mut idle) {
                break;
            }
        }
    }

    fn consume(board: &Board, mut pop: impl FnMut(Softirq<'_>, &mut Elements) -> usize) {
        let mut last = [None; 8];
        let mut idle = None;
        let mut elements = Elements::new();
        while !board.is_done() {
            elements.clear();
            let got = BhGuard::new().map_or(0, |guard| pop(guard.softirq(), &mut elements));
            board.note(&elements, &mut last);
            if !go_on(board, got, &mut idle) {
                break;
            }
        }
    }

    /// Runs one producer and one consumer per CPU, limited to `most`.
    fn stress<P, C>(
        most: (usize, usize),
        mut producer: impl FnMut() -> Option<P>,
        mut consumer: impl FnMut() -> Option<C>,
    ) -> Result
    where
        P: FnMut(Softirq<'_>, &mut Elements) -> usize + Send,
        C: FnMut(Softirq<'_>, &mut Elements) -> usize + Send,
    {
        let cpus = kthread::online_cpus().count();
        // On a single CPU, run two of each.
        let count = |most: usize| most.min(cpus.clamp(2, 4));
        // No panic if there were none: objtool does not know that of a remainder.
        let cpu = |n: usize| {
            let nth = n.checked_rem(cpus);
            nth.and_then(|n| kthread::online_cpus().nth(n))
                .ok_or(EINVAL)
        };
        let board = &Board::new(count(most.0) as u32)?;

        kthread::scope(|scope| {
            for number in 0..count(most.1) {
                let pop = consumer().ok_or(EINVAL)?;
                scope.spawn_on(cpu(number + 1)?, c"alf_consume", move || {
                    consume(board, pop)
                })?;
            }
            for number in 0..count(most.0) {
                let push = producer().ok_or(EINVAL)?;
                scope.spawn_on(cpu(number)?, c"alf_produce", move || {
                    produce(board, number as u32, push)
                })?;
            }
            Ok::<_, Error>(())
        })?;

        assert_eq!(board.wrong.load(Relaxed), 0);
        assert_eq!(board.taken.load(Relaxed), board.total);
        assert!(board.seen.iter().all(|seen| seen.load(Relaxed) == 1));
        Ok(())
    }

    #[test]
    fn spsc_passes_each_element_once() -> Result {
        let (tx, rx) = spsc_from::<Element>(START, CAPACITY, GFP_KERNEL)?;
        let (mut tx, mut rx) = (Some(tx), Some(rx));
        stress(
            (1, 1),
            || {
                let mut tx = tx.take()?;
                Some(move |_: Softirq<'_>, elements: &mut Elements| tx.push_some(elements))
            },
            || {
                let mut rx = rx.take()?;
                Some(move |_: Softirq<'_>, elements: &mut Elements| rx.pop_bulk(elements, 8))
            },
        )
    }

    #[test]
    fn mpsc_passes_each_element_once() -> Result {
        let (tx, rx) = mpsc_from::<Element>(START, CAPACITY, GFP_KERNEL)?;
        let mut rx = Some(rx);
        stress(
            (8, 1),
            || {
                let tx = tx.clone();
                Some(move |cx: Softirq<'_>, elements: &mut Elements| {
                    let count = elements.len();
                    tx.push_bulk(cx, elements).map_or(0, |()| count)
                })
            },
            || {
                let mut rx = rx.take()?;
                Some(move |_: Softirq<'_>, elements: &mut Elements| rx.pop_bulk(elements, 5))
            },
        )
    }

    #[test]
    fn spmc_passes_each_element_once() -> Result {
        let (tx, rx) = spmc_from::<Element>(START, CAPACITY, GFP_KERNEL)?;
        let mut tx = Some(tx);
        stress(
            (1, 8),
            || {
                let mut tx = tx.take()?;
                Some(move |_: Softirq<'_>, elements: &mut Elements| {
                    let count = elements.len();
                    tx.push_bulk(elements).map_or(0, |()| count)
                })
            },
            || {
                let rx = rx.clone();
                Some(move |cx: Softirq<'_>, elements: &mut Elements| rx.pop_bulk(cx, elements, 3))
            },
        )
    }

    /// Operations on a queue that is full or empty most of the time.
    fn mpmc_of(capacity: usize) -> Result {
        let queue = Arc::new(
            Mpmc::<Element>::new_from(START, capacity, GFP_KERNEL)?,
            GFP_KERNEL,
        )?;
        stress(
            (8, 8),
            || {
                let queue = queue.clone();
                Some(move |cx: Softirq<'_>, elements: &mut Elements| queue.push_some(cx, elements))
            },
            || {
                let queue = queue.clone();
                Some(move |cx: Softirq<'_>, elements: &mut Elements| {
                    queue.pop_bulk(cx, elements, 8)
                })
            },
        )
    }

    #[test]
    fn mpmc_passes_each_element_once() -> Result {
        mpmc_of(CAPACITY)
    }

    #[test]
    fn mpmc_of_one_slot_passes_each_element_once() -> Result {
        mpmc_of(1)
    }

    #[test]
    fn mpmc_one_by_one_passes_each_element_once() -> Result {
        let queue = Arc::new(Mpmc::<Element>::new_from(START, 4, GFP_KERNEL)?, GFP_KERNEL)?;
        stress(
            (8, 8),
            || {
                let queue = queue.clone();
                Some(move |cx: Softirq<'_>, elements: &mut Elements| {
                    // Push the first one only, and keep the order.
                    let Some(&first) = elements.as_slice().first() else {
                        return 0;
                    };
                    if queue.push(cx, first).is_err() {
                        return 0;
                    }
                    elements.as_mut_slice().rotate_left(1);
                    elements.pop().map_or(0, |_| 1)
                })
            },
            || {
                let queue = queue.clone();
                Some(move |cx: Softirq<'_>, elements: &mut Elements| {
                    queue
                        .pop(cx)
                        .map_or(0, |element| elements.push(element).map_or(0, |()| 1))
                })
            },
        )
    }
}
