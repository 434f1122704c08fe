// SPDX-License-Identifier: GPL-2.0

//! The kernel's combining list, whose ordering is in `rust/kernel/net/combiner/role.rs`.
//!
//! C code that uses the same list is modelled as it is written in `__dev_xmit_skb()`.

use crate::kernel::role::{Added, Depth, Word, add, finish, take, take_last};
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
    first: Acquire,
    add: Release,
    take: AcqRel,
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

    fn occupy(&self) -> Result<(), usize> {
        self.value
            .compare_exchange(Self::IDLE, Self::BUSY, self.orderings.first, Relaxed)
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

    fn exchange(&self, new: usize) -> usize {
        self.value.swap(new, self.orderings.take)
    }
}

struct Count(AtomicUsize);

impl Depth for Count {
    fn increment(&self) -> usize {
        self.0.fetch_add(1, Relaxed)
    }

    fn reset(&self) {
        self.0.store(0, Relaxed);
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
            // SAFETY: loom checks that nothing else accesses the element.
            self.next[new].with_mut(|next| unsafe { *next = older });
        })
    }

    /// As in C: an element that finds no thread at work is put on the list as well.
    fn add_in_c(&self, new: usize) -> Added {
        let mut old = self.first.load_relaxed();
        let mut counted = false;
        loop {
            if old != First::IDLE && !counted {
                if self.depth.increment() >= 9 {
                    return Added::Refused;
                }
                counted = true;
            }
            let older = (old != First::IDLE && old != First::BUSY).then_some(old);
            // SAFETY: loom checks that nothing else accesses the element.
            self.next[new].with_mut(|next| unsafe { *next = older });
            let replaced = self.first.value.compare_exchange(old, new, AcqRel, Relaxed);
            match replaced {
                Ok(_) if old == First::IDLE => return Added::First,
                Ok(_) => return Added::Behind,
                Err(now) => old = now,
            }
        }
    }

    /// Puts elements to those that are done, oldest first, and returns how many they are.
    fn work(&self, own: Option<usize>, newest: Option<usize>) -> usize {
        let mut taken = Vec::new();
        let mut rest = newest;
        while let Some(element) = rest {
            taken.push(element);
            // SAFETY: loom checks that nothing else accesses the element.
            rest = self.next[element].with(|next| unsafe { *next });
        }
        taken.extend(own);
        taken.reverse();
        // SAFETY: loom checks that no other thread is at work.
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
            let mut own = Some(element);
            loop {
                let newest = take(&self.first, &self.depth);
                if own.is_some() || newest.is_some() {
                    self.work(own.take(), newest);
                } else if finish(&self.first) {
                    break;
                }
            }
        }
    }

    /// Likewise, but with one batch per turn, under the lock.
    fn add_and_hand_over(&self, elements: &[usize]) {
        for &element in elements {
            if self.add(element, 9) == Added::First {
                let _guard = self.lock.lock().expect("no thread panics");
                let newest = take_last(&self.first, &self.depth);
                self.work(Some(element), newest);
            }
        }
    }

    /// Likewise, and stays for another batch, under the lock.
    fn add_under_the_lock(&self, elements: &[usize]) {
        for &element in elements {
            if self.add(element, 9) == Added::First {
                let _guard = self.lock.lock().expect("no thread panics");
                let newest = take(&self.first, &self.depth);
                self.work(Some(element), newest);
                let newest = take_last(&self.first, &self.depth);
                self.work(None, newest);
            }
        }
    }

    /// As in C, where the own element is on the list.
    fn add_and_hand_over_in_c(&self, elements: &[usize]) {
        for &element in elements {
            if self.add_in_c(element) == Added::First {
                let _guard = self.lock.lock().expect("no thread panics");
                let newest = self.first.exchange(First::IDLE);
                self.depth.reset();
                self.work(None, Some(newest));
            }
        }
    }

    /// The results, if no element is left.
    fn end(&self) -> Vec<usize> {
        assert_eq!(self.first.load_relaxed(), First::IDLE);
        // SAFETY: loom checks that no other thread is at work.
        self.done.with(|done| unsafe { (*done).clone() })
    }
}

/// Every interleaving with so many switches away from a thread that could go on.
fn model(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(test);
}

/// A way to add elements.
type Way = fn(&List, &[usize]);

/// Two threads add elements in one way; all are done, in order per thread.
fn two_add(orderings: Orderings, way: Way) {
    two_differ(orderings, way, way);
}

/// Likewise, each in its own way.
fn two_differ(orderings: Orderings, way: Way, others: Way) {
    model(3, move || {
        let list = List::new(orderings);
        let other = {
            let list = list.clone();
            thread::spawn(move || others(&list, &[2]))
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
fn who_does_both_loses_nothing() {
    two_add(RIGHT, List::add_under_the_lock);
}

#[test]
fn c_code_and_rust_code_share_a_list() {
    two_differ(
        RIGHT,
        List::add_under_the_lock,
        List::add_and_hand_over_in_c,
    );
    two_differ(
        RIGHT,
        List::add_and_hand_over_in_c,
        List::add_under_the_lock,
    );
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
        let newest = take_last(&list.first, &list.depth);
        list.work(Some(0), newest);
        let added = others.map(|other| other.join().expect("it ends"));
        let turns: Vec<_> = (1..)
            .zip(added)
            .filter(|&(_, added)| added == Added::First)
            .collect();
        match turns[..] {
            [] => {}
            [(own, _)] => {
                let newest = take_last(&list.first, &list.depth);
                list.work(Some(own), newest);
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
fn who_is_first_must_acquire() {
    let orderings = Orderings {
        first: Relaxed,
        ..RIGHT
    };
    two_add(orderings, List::add_and_stay);
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
