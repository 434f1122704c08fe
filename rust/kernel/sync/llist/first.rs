// SPDX-License-Identifier: GPL-2.0

//! The pointer to the first node of a list, and the ordering of each access to it.
//!
//! [`head`] argues what each of the orderings is for. The model checker on the host compiles this
//! file too, over atomics of its own, so what it checks are the orderings below.
//!
//! [`head`]: super::head

use super::head::AtomicFirst;
use crate::sync::{
    atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
    llist::Node, //
};
use core::ptr;

/// The pointer to the first node.
pub(crate) struct First(pub(super) Atomic<*mut Node>);

impl AtomicFirst for First {
    type Pointer = *mut Node;

    #[inline(always)]
    fn load_relaxed(&self) -> *mut Node {
        self.0.load(Relaxed)
    }

    #[inline(always)]
    fn replace_release(&self, old: *mut Node, new: *mut Node) -> Result<(), *mut Node> {
        self.0.cmpxchg(old, new, Release).map(|_| ())
    }

    #[inline(always)]
    fn take_acquire(&self) -> *mut Node {
        self.0.xchg(ptr::null_mut(), Acquire)
    }
}
