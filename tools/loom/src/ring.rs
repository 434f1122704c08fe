// SPDX-License-Identifier: GPL-2.0

//! A ring as the kernel has it, with slots that loom watches.

use crate::kernel::alf_queue::atomics::{Position, Word};
use crate::kernel::alf_queue::index::{AtomicIndex, ConsumerView, ProducerView};
use crate::kernel::alf_queue::reserve::{End, Run, Wanted};
use loom::cell::UnsafeCell;
use loom::sync::Arc;

/// State that all ends share.
pub(crate) struct Ring {
    producer: End<Word, Position>,
    consumer: End<Word, Position>,
    mask: u32,
    slots: Vec<UnsafeCell<u32>>,
}

// SAFETY: Not true in general: loom checks that the ends access slots in order.
unsafe impl Sync for Ring {}
// SAFETY: The slots hold numbers.
unsafe impl Send for Ring {}

pub(crate) struct Producer {
    ring: Arc<Ring>,
    view: ProducerView,
}

pub(crate) struct Consumer {
    ring: Arc<Ring>,
    view: ConsumerView,
}

impl Drop for Ring {
    fn drop(&mut self) {
        // As the kernel does, which drops the elements in between.
        let (start, end) = (
            self.consumer.tail.load_last(),
            self.producer.tail.load_last(),
        );
        if !std::thread::panicking() {
            assert!(end.wrapping_sub(start) <= self.mask + 1);
        }
    }
}

/// Makes a ring of `capacity` slots whose positions begin at `start`.
pub(crate) fn shared_ring(capacity: u32, start: u32) -> Arc<Ring> {
    let end = || End::new(start, Word::new, Position::new);
    Arc::new(Ring {
        producer: end(),
        consumer: end(),
        mask: capacity - 1,
        slots: (0..capacity).map(|_| UnsafeCell::new(0)).collect(),
    })
}

/// Makes the two ends of a ring, each for one user.
pub(crate) fn ring(capacity: u32, start: u32) -> (Producer, Consumer) {
    let ring = shared_ring(capacity, start);
    (Producer::new(&ring, start), Consumer::new(&ring, start))
}

impl Ring {
    fn slot(&self, position: u32) -> &UnsafeCell<u32> {
        &self.slots[(position & self.mask) as usize]
    }

    fn write(&self, run: Run, values: &[u32]) {
        for (offset, value) in (0..run.count).zip(values) {
            let slot = self.slot(run.start.wrapping_add(offset));
            // SAFETY: loom checks that nothing else accesses the slot.
            slot.with_mut(|place| unsafe { *place = *value });
        }
    }

    fn read(&self, run: Run) -> Vec<u32> {
        (0..run.count)
            .map(|offset| {
                let slot = self.slot(run.start.wrapping_add(offset));
                // SAFETY: loom checks that nothing else accesses the slot.
                slot.with(|place| unsafe { *place })
            })
            .collect()
    }

    /// Puts `values` in as one of many producers; all, or as many as fit.
    pub(crate) fn push(&self, values: &[u32], all: bool) -> usize {
        let wanted = Wanted {
            count: u32::try_from(values.len()).expect("few values"),
            all,
        };
        let (other, lead) = (&self.consumer.tail, self.mask + 1);
        let Some(run) = self.producer.claim(other, lead, wanted) else {
            return 0;
        };
        self.write(run, values);
        self.producer.publish(run);
        run.count as usize
    }

    /// Takes out up to `limit` values as one of many consumers.
    pub(crate) fn pop(&self, limit: u32) -> Vec<u32> {
        let wanted = Wanted {
            count: limit,
            all: false,
        };
        let Some(run) = self.consumer.claim(&self.producer.tail, 0, wanted) else {
            return Vec::new();
        };
        let values = self.read(run);
        self.consumer.publish(run);
        values
    }

    /// How many values there are, for C code that asks.
    pub(crate) fn len(&self) -> u32 {
        let start = self.consumer.tail.load_acquire();
        let end = self.producer.tail.load_acquire();
        end.wrapping_sub(start)
    }
}

impl Producer {
    /// Makes the only producing end of a ring.
    pub(crate) fn new(ring: &Arc<Ring>, start: u32) -> Self {
        Self {
            ring: ring.clone(),
            view: ProducerView::new(start),
        }
    }

    /// Puts all of `values` in, or none.
    pub(crate) fn push_bulk(&mut self, values: &[u32]) -> bool {
        let capacity = self.ring.mask + 1;
        if !self
            .view
            .has_room(values.len(), capacity, &self.ring.consumer.tail)
        {
            return false;
        }
        let count = u32::try_from(values.len()).expect("few values");
        let run = Run {
            start: self.view.next(),
            count,
        };
        self.ring.write(run, values);
        self.view.publish(count, &self.ring.producer.tail);
        true
    }

    /// Returns how many slots are free.
    pub(crate) fn free(&self) -> u32 {
        self.view.free(self.ring.mask + 1, &self.ring.consumer.tail)
    }
}

impl Consumer {
    /// Makes the only consuming end of a ring.
    pub(crate) fn new(ring: &Arc<Ring>, start: u32) -> Self {
        Self {
            ring: ring.clone(),
            view: ConsumerView::new(start),
        }
    }

    /// Takes out up to `limit` values; their slots become free at the end.
    pub(crate) fn pop_bulk(&mut self, limit: usize) -> Vec<u32> {
        let mut taken = Vec::new();
        while taken.len() < limit && self.view.has_element(&self.ring.producer.tail) {
            let slot = self.ring.slot(self.view.next());
            // SAFETY: loom checks that nothing else accesses the slot.
            taken.push(slot.with(|place| unsafe { *place }));
            self.view.advance();
        }
        if !taken.is_empty() {
            self.view.publish(&self.ring.consumer.tail);
        }
        taken
    }

    /// Takes out up to `limit` values, copied as one run.
    pub(crate) fn pop_run(&mut self, limit: u32) -> Vec<u32> {
        let run = Run {
            start: self.view.next(),
            count: self.view.up_to(limit, &self.ring.producer.tail),
        };
        let taken = self.ring.read(run);
        if run.count != 0 {
            self.view.advance_by(run.count);
            self.view.publish(&self.ring.consumer.tail);
        }
        taken
    }

    /// Returns how many values there are.
    pub(crate) fn len(&self) -> u32 {
        self.view.len(&self.ring.producer.tail)
    }
}
