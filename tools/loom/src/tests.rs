// SPDX-License-Identifier: GPL-2.0

use crate::ring::ring;
use loom::thread;

/// Passes the numbers from 0 through a ring, `chunks[i]` at a time, up to `limit` out at a time.
fn pass(capacity: u32, start: u32, chunks: &'static [u32], limit: usize) {
    loom::model(move || {
        let (mut tx, mut rx) = ring(capacity, start);

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
    pass(1, 0, &[1, 1, 1], 1);
}

#[test]
fn in_bulk_through_a_ring_that_runs_full() {
    pass(2, 0, &[2, 1, 1], 2);
}

#[test]
fn positions_wrap() {
    pass(2, u32::MAX, &[1, 2], 2);
}

#[test]
fn a_bulk_becomes_visible_at_once() {
    loom::model(|| {
        let (mut tx, rx) = ring(4, u32::MAX - 1);
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
