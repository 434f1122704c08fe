// SPDX-License-Identifier: GPL-2.0

//! Rings of which at least one end is shared.

use crate::ring::{Consumer, Producer, Ring, shared_ring};
use loom::model::Builder;
use loom::sync::{Arc, Mutex};
use loom::thread;

/// Runs `body` through all interleavings in which threads are preempted up to so many times; faults
/// that need more are unheard of, and the time grows beyond measure.
const PREEMPTIONS: usize = 3;

fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(body);
}

/// How often a thread tries what may not be possible yet. There must be an end to it: two threads
/// that wait for each other's progress would keep each other busy in the model.
const ATTEMPTS: usize = 2;

/// Puts `values` in, in runs of `bulk`, up to the first that does not fit; returns how many.
fn push_each(ring: &Ring, values: &[u32], bulk: usize) -> usize {
    (values.chunks(bulk))
        .map_while(|run| attempt(|| Some(ring.push(run, true)).filter(|count| *count > 0)))
        .sum()
}

/// Takes values out, up to `bulk` at a time, `times` times.
fn pop_each(times: usize, mut pop: impl FnMut() -> Vec<u32>) -> Vec<u32> {
    (0..times)
        .filter_map(|_| attempt(|| Some(pop()).filter(|values| !values.is_empty())))
        .flatten()
        .collect()
}

/// Lets the other threads go on if it fails.
fn attempt<T>(mut body: impl FnMut() -> Option<T>) -> Option<T> {
    (0..ATTEMPTS).find_map(|_| {
        let result = body();
        if result.is_none() {
            thread::yield_now();
        }
        result
    })
}

/// Each producer's values, tens of its number, come in the order in which they were put in.
fn assert_order(taken: &[u32]) {
    for producer in 0..3 {
        let own: Vec<u32> = (taken.iter().copied())
            .filter(|value| value / 10 == producer)
            .collect();
        assert!(own.is_sorted(), "{own:?}");
    }
}

/// Each value is there once.
fn assert_all(mut taken: Vec<u32>, all: &[u32]) {
    taken.sort_unstable();
    assert_eq!(taken, all);
}

#[derive(Clone, Copy)]
struct Shape {
    capacity: u32,
    start: u32,
    bulk: usize,
}

/// Two producers, of `per_producer` values each, and one consumer that is shared or not.
fn two_producers(shape: Shape, per_producer: u32, unique: bool) {
    model(move || {
        let ring = shared_ring(shape.capacity, shape.start);
        let producers: Vec<_> = (0..2)
            .map(|number| {
                let ring = ring.clone();
                thread::spawn(move || {
                    let values: Vec<u32> = (0..per_producer).map(|i| 10 * number + i).collect();
                    let put = push_each(&ring, &values, shape.bulk);
                    values[..put].to_vec()
                })
            })
            .collect();
        let times = per_producer as usize;
        let limit = u32::try_from(shape.bulk).expect("few values");
        let mut consumer = unique.then(|| Consumer::new(&ring));
        let mut pop = |limit| match &mut consumer {
            Some(consumer) => consumer.pop_run(limit),
            None => ring.pop(limit),
        };
        let mut taken = pop_each(times, || pop(limit));
        let all: Vec<u32> = (producers.into_iter())
            .flat_map(|producer| producer.join().expect("the producer ends"))
            .collect();
        taken.extend(pop(shape.capacity));
        assert_order(&taken);
        assert_all(taken, &all);
        assert_eq!(ring.len(), 0);
    });
}

/// One producer, shared or not, and two consumers that take values out `times` times.
fn two_consumers(shape: Shape, times: usize, unique: bool) {
    model(move || {
        let ring = shared_ring(shape.capacity, shape.start);
        let limit = u32::try_from(shape.bulk).expect("few values");
        let consumers: Vec<_> = (0..2)
            .map(|_| {
                let ring = ring.clone();
                thread::spawn(move || pop_each(times, || ring.pop(limit)))
            })
            .collect();
        let values: Vec<u32> = (0..2 * limit).collect();
        let put = if unique {
            let mut producer = Producer::new(&ring);
            let runs = values.chunks(shape.bulk);
            let put = |run: &&[u32]| attempt(|| producer.push_bulk(run).then_some(())).is_some();
            runs.take_while(put).count() * shape.bulk
        } else {
            push_each(&ring, &values, shape.bulk)
        };
        let mut taken = Vec::new();
        for consumer in consumers {
            let own = consumer.join().expect("the consumer ends");
            assert!(own.is_sorted(), "{own:?}");
            taken.extend(own);
        }
        taken.extend(ring.pop(shape.capacity));
        assert_all(taken, &values[..put]);
        assert_eq!(ring.len(), 0);
    });
}

/// Two threads, of which each puts in and takes out.
fn both_do_both(shape: Shape) {
    model(move || {
        let ring = shared_ring(shape.capacity, shape.start);
        let each = move |ring: &Ring, values: &[u32]| {
            let put = push_each(ring, values, shape.bulk);
            (values[..put].to_vec(), pop_each(2, || ring.pop(1)))
        };
        let other = {
            let ring = ring.clone();
            thread::spawn(move || each(&ring, &[10, 11]))
        };
        let (mut all, mut taken) = each(&ring, &[0, 1]);
        let (other_all, other_taken) = other.join().expect("the other thread ends");
        all.extend(other_all);
        taken.extend(other_taken);
        taken.extend(ring.pop(shape.capacity));
        assert_all(taken, &all);
    });
}

/// Two users of one end that are alone, one after the other, by a lock: producers if `produce`, else
/// consumers. The other end is shared.
fn two_alone(shape: Shape, produce: bool) {
    model(move || {
        let ring = shared_ring(shape.capacity, shape.start);
        let lock = Arc::new(Mutex::new(()));
        let put = if produce {
            0
        } else {
            push_each(&ring, &[0, 1], shape.bulk)
        };
        let users: Vec<_> = (0..2)
            .map(|number| {
                let (ring, lock) = (ring.clone(), lock.clone());
                thread::spawn(move || {
                    let _alone = lock.lock().expect("no user panics");
                    if produce {
                        vec![10 * number; ring.push_alone(&[10 * number])]
                    } else {
                        ring.pop_alone(1)
                    }
                })
            })
            .collect();
        let mut taken = if produce { ring.pop(1) } else { Vec::new() };
        let others: Vec<u32> = (users.into_iter())
            .flat_map(|user| user.join().expect("the user ends"))
            .collect();
        if produce {
            taken.extend(ring.pop(shape.capacity));
            assert_all(taken, &others);
        } else {
            assert_all(others, &[0, 1][..put]);
        }
        assert_eq!(ring.len(), 0);
    });
}

const ONE_SLOT: Shape = Shape {
    capacity: 1,
    start: u32::MAX,
    bulk: 1,
};
const TWO_SLOTS: Shape = Shape {
    capacity: 2,
    start: u32::MAX,
    bulk: 1,
};
const IN_BULK: Shape = Shape {
    capacity: 2,
    start: u32::MAX - 2,
    bulk: 2,
};
const ROOMY: Shape = Shape {
    capacity: 4,
    start: u32::MAX - 1,
    bulk: 2,
};

#[test]
fn mpmc_two_threads() {
    both_do_both(ROOMY);
}

#[test]
fn mpmc_two_threads_one_by_one() {
    both_do_both(Shape { bulk: 1, ..ROOMY });
}

#[test]
fn mpmc_two_producers() {
    two_producers(TWO_SLOTS, 1, false);
}

#[test]
fn mpmc_two_producers_in_bulk() {
    two_producers(IN_BULK, 2, false);
}

#[test]
fn mpmc_two_consumers() {
    two_consumers(TWO_SLOTS, 1, false);
}

#[test]
fn mpmc_two_consumers_in_bulk() {
    two_consumers(IN_BULK, 2, false);
}

#[test]
fn mpsc_two_producers() {
    two_producers(TWO_SLOTS, 1, true);
}

#[test]
fn mpsc_two_producers_through_one_slot() {
    two_producers(ONE_SLOT, 1, true);
}

#[test]
fn mpsc_two_producers_in_bulk() {
    two_producers(IN_BULK, 2, true);
}

#[test]
fn spmc_two_consumers() {
    two_consumers(TWO_SLOTS, 1, true);
}

#[test]
fn spmc_two_consumers_through_one_slot() {
    two_consumers(ONE_SLOT, 1, true);
}

#[test]
fn spmc_two_consumers_in_bulk() {
    two_consumers(IN_BULK, 2, true);
}

#[test]
fn producers_are_alone_by_a_lock() {
    two_alone(TWO_SLOTS, true);
}

#[test]
fn consumers_are_alone_by_a_lock() {
    two_alone(TWO_SLOTS, false);
}

/// A consumer that saw that values were claimed does not see the end as it was before they were
/// there: a queue that is never empty does not seem empty to any of its consumers.
#[test]
fn a_queue_that_is_never_empty_does_not_seem_so() {
    model(move || {
        let ring = shared_ring(4, u32::MAX);
        assert_eq!(ring.push(&[0], true), 1);
        let producer = {
            let ring = ring.clone();
            thread::spawn(move || assert_eq!(ring.push(&[1, 2], true), 2))
        };
        let consumer = {
            let ring = ring.clone();
            // Takes one more than it leaves room for emptiness: only if all three are there.
            thread::spawn(move || {
                if ring.len() == 3 {
                    ring.pop(2).len()
                } else {
                    0
                }
            })
        };
        assert_eq!(ring.pop(1).len(), 1);
        producer.join().expect("the producer ends");
        consumer.join().expect("the consumer ends");
    });
}

/// The first consumer sees two values and takes one; the other takes the second one without a look
/// at the producer.
#[test]
fn what_one_consumer_knows_another_may_use() {
    two_consumers(
        Shape {
            capacity: 2,
            start: u32::MAX,
            bulk: 2,
        },
        1,
        true,
    );
}
