// SPDX-License-Identifier: GPL-2.0

use crate::ring::{KERNEL, Orderings, ring};
use loom::sync::atomic::Ordering::Relaxed;
use loom::thread;

/// Passes the numbers from 0 through a ring, `chunks[i]` at a time, up to `limit` out at a time.
fn pass(capacity: u32, start: u32, chunks: &'static [u32], limit: usize, orderings: Orderings) {
    loom::model(move || {
        let (mut tx, mut rx) = ring(capacity, start, orderings);

        let producer = thread::spawn(move || {
            let mut next = 0;
            for &chunk in chunks {
                let values: Vec<u32> = (next..next + chunk).collect();
                while !tx.push_bulk(&values) {
                    thread::yield_now();
                }
                next += chunk;
            }
        });

        let total: u32 = chunks.iter().sum();
        let mut expected = 0;
        while expected < total {
            let taken = rx.pop_bulk(limit);
            if taken.is_empty() {
                thread::yield_now();
            }
            for value in taken {
                assert_eq!(value, expected);
                expected += 1;
            }
        }
        producer.join().expect("the producer ends");
        assert_eq!(rx.len(), 0);
    });
}

#[test]
fn one_by_one_through_one_slot() {
    pass(1, 0, &[1, 1, 1], 1, KERNEL);
}

#[test]
fn in_bulk_through_a_ring_that_runs_full() {
    pass(2, 0, &[2, 1, 1], 2, KERNEL);
}

#[test]
fn positions_wrap() {
    pass(2, u32::MAX, &[1, 2], 2, KERNEL);
}

#[test]
fn a_bulk_becomes_visible_at_once() {
    loom::model(|| {
        let (mut tx, rx) = ring(4, u32::MAX - 1, KERNEL);
        let producer = thread::spawn(move || {
            assert!(tx.push_bulk(&[1, 2, 3]));
            // Room never shrinks behind the producer's back.
            assert_eq!(tx.free(), 1);
        });
        assert!(matches!(rx.len(), 0 | 3));
        producer.join().expect("the producer ends");
        assert_eq!(rx.len(), 3);
    });
}

// Each of the four orderings is needed: without it, loom finds an access to a slot out of order.

#[test]
#[should_panic(expected = "Causality violation")]
fn the_producer_must_release() {
    let weak = Orderings {
        store_producer: Relaxed,
        ..KERNEL
    };
    pass(2, 0, &[1, 1], 1, weak);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_consumer_must_acquire() {
    let weak = Orderings {
        load_producer: Relaxed,
        ..KERNEL
    };
    pass(2, 0, &[1, 1], 1, weak);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_consumer_must_release() {
    let weak = Orderings {
        store_consumer: Relaxed,
        ..KERNEL
    };
    pass(1, 0, &[1, 1], 1, weak);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_producer_must_acquire() {
    let weak = Orderings {
        load_consumer: Relaxed,
        ..KERNEL
    };
    pass(1, 0, &[1, 1], 1, weak);
}
