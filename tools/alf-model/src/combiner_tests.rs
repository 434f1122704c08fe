// SPDX-License-Identifier: GPL-2.0

//! The kernel's combining list, whose ordering is in `rust/kernel/net/combiner/role.rs`.

use crate::role::{Added, Depth, Word, add, finish, take, take_last};
use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

/// The orderings that a test wants to see.
#[derive(Clone, Copy)]
struct Orderings {
    first: Ordering,
    add: Ordering,
    take: Ordering,
    finish: Ordering,
}

const RIGHT: Orderings = Orderings {
    first: AcqRel,
    add: Release,
    take: Acquire,
    finish: Release,
};

struct First {
    value: AtomicUsize,
    orderings: Orderings,
}

impl Word for First {
    type Pointer = usize;

    const IDLE: usize = usize::MAX;
    const BUSY: usize = usize::MAX - 1;

    fn load_relaxed(&self) -> usize {
        self.value.load(Relaxed)
    }

    fn replace_idle(&self, new: usize) -> Result<(), usize> {
        self.value
            .compare_exchange(Self::IDLE, new, self.orderings.first, Relaxed)
            .map(|_| ())
    }

    fn replace_release(&self, old: usize, new: usize) -> Result<(), usize> {
        let ordering = if new == Self::IDLE {
            self.orderings.finish
        } else {
            self.orderings.add
        };
        self.value
            .compare_exchange(old, new, ordering, Relaxed)
            .map(|_| ())
    }

    fn exchange_acquire(&self, new: usize) -> usize {
        self.value.swap(new, self.orderings.take)
    }
}

struct Count(AtomicUsize);

impl Depth for Count {
    fn increment(&self) -> usize {
        self.0.fetch_add(1, Relaxed)
    }

    fn undo(&self) {
        self.subtract(1);
    }
}

impl Count {
    fn subtract(&self, count: usize) {
        let before = self.0.fetch_sub(count, Relaxed);
        assert!(before >= count, "more taken off than was added");
    }
}

/// A list of up to four elements, and what the combiner works on.
struct List {
    first: First,
    depth: Count,
    next: Vec<UnsafeCell<Option<usize>>>,
    lock: Mutex<()>,
    done: UnsafeCell<Vec<usize>>,
}

// SAFETY: Not so in general; that all of it is accessed in order is what loom checks.
unsafe impl Sync for List {}
// SAFETY: There are numbers in it.
unsafe impl Send for List {}

impl List {
    fn new(orderings: Orderings) -> Arc<Self> {
        Arc::new(Self {
            first: First {
                value: AtomicUsize::new(First::IDLE),
                orderings,
            },
            depth: Count(AtomicUsize::new(0)),
            next: (0..4).map(|_| UnsafeCell::new(None)).collect(),
            lock: Mutex::new(()),
            done: UnsafeCell::new(Vec::new()),
        })
    }

    fn add(&self, new: usize, limit: usize) -> Added {
        add(&self.first, &self.depth, limit, new, |older| {
            // SAFETY: loom checks that nobody else accesses the element.
            self.next[new].with_mut(|next| unsafe { *next = older });
        })
    }

    /// Puts elements to those that are done, oldest first, and returns how many they are.
    fn work(&self, newest: usize, uncounted: usize) -> usize {
        let mut taken = vec![newest];
        // SAFETY: loom checks that nobody else accesses the element.
        while let Some(older) = self.next[taken[taken.len() - 1]].with(|next| unsafe { *next }) {
            taken.push(older);
        }
        self.depth.subtract(taken.len() - uncounted);
        taken.reverse();
        // SAFETY: loom checks that nobody else is at work.
        self.done.with_mut(|done| unsafe { (*done).extend(&taken) });
        taken.len()
    }

    /// Adds elements; works all off whenever the role falls to the caller.
    fn add_and_stay(&self, elements: &[usize]) {
        for &element in elements {
            match self.add(element, 9) {
                Added::Behind => continue,
                Added::Refused => panic!("there is room"),
                Added::First => {}
            }
            let newest = take(&self.first).expect("the own element is there");
            self.work(newest, 1);
            while !finish(&self.first) {
                if let Some(newest) = take(&self.first) {
                    self.work(newest, 0);
                }
            }
        }
    }

    /// Likewise, but with one batch per turn, under the lock.
    fn add_and_hand_over(&self, elements: &[usize]) {
        for &element in elements {
            if self.add(element, 9) == Added::First {
                let _guard = self.lock.lock().expect("nobody panics");
                let newest = take_last(&self.first).expect("the own element is there");
                self.work(newest, 1);
            }
        }
    }

    /// What was done, if there is nothing left.
    fn end(&self) -> Vec<usize> {
        assert_eq!(self.first.load_relaxed(), First::IDLE);
        assert_eq!(self.depth.0.load(Relaxed), 0);
        // SAFETY: loom checks that nobody else is at work.
        self.done.with(|done| unsafe { (*done).clone() })
    }
}

/// Every interleaving with so many switches away from a thread that could go on.
fn model(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(test);
}

/// Two threads add elements in one way; all are done, in order per thread.
fn two_add(orderings: Orderings, way: fn(&List, &[usize])) {
    model(3, move || {
        let list = List::new(orderings);
        let other = {
            let list = list.clone();
            thread::spawn(move || way(&list, &[2]))
        };
        way(&list, &[0, 1]);
        other.join().expect("it ends");
        let done = list.end();
        assert!(done.contains(&2) && done.len() == 3, "{done:?}");
        assert!(done.into_iter().filter(|&n| n != 2).eq([0, 1]));
    });
}

#[test]
fn who_stays_does_everything() {
    two_add(RIGHT, List::add_and_stay);
}

#[test]
fn who_hands_over_loses_nothing() {
    two_add(RIGHT, List::add_and_hand_over);
}

#[test]
fn three_add() {
    model(2, || {
        let list = List::new(RIGHT);
        let others = [1, 2].map(|element| {
            let list = list.clone();
            thread::spawn(move || list.add_and_stay(&[element]))
        });
        list.add_and_stay(&[0]);
        for other in others {
            other.join().expect("it ends");
        }
        let mut done = list.end();
        done.sort_unstable();
        assert_eq!(done, [0, 1, 2]);
    });
}

/// With a limit of one, a third element finds room or not; none gets lost, none is done twice.
#[test]
fn refused_is_not_added() {
    model(2, || {
        let list = List::new(RIGHT);
        // The role is ours.
        assert_eq!(list.add(0, 1), Added::First);
        let others = [1, 2].map(|element| {
            let list = list.clone();
            thread::spawn(move || list.add(element, 1))
        });
        let newest = take_last(&list.first).expect("the own element is there");
        list.work(newest, 1);
        let added = others.map(|other| other.join().expect("it ends"));
        let turns = added.iter().filter(|&&added| added == Added::First);
        match turns.count() {
            0 => {}
            1 => {
                let newest = take_last(&list.first).expect("an element is there");
                list.work(newest, 1);
            }
            _ => panic!("two have the role"),
        }
        let mut expected = vec![0];
        for (element, added) in (1..).zip(added) {
            if added != Added::Refused {
                expected.push(element);
            }
        }
        let mut done = list.end();
        done.sort_unstable();
        assert_eq!(done, expected);
        // There is room for one.
        assert!(done.len() >= 2);
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn adding_must_release() {
    let orderings = Orderings {
        first: Acquire,
        add: Relaxed,
        ..RIGHT
    };
    two_add(orderings, List::add_and_hand_over);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn taking_must_acquire() {
    let orderings = Orderings {
        take: Relaxed,
        ..RIGHT
    };
    two_add(orderings, List::add_and_hand_over);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn finishing_must_release() {
    let orderings = Orderings {
        finish: Relaxed,
        ..RIGHT
    };
    two_add(orderings, List::add_and_stay);
}
