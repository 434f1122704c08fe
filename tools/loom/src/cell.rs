// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `core::cell` in the kernel's sources.

pub(crate) use std::cell::Cell;

use crate::watch;

/// A cell of which an access begins with a pointer to it.
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    pub(crate) fn raw_get(this: *const Self) -> *mut T {
        watch::accessed(this, 1);
        std::cell::UnsafeCell::raw_get(this.cast())
    }
}
