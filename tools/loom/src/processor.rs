// SPDX-License-Identifier: GPL-2.0

//! What the kernel's sources find under `crate::processor`.

/// Lets the other threads go on: there is nothing to wait for without them.
pub(crate) fn cpu_relax() {
    loom::thread::yield_now();
}
