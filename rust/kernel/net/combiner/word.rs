// SPDX-License-Identifier: GPL-2.0

//! The words of a combiner, and the ordering of each access to them.
//!
//! [`role`] argues what each of the orderings is for. The model checker on the host compiles this
//! file too, over atomics of its own, so what it checks are the orderings below.
//!
//! [`role`]: super::role

use super::role::{
    Depth,
    Word, //
};
use crate::sync::{
    atomic::{
        Acquire,
        Atomic,
        Full,
        Relaxed,
        Release, //
    },
    llist::Node, //
};
use core::ptr;

/// Not the address of a node, as nodes are aligned.
pub(super) const BUSY: usize = 1;

/// The word of a combiner, see [`role`](super::role).
#[repr(transparent)]
pub(crate) struct RoleWord(pub(super) Atomic<*mut Node>);

impl Word for RoleWord {
    type Pointer = *mut Node;

    const IDLE: *mut Node = ptr::null_mut();
    const BUSY: *mut Node = ptr::without_provenance_mut(BUSY);

    #[inline(always)]
    fn load_relaxed(&self) -> *mut Node {
        self.0.load(Relaxed)
    }

    #[inline(always)]
    fn occupy(&self) -> Result<(), *mut Node> {
        self.0.cmpxchg(Self::IDLE, Self::BUSY, Acquire).map(|_| ())
    }

    #[inline(always)]
    fn replace_release(&self, old: *mut Node, new: *mut Node) -> Result<(), *mut Node> {
        self.0.cmpxchg(old, new, Release).map(|_| ())
    }

    #[inline(always)]
    fn exchange(&self, new: *mut Node) -> *mut Node {
        self.0.xchg(new, Full)
    }
}

/// Roughly the number of elements that were added since the list was last taken.
#[repr(transparent)]
pub(crate) struct Behind(pub(super) Atomic<isize>);

impl Depth for Behind {
    #[inline(always)]
    fn increment(&self) -> usize {
        // CAST: It counts up from zero.
        self.0.fetch_add(1isize, Relaxed) as usize
    }

    #[inline(always)]
    fn reset(&self) {
        self.0.store(0isize, Relaxed);
    }
}
