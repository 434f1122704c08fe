// SPDX-License-Identifier: GPL-2.0

//! The atomic words of an array-based queue, and the ordering of each access to them.
//!
//! [`index`] and [`reserve`] argue what each of the orderings is for. The model checker on the host
//! compiles this file too, over atomics of its own, so what it checks are the orderings below.
//!
//! [`index`]: super::index
//! [`reserve`]: super::reserve

use super::{
    index::AtomicIndex,
    reserve::AtomicClaim, //
};
use crate::{
    processor::cpu_relax,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    }, //
};

/// A position that one end publishes, and the other end reads.
pub(crate) struct Position(Atomic<u32>);

impl Position {
    #[inline]
    pub(crate) fn new(position: u32) -> Self {
        Self(Atomic::new(position))
    }

    /// Reads the position when there are no other users any more.
    #[inline]
    pub(crate) fn load_last(&self) -> u32 {
        // The last reference to the ring was dropped after their accesses.
        self.0.load(Relaxed)
    }
}

impl AtomicIndex for Position {
    #[inline(always)]
    fn load_acquire(&self) -> u32 {
        self.0.load(Acquire)
    }

    #[inline(always)]
    fn store_release(&self, position: u32) {
        self.0.store(position, Release)
    }

    #[inline(always)]
    fn wait_for(&self, position: u32) {
        while self.0.load(Acquire) != position {
            cpu_relax();
        }
    }
}

/// The word for claiming positions of a shared end.
pub(crate) struct Word(Atomic<u64>);

impl Word {
    #[inline]
    pub(crate) fn new(word: u64) -> Self {
        Self(Atomic::new(word))
    }
}

impl AtomicClaim for Word {
    #[inline(always)]
    fn load_acquire(&self) -> u64 {
        self.0.load(Acquire)
    }

    #[inline(always)]
    fn replace_release(&self, old: u64, new: u64) -> bool {
        self.0.cmpxchg(old, new, Release).is_ok()
    }

    #[inline(always)]
    fn store_relaxed(&self, new: u64) {
        self.0.store(new, Relaxed)
    }
}
