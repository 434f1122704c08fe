// SPDX-License-Identifier: GPL-2.0

//! Work that takes a given number of cycles.

use core::hint::black_box;

/// Cycles per step: three for the multiplication, on common CPUs, and one for the addition.
const STEP: u32 = 4;

/// A chain of dependent operations: each one waits for the result of the previous one.
pub(crate) struct Work(u64);

impl Work {
    pub(crate) const fn new() -> Self {
        Self(3)
    }

    /// Spends about this many cycles.
    ///
    /// Without the dependency, the CPU would execute several steps in parallel. Squaring keeps the
    /// compiler from folding several steps into one, which it could do with a linear function.
    #[inline(always)]
    pub(crate) fn spend(&mut self, cycles: u32) {
        let mut value = black_box(self.0);
        for _ in 0..cycles / STEP {
            value = value.wrapping_mul(value).wrapping_add(0x9e37_79b9);
        }
        self.0 = black_box(value);
    }
}
