// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `crate::processor` of the kernel's sources.

/// Lets the other threads go on: there is nothing to wait for without them.
pub(crate) fn cpu_relax() {
    loom::thread::yield_now();
}
