// SPDX-License-Identifier: GPL-2.0

//! The lock-free list.

pub mod first;
pub mod head;

use crate::sync::atomic::Atomic;
use first::First;
use loom::cell::UnsafeCell;
use std::ptr;

/// An element, and its link to the next one.
pub(crate) struct Node {
    pub(crate) number: usize,
    pub(crate) next: UnsafeCell<*mut Node>,
}

impl Node {
    pub(crate) fn new(number: usize) -> Self {
        Self {
            number,
            next: UnsafeCell::new(ptr::null_mut()),
        }
    }

    /// Makes nodes with the numbers from 0 on. They are the caller's, as boxes.
    pub(crate) fn some(count: usize) -> Vec<*mut Node> {
        (0..count)
            .map(|number| Box::into_raw(Box::new(Self::new(number))))
            .collect()
    }
}

impl First {
    pub(crate) fn new() -> Self {
        Self(Atomic::new(ptr::null_mut()))
    }
}
