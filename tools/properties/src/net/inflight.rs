// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `kernel::net::inflight`.

use std::cell::Cell;

/// The limits of a packet.
#[expect(dead_code, reason = "the rings read them")]
pub(crate) struct Limits {
    pub(crate) segment_len: u32,
    pub(crate) packet_len: u32,
    pub(crate) descriptors: usize,
}

/// The descriptors of a ring.
pub(crate) struct Descriptors<'a>(pub(crate) &'a [Cell<[u64; 2]>]);

impl Descriptors<'_> {
    pub(crate) fn write(&self, index: usize, words: [u64; 2]) {
        self.0[index % self.0.len()].set(words);
    }

    pub(crate) fn status(&self, index: usize) -> u64 {
        self.0[index % self.0.len()].get()[1]
    }
}
