// SPDX-License-Identifier: GPL-2.0

//! Users that are delayed between two accesses, while so many elements pass that positions wrap.

use crate::kernel::alf_queue::index::AtomicIndex;
use crate::kernel::alf_queue::reserve::{AtomicClaim, End, Wanted};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const CAPACITY: u32 = 1 << 20;

/// A position; what others do right after it has been read next.
#[derive(Default)]
struct Position {
    value: Cell<u32>,
    meanwhile: RefCell<Option<Box<dyn FnOnce()>>>,
}

impl AtomicIndex for Position {
    fn load_acquire(&self) -> u32 {
        let value = self.value.get();
        if let Some(body) = self.meanwhile.take() {
            body();
        }
        value
    }

    fn store_release(&self, position: u32) {
        self.value.set(position);
    }

    fn wait_for(&self, position: u32) {
        assert_eq!(self.value.get(), position, "it would never end");
    }
}

struct Word(Cell<u64>);

impl AtomicClaim for Word {
    fn load_acquire(&self) -> u64 {
        self.0.get()
    }

    fn replace_release(&self, old: u64, new: u64) -> bool {
        let same = self.0.get() == old;
        if same {
            self.0.set(new);
        }
        same
    }

    fn store_relaxed(&self, new: u64) {
        self.0.set(new);
    }
}

struct Ring {
    producer: End<Word, Position>,
    consumer: End<Word, Position>,
}

impl Ring {
    fn new() -> Rc<Self> {
        let end = || End::new(0, |w| Word(Cell::new(w)), |_| Position::default());
        Rc::new(Self {
            producer: end(),
            consumer: end(),
        })
    }

    /// Puts `count` elements in; returns whether there was room.
    fn put(&self, count: u32) -> bool {
        let wanted = Wanted { count, all: true };
        let run = self.producer.claim(&self.consumer.tail, CAPACITY, wanted);
        run.map(|run| self.producer.publish(run)).is_some()
    }

    /// Takes `count` elements out; returns whether there were so many.
    fn take(&self, count: u32) -> bool {
        let wanted = Wanted { count, all: true };
        let run = self.consumer.claim(&self.producer.tail, 0, wanted);
        run.map(|run| self.consumer.publish(run)).is_some()
    }
}

/// Runs of elements, 2^32 less one in all.
fn almost_2_to_the_32() -> impl Iterator<Item = u32> {
    let runs = (1u64 << 32) / u64::from(CAPACITY);
    (1..runs).map(|_| CAPACITY).chain([CAPACITY - 1])
}

#[test]
fn a_consumer_does_not_take_what_is_gone() {
    let ring = Ring::new();
    assert!(ring.put(1));
    let others = ring.clone();
    ring.producer.tail.meanwhile.replace(Some(Box::new(move || {
        assert!(others.take(1));
        for run in almost_2_to_the_32() {
            assert!(others.put(run) && others.take(run));
        }
    })));
    // There was an element when it looked, but there is none any more.
    assert!(!ring.take(1));
}

#[test]
fn a_producer_does_not_overwrite_what_is_there() {
    let ring = Ring::new();
    assert!(ring.put(CAPACITY) && ring.take(1));
    let others = ring.clone();
    ring.consumer.tail.meanwhile.replace(Some(Box::new(move || {
        assert!(others.put(1));
        for run in almost_2_to_the_32() {
            assert!(others.take(run) && others.put(run));
        }
    })));
    // There was room when it looked, but there is none any more.
    assert!(!ring.put(1));
}
