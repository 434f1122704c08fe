// SPDX-License-Identifier: GPL-2.0

//! The kernel's combining list.
//!
//! C code that uses the same list is modelled as it is written in `__dev_xmit_skb()`.

use crate::kernel::combiner::role::{Added, Depth, Word, add, finish, take, take_last};
use crate::kernel::combiner::word::{Behind, RoleWord};
use crate::kernel::llist::Node;
use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::{Arc, Mutex};
use loom::thread;
use std::ptr;

/// A list of up to four elements, and the data that the combiner protects.
struct List {
    word: RoleWord,
    depth: Behind,
    nodes: Vec<*mut Node>,
    lock: Mutex<()>,
    done: UnsafeCell<Vec<usize>>,
}

// SAFETY: Not true in general: loom checks that all of it is accessed in order.
unsafe impl Sync for List {}
// SAFETY: There are numbers in it.
unsafe impl Send for List {}

impl List {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            word: RoleWord::new(),
            depth: Behind::new(),
            nodes: Node::some(4),
            lock: Mutex::new(()),
            done: UnsafeCell::new(Vec::new()),
        })
    }

    /// Makes `next` follow an element.
    fn link(&self, element: usize, next: Option<*mut Node>) {
        let next = next.unwrap_or(ptr::null_mut());
        // SAFETY: Elements are never freed, and loom checks that nothing else accesses this one.
        unsafe { (*self.nodes[element]).next.with_mut(|link| *link = next) };
    }

    fn add(&self, new: usize, limit: usize) -> Added {
        add(&self.word, &self.depth, limit, self.nodes[new], |older| {
            self.link(new, older);
        })
    }

    /// As in C: an element that finds no thread at work is put on the list as well.
    fn add_in_c(&self, new: usize) -> Added {
        let mut old = self.word.load_relaxed();
        let mut counted = false;
        loop {
            if old != RoleWord::IDLE && !counted {
                if self.depth.increment() >= 9 {
                    return Added::Refused;
                }
                counted = true;
            }
            self.link(new, Some(old).filter(|&old| old != RoleWord::BUSY));
            match self.word.replace_in_c(old, self.nodes[new]) {
                Ok(_) if old == RoleWord::IDLE => return Added::First,
                Ok(_) => return Added::Behind,
                Err(now) => old = now,
            }
        }
    }

    /// Puts elements to those that are done, oldest first, and returns how many they are.
    fn work(&self, own: Option<usize>, newest: Option<*mut Node>) -> usize {
        let mut taken = Vec::new();
        let mut rest = newest.unwrap_or(ptr::null_mut());
        while !rest.is_null() {
            // SAFETY: As in `link()`.
            unsafe {
                taken.push((*rest).number);
                rest = (*rest).next.with(|next| *next);
            }
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
                let newest = take(&self.word, &self.depth);
                if own.is_some() || newest.is_some() {
                    self.work(own.take(), newest);
                } else if finish(&self.word) {
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
                let newest = take_last(&self.word, &self.depth);
                self.work(Some(element), newest);
            }
        }
    }

    /// Likewise, and stays for another batch, under the lock.
    fn add_under_the_lock(&self, elements: &[usize]) {
        for &element in elements {
            if self.add(element, 9) == Added::First {
                let _guard = self.lock.lock().expect("no thread panics");
                let newest = take(&self.word, &self.depth);
                self.work(Some(element), newest);
                let newest = take_last(&self.word, &self.depth);
                self.work(None, newest);
            }
        }
    }

    /// As in C, where the own element is on the list.
    fn add_and_hand_over_in_c(&self, elements: &[usize]) {
        for &element in elements {
            if self.add_in_c(element) == Added::First {
                let _guard = self.lock.lock().expect("no thread panics");
                let newest = self.word.exchange(RoleWord::IDLE);
                self.depth.reset();
                self.work(None, Some(newest));
            }
        }
    }

    /// The results, if no element is left.
    fn end(&self) -> Vec<usize> {
        assert_eq!(self.word.load_relaxed(), RoleWord::IDLE);
        // SAFETY: loom checks that no other thread is at work.
        self.done.with(|done| unsafe { (*done).clone() })
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

/// Every interleaving with so many switches away from a thread that could go on.
fn model(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(test);
}

/// A way to add elements.
type Way = fn(&List, &[usize]);

/// Two threads add elements in one way; all are done, in order per thread.
fn two_add(way: Way) {
    two_differ(way, way);
}

/// Likewise, each in its own way.
fn two_differ(way: Way, others: Way) {
    model(3, move || {
        let list = List::new();
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
fn a_combiner_that_stays_does_everything() {
    two_add(List::add_and_stay);
}

#[test]
fn handing_over_loses_nothing() {
    two_add(List::add_and_hand_over);
}

#[test]
fn staying_and_handing_over_lose_nothing() {
    two_add(List::add_under_the_lock);
}

#[test]
fn c_code_and_rust_code_share_a_list() {
    two_differ(List::add_under_the_lock, List::add_and_hand_over_in_c);
    two_differ(List::add_and_hand_over_in_c, List::add_under_the_lock);
}

#[test]
fn three_add() {
    model(2, || {
        let list = List::new();
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
        let list = List::new();
        // The role is ours.
        assert_eq!(list.add(0, 1), Added::First);
        let others = [1, 2].map(|element| {
            let list = list.clone();
            thread::spawn(move || list.add(element, 1))
        });
        let newest = take_last(&list.word, &list.depth);
        list.work(Some(0), newest);
        let added = others.map(|other| other.join().expect("it ends"));
        let turns: Vec<_> = (1..)
            .zip(added)
            .filter(|&(_, added)| added == Added::First)
            .collect();
        match turns[..] {
            [] => {}
            [(own, _)] => {
                let newest = take_last(&list.word, &list.depth);
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
