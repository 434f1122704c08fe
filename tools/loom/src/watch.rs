// SPDX-License-Identifier: GPL-2.0

//! Accesses to slots, which loom checks.
//!
//! The kernel's sources access them by raw pointers. Each such access begins with a function of
//! `core` that this crate replaces, and which tells loom by the address which slots it is to.

use loom::cell::UnsafeCell;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

/// Memory, and what stands for each element of it in the model.
#[derive(Clone)]
struct Memory {
    addresses: Range<usize>,
    elements: Rc<[UnsafeCell<()>]>,
}

thread_local! {
    // All threads of a model are one of the system.
    static MEMORY: RefCell<Vec<Memory>> = const { RefCell::new(Vec::new()) };
}

/// Memory is watched until this is dropped.
pub(crate) struct Watched(usize);

impl Watched {
    pub(crate) fn new<T>(start: *const T, count: usize) -> Self {
        let start = start.addr();
        let memory = Memory {
            addresses: start..start + count * size_of::<T>(),
            elements: (0..count).map(|_| UnsafeCell::new(())).collect(),
        };
        MEMORY.with_borrow_mut(|all| all.push(memory));
        Self(start)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let gone = MEMORY.with_borrow_mut(|all| {
            let place = all
                .iter()
                .position(|memory| memory.addresses.start == self.0);
            place.map(|place| all.swap_remove(place))
        });
        drop(gone);
    }
}

/// Tells loom of an access to `count` elements, if they are watched: nothing else accesses them.
pub(crate) fn accessed<T>(first: *const T, count: usize) {
    let address = first.addr();
    let found = MEMORY.with_borrow(|all| {
        all.iter()
            .find(|memory| memory.addresses.contains(&address))
            .cloned()
    });
    let Some(memory) = found.filter(|_| !std::thread::panicking()) else {
        return;
    };
    let index = (address - memory.addresses.start) / size_of::<T>();
    for element in &memory.elements[index..index + count] {
        element.with_mut(|_| ());
    }
}
