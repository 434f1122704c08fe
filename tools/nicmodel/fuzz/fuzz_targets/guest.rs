// SPDX-License-Identifier: GPL-2.0
//! A guest whose every decision is the fuzzer's: registers, descriptors in memory, doorbells,
//! resets, faults, arriving frames, time.
//!
//! It must neither crash nor hang the model, within the fuzzer's limits on time and memory.
#![no_main]

mod hostile;

use hostile::{Guest, Source};
use libfuzzer_sys::fuzz_target;

/// The decisions that are left, as many bytes for each as it needs.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    /// A number of `len` bytes. When there are none left, everything is 0.
    fn number(&mut self, len: usize) -> u64 {
        let (now, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        now.iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

impl Source for Input<'_> {
    fn next(&mut self) -> u64 {
        self.number(8)
    }

    fn below(&mut self, limit: u64) -> u64 {
        let bits = u64::BITS - (limit - 1).leading_zeros();
        self.number(bits.div_ceil(8) as usize) % limit
    }

    fn is_used_up(&self) -> bool {
        self.0.is_empty()
    }
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let mapped = input.below(2) != 0;
    let mut guest = Guest::new(input, mapped);

    guest.set_up();
    while guest.step() {}
});
