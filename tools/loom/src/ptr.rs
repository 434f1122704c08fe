// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `core::ptr` in the kernel's sources.

pub(crate) use std::ptr::*;

use crate::watch;

/// Copies elements, from slots or to them.
///
/// # Safety
///
/// As for that of `core`.
pub(crate) unsafe fn copy_nonoverlapping<T>(from: *const T, to: *mut T, count: usize) {
    watch::accessed(from, count);
    watch::accessed(to, count);
    // SAFETY: By the safety requirements.
    unsafe { std::ptr::copy_nonoverlapping(from, to, count) };
}
