// SPDX-License-Identifier: GPL-2.0

//! The kernel's lock-free list.

use crate::kernel::llist::Node;
use crate::kernel::llist::first::First;
use crate::kernel::llist::head::{AtomicFirst, add};
use loom::sync::Arc;
use loom::thread;

/// A list of up to four nodes.
struct List {
    first: First,
    nodes: Vec<*mut Node>,
}

// SAFETY: Not true in general: loom checks that the nodes are accessed in order.
unsafe impl Sync for List {}
// SAFETY: The nodes hold numbers.
unsafe impl Send for List {}

impl List {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            first: First::new(),
            nodes: Node::some(4),
        })
    }

    /// Adds `new` and what follows it up to `last`; returns whether the list was empty.
    fn add(&self, new: usize, last: usize) -> bool {
        add(&self.first, self.nodes[new], |old| self.link(last, old)).is_null()
    }

    /// Makes `next` follow a node.
    fn link(&self, node: usize, next: *mut Node) {
        // SAFETY: Nodes are never freed, and loom checks that nothing else accesses this one.
        unsafe { (*self.nodes[node]).next.with_mut(|link| *link = next) };
    }

    fn take_all(&self) -> Vec<usize> {
        let mut numbers = Vec::new();
        let mut node = self.first.take_acquire();
        while !node.is_null() {
            // SAFETY: As above.
            unsafe {
                numbers.push((*node).number);
                node = (*node).next.with(|next| *next);
            }
        }
        numbers
    }
}

impl Drop for List {
    fn drop(&mut self) {
        for node in self.nodes.drain(..) {
            // SAFETY: They came from boxes, and all threads have ended.
            drop(unsafe { Box::from_raw(node) });
        }
    }
}

/// Two threads add, and one takes meanwhile and in the end.
#[test]
fn two_add_and_one_takes() {
    loom::model(|| {
        let list = List::new();
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
fn two_take_what_one_adds() {
    loom::model(|| {
        let list = List::new();
        let taker = {
            let list = list.clone();
            thread::spawn(move || list.take_all())
        };
        assert!(list.add(0, 0));
        // Two nodes at once: 2 is linked to 1, and 1 becomes the last one.
        list.link(2, list.nodes[1]);
        list.add(2, 1);
        let mut taken = list.take_all();
        taken.extend(taker.join().expect("it ends"));
        taken.sort_unstable();
        assert_eq!(taken, [0, 1, 2]);
    });
}
