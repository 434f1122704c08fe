// SPDX-License-Identifier: GPL-2.0

//! The kernel's queue, for tests that pass numbers through it.

use crate::kernel::alf_queue::{self, Chunk, Ends};
use crate::softirq::Softirq;
use loom::sync::Arc;

/// A number, in an element of a size that is copied by a function: small ones are moved by
/// pointers, which cannot be watched.
struct Element([u64; 3]);

impl Element {
    fn new(number: u32) -> Self {
        Self([number.into(); 3])
    }

    fn number(&self) -> u32 {
        assert!(self.0.iter().all(|word| *word == self.0[0]));
        u32::try_from(self.0[0]).expect("it was one")
    }
}

/// As many as a test has at once.
type Few = Chunk<Element, 4>;

fn few(numbers: &[u32]) -> Few {
    let mut few = Few::new();
    for number in numbers {
        assert!(few.push(Element::new(*number)).is_ok());
    }
    few
}

fn numbers(few: &Few) -> Vec<u32> {
    few.as_slice().iter().map(Element::number).collect()
}

/// State that all ends share.
pub(crate) struct Ring(Ends<Element>);

// SAFETY: Not true in general: loom checks that the ends access slots in order.
unsafe impl Sync for Ring {}
// SAFETY: The slots hold numbers.
unsafe impl Send for Ring {}

pub(crate) struct Producer(alf_queue::Producer<Element>);

pub(crate) struct Consumer(alf_queue::Consumer<Element>);

/// Makes a ring of `capacity` slots whose positions begin at `start`.
pub(crate) fn shared_ring(capacity: u32, start: u32) -> Arc<Ring> {
    Arc::new(Ring(Ends::new(capacity as usize, start)))
}

/// Makes the two ends of a ring, each for one user.
pub(crate) fn ring(capacity: u32, start: u32) -> (Producer, Consumer) {
    let ring = shared_ring(capacity, start);
    (Producer::new(&ring), Consumer::new(&ring))
}

impl Ring {
    /// Puts `values` in as one of many producers; all, or as many as fit.
    pub(crate) fn push(&self, values: &[u32], all: bool) -> usize {
        let (tx, cx) = (&self.0.tx, Softirq::new());
        if let [value] = values {
            return usize::from(tx.push(cx, Element::new(*value)).is_ok());
        }
        let mut few = few(values);
        if !all {
            return tx.push_some(cx, &mut few);
        }
        match tx.push_bulk(cx, &mut few) {
            Ok(()) => values.len(),
            Err(_) => 0,
        }
    }

    /// Takes out up to `limit` values as one of many consumers.
    pub(crate) fn pop(&self, limit: u32) -> Vec<u32> {
        let (rx, cx) = (&self.0.rx, Softirq::new());
        if limit == 1 {
            return rx.pop(cx).iter().map(Element::number).collect();
        }
        let mut taken = Few::new();
        rx.pop_bulk(cx, &mut taken, limit as usize);
        numbers(&taken)
    }

    /// Puts all of `values` in, or none, as the only producer at the moment.
    pub(crate) fn push_alone(&self, values: &[u32]) -> usize {
        self.0.push_alone(&mut few(values))
    }

    /// Takes out up to `limit` values as the only consumer at the moment.
    pub(crate) fn pop_alone(&self, limit: u32) -> Vec<u32> {
        let mut taken = Few::new();
        self.0.pop_alone(limit, &mut taken);
        numbers(&taken)
    }

    /// How many values there are, for C code that asks.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.0.rx.len()).expect("few values")
    }
}

impl Producer {
    /// Makes the only producing end of a new ring.
    pub(crate) fn new(ring: &Ring) -> Self {
        Self(ring.0.producer())
    }

    /// Puts all of `values` in, or none.
    pub(crate) fn push_bulk(&mut self, values: &[u32]) -> bool {
        if let [value] = values {
            return self.0.push(Element::new(*value)).is_ok();
        }
        self.0.push_bulk(&mut few(values)).is_ok()
    }

    /// Returns how many slots are free.
    pub(crate) fn free(&self) -> usize {
        self.0.free()
    }
}

impl Consumer {
    /// Makes the only consuming end of a new ring.
    pub(crate) fn new(ring: &Ring) -> Self {
        Self(ring.0.consumer())
    }

    /// Takes out up to `limit` values; their slots become free at the end.
    pub(crate) fn pop_bulk(&mut self, limit: usize) -> Vec<u32> {
        let mut batch = self.0.batch();
        (0..limit)
            .map_while(|_| batch.pop())
            .map(|element| element.number())
            .collect()
    }

    /// Takes out up to `limit` values, copied as one run.
    pub(crate) fn pop_run(&mut self, limit: u32) -> Vec<u32> {
        let mut taken = Few::new();
        self.0.pop_bulk(&mut taken, limit as usize);
        numbers(&taken)
    }

    /// Returns how many values there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
