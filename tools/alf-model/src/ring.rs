// SPDX-License-Identifier: GPL-2.0

//! A ring as the kernel has it, with slots and positions that loom watches.

use crate::index::{AtomicIndex, ConsumerView, ProducerView};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};

/// A position with the orderings that a test wants to see.
pub(crate) struct Position {
    value: AtomicU32,
    load: Ordering,
    store: Ordering,
}

impl AtomicIndex for Position {
    fn load_acquire(&self) -> u32 {
        self.value.load(self.load)
    }

    fn store_release(&self, position: u32) {
        self.value.store(position, self.store);
    }
}

/// What the two ends share.
pub(crate) struct Ring {
    producer: Position,
    consumer: Position,
    mask: u32,
    slots: Vec<UnsafeCell<u32>>,
}

// SAFETY: Not so in general; that the ends access slots in order is what loom checks.
unsafe impl Sync for Ring {}
// SAFETY: The slots hold numbers.
unsafe impl Send for Ring {}

/// The orderings of the accesses to the two positions.
#[derive(Clone, Copy)]
pub(crate) struct Orderings {
    pub(crate) load_producer: Ordering,
    pub(crate) store_producer: Ordering,
    pub(crate) load_consumer: Ordering,
    pub(crate) store_consumer: Ordering,
}

/// What the kernel uses.
pub(crate) const KERNEL: Orderings = Orderings {
    load_producer: Ordering::Acquire,
    store_producer: Ordering::Release,
    load_consumer: Ordering::Acquire,
    store_consumer: Ordering::Release,
};

pub(crate) struct Producer {
    ring: Arc<Ring>,
    view: ProducerView,
}

pub(crate) struct Consumer {
    ring: Arc<Ring>,
    view: ConsumerView,
}

/// Makes the ends of a ring of `capacity` slots whose positions begin at `start`.
pub(crate) fn ring(capacity: u32, start: u32, orderings: Orderings) -> (Producer, Consumer) {
    let ring = Arc::new(Ring {
        producer: Position {
            value: AtomicU32::new(start),
            load: orderings.load_producer,
            store: orderings.store_producer,
        },
        consumer: Position {
            value: AtomicU32::new(start),
            load: orderings.load_consumer,
            store: orderings.store_consumer,
        },
        mask: capacity - 1,
        slots: (0..capacity).map(|_| UnsafeCell::new(0)).collect(),
    });
    let producer = Producer {
        ring: ring.clone(),
        view: ProducerView::new(start),
    };
    let consumer = Consumer {
        ring,
        view: ConsumerView::new(start),
    };
    (producer, consumer)
}

impl Ring {
    fn slot(&self, position: u32) -> &UnsafeCell<u32> {
        &self.slots[(position & self.mask) as usize]
    }
}

impl Producer {
    /// Puts all of `values` in, or none.
    pub(crate) fn push_bulk(&mut self, values: &[u32]) -> bool {
        let count = u32::try_from(values.len()).expect("few values");
        let capacity = self.ring.mask + 1;
        if !self.view.has_room(count, capacity, &self.ring.consumer) {
            return false;
        }
        for (position, value) in (0u32..).zip(values) {
            let slot = self.ring.slot(self.view.next().wrapping_add(position));
            // SAFETY: loom checks that nobody else accesses the slot.
            slot.with_mut(|place| unsafe { *place = *value });
        }
        self.view.publish(count, &self.ring.producer);
        true
    }

    /// Returns how many slots are free.
    pub(crate) fn free(&self) -> u32 {
        self.view.free(self.ring.mask + 1, &self.ring.consumer)
    }
}

impl Consumer {
    /// Takes out up to `limit` values; their slots become free at the end.
    pub(crate) fn pop_bulk(&mut self, limit: usize) -> Vec<u32> {
        let mut taken = Vec::new();
        while taken.len() < limit && self.view.has_element(&self.ring.producer) {
            let slot = self.ring.slot(self.view.next());
            // SAFETY: loom checks that nobody else accesses the slot.
            taken.push(slot.with(|place| unsafe { *place }));
            self.view.advance();
        }
        if !taken.is_empty() {
            self.view.publish(&self.ring.consumer);
        }
        taken
    }

    /// Returns how many values there are.
    pub(crate) fn len(&self) -> u32 {
        self.view.len(&self.ring.producer)
    }
}
