// SPDX-License-Identifier: GPL-2.0

//! The array-based queue.

pub mod atomics;
#[expect(dead_code, reason = "for users in the kernel")]
mod chunk;
pub mod index;
// Skipped where the style of the kernel's edition is another one.
#[expect(dead_code, reason = "for users in the kernel")]
#[rustfmt::skip]
mod multi;
/// Stand-in for the kernel's preemption.
mod preemption {
    /// Nothing: a thread of the model goes on sooner or later.
    pub(super) struct PreemptionOff;

    impl PreemptionOff {
        pub(super) fn in_softirq() -> Option<Self> {
            None
        }
    }
}
pub mod reserve;
mod ring;
#[expect(dead_code, reason = "for users in the kernel")]
#[rustfmt::skip]
mod single;
#[expect(dead_code, reason = "for users in the kernel")]
mod slots;

pub(crate) use chunk::Chunk;
pub(crate) use multi::{SharedConsumer, SharedProducer};
pub(crate) use single::{Consumer, Producer};

use crate::alloc::Flags;
use crate::sync::Arc;
use reserve::Wanted;
use ring::{Ring, Users};

/// There was no room.
pub struct Full;

/// A ring, and its ends.
pub(crate) struct Ends<T> {
    ring: Arc<Ring<T>>,
    start: u32,
    pub(crate) tx: SharedProducer<T>,
    pub(crate) rx: SharedConsumer<T>,
}

impl<T: Send> Ends<T> {
    /// Makes a ring of `capacity` slots whose positions begin at `start`.
    pub(crate) fn new(capacity: usize, start: u32) -> Self {
        let ring = Ring::new(capacity, start, Flags).expect("it is a power of two");
        let ring = Arc::new(ring);
        Self {
            tx: SharedProducer { ring: ring.clone() },
            rx: SharedConsumer { ring: ring.clone() },
            ring,
            start,
        }
    }

    /// Makes the only producing end of a new ring.
    pub(crate) fn producer(&self) -> Producer<T> {
        // SAFETY: The tests do not use `tx` as well.
        unsafe { Producer::from_ring(self.ring.clone(), self.start) }
    }

    /// Makes the only consuming end of a new ring.
    pub(crate) fn consumer(&self) -> Consumer<T> {
        // SAFETY: The tests do not use `rx` as well.
        unsafe { Consumer::from_ring(self.ring.clone(), self.start) }
    }

    /// Puts all of `values` in, or none, as C code that says it is alone.
    pub(crate) fn push_alone<const N: usize>(&self, values: &mut Chunk<T, N>) -> usize {
        let wanted = Wanted {
            count: u32::try_from(values.len()).expect("few values"),
            all: true,
        };
        // SAFETY: There are so many values. That the caller is alone is what loom checks.
        let moved = unsafe { self.ring.enqueue(values.as_ptr(), wanted, Users::One) } as usize;
        // SAFETY: So many were moved.
        unsafe { values.forget_first(moved) };
        moved
    }

    /// Takes up to `limit` values out, as C code that says it is alone.
    pub(crate) fn pop_alone<const N: usize>(&self, limit: u32, sink: &mut Chunk<T, N>) {
        assert!(limit as usize <= sink.room());
        // SAFETY: There is room. That the caller is alone is what loom checks.
        let moved = unsafe { self.ring.dequeue(sink.end(), limit, Users::One) } as usize;
        // SAFETY: So many were moved.
        unsafe { sink.grow(moved) };
    }
}
