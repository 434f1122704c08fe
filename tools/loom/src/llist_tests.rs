// SPDX-License-Identifier: GPL-2.0

//! The kernel's lock-free list, whose ordering is in `rust/kernel/sync/llist/head.rs`.

use crate::kernel::head::{AtomicFirst, add};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

/// Points to no node.
const NONE: usize = usize::MAX;

/// The pointer to the first node, with the orderings that a test wants to see.
struct First {
    value: AtomicUsize,
    replace: Ordering,
    take: Ordering,
}

impl AtomicFirst for First {
    type Pointer = usize;

    fn load_relaxed(&self) -> usize {
        self.value.load(Relaxed)
    }

    fn replace_release(&self, old: usize, new: usize) -> Result<(), usize> {
        self.value
            .compare_exchange(old, new, self.replace, Relaxed)
            .map(|_| ())
    }

    fn take_acquire(&self) -> usize {
        self.value.swap(NONE, self.take)
    }
}

/// A list of up to four nodes.
struct List {
    first: First,
    next: Vec<UnsafeCell<usize>>,
}

// SAFETY: Not so in general; that the nodes are accessed in order is what loom checks.
unsafe impl Sync for List {}
// SAFETY: The nodes hold numbers.
unsafe impl Send for List {}

impl List {
    fn new(replace: Ordering, take: Ordering) -> Arc<Self> {
        Arc::new(Self {
            first: First {
                value: AtomicUsize::new(NONE),
                replace,
                take,
            },
            next: (0..4).map(|_| UnsafeCell::new(NONE)).collect(),
        })
    }

    /// Adds `new` and what follows it up to `last`; returns whether the list was empty.
    fn add(&self, new: usize, last: usize) -> bool {
        // SAFETY: loom checks that nothing else accesses the node.
        let link = |old| self.next[last].with_mut(|next| unsafe { *next = old });
        add(&self.first, new, link) == NONE
    }

    fn take_all(&self) -> Vec<usize> {
        let mut nodes = Vec::new();
        let mut node = self.first.take_acquire();
        while node != NONE {
            nodes.push(node);
            // SAFETY: loom checks that nothing else accesses the node.
            node = self.next[node].with(|next| unsafe { *next });
        }
        nodes
    }
}

/// Two threads add, and one takes meanwhile and in the end.
fn add_and_take(replace: Ordering, take: Ordering) {
    loom::model(move || {
        let list = List::new(replace, take);
        let adders: Vec<_> = [0, 1]
            .map(|node| {
                let list = list.clone();
                thread::spawn(move || u32::from(list.add(node, node)))
            })
            .into();
        let mut takes = 0;
        let mut taken = Vec::new();
        for _ in 0..2 {
            let some = list.take_all();
            takes += u32::from(!some.is_empty());
            taken.extend(some);
            thread::yield_now();
        }
        let empty: u32 = (adders.into_iter())
            .map(|adder| adder.join().expect("it ends"))
            .sum();
        let rest = list.take_all();
        takes += u32::from(!rest.is_empty());
        taken.extend(rest);
        taken.sort_unstable();
        assert_eq!(taken, [0, 1]);
        // Whatever was taken, one found the list empty before.
        assert_eq!(takes, empty);
    });
}

#[test]
fn two_add_and_one_takes() {
    add_and_take(Release, Acquire);
}

#[test]
fn two_take_what_one_adds() {
    loom::model(|| {
        let list = List::new(Release, Acquire);
        let taker = {
            let list = list.clone();
            thread::spawn(move || list.take_all())
        };
        assert!(list.add(0, 0));
        // Two nodes at once: 2 is linked to 1, and 1 becomes the last one.
        // SAFETY: loom checks that nothing else accesses the node.
        list.next[2].with_mut(|next| unsafe { *next = 1 });
        list.add(2, 1);
        let mut taken = list.take_all();
        taken.extend(taker.join().expect("it ends"));
        taken.sort_unstable();
        assert_eq!(taken, [0, 1, 2]);
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn adding_must_release() {
    add_and_take(Relaxed, Acquire);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn taking_must_acquire() {
    add_and_take(Release, Relaxed);
}
