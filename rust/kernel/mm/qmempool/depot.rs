// SPDX-License-Identifier: GPL-2.0

//! The depot, with which CPUs exchange magazines.

use super::{
    magazine::Magazine,
    shortage, //
};
use crate::{
    alloc::Flags,
    prelude::*,
    softirq::Softirq,
    sync::alf_queue::{
        mpmc,
        Mpmc, //
    }, //
};

/// Two queues of magazines: one of those with objects, and one of empty ones.
///
/// All magazines are allocated with the pool. Each CPU has two of them at any time, and the depot
/// has the others. Each queue has room for all of them: a push never fails, and a pool in use needs
/// no allocation.
pub(super) struct Depot {
    full: Mpmc<KBox<Magazine>>,
    empty: Mpmc<KBox<Magazine>>,
}

impl Depot {
    /// Creates a depot with room for `room` magazines.
    pub(super) fn new(room: usize, flags: Flags) -> Result<Self> {
        let capacity = room.checked_next_power_of_two().ok_or(EINVAL)?;

        let queue = || {
            shortage::step()?;
            mpmc(capacity, flags)
        };

        Ok(Self {
            full: queue()?,
            empty: queue()?,
        })
    }

    /// Puts a magazine into the queue to which it belongs.
    #[inline]
    pub(super) fn put(&self, cx: Softirq<'_>, magazine: KBox<Magazine>) {
        let queue = if magazine.len() == 0 {
            &self.empty
        } else {
            &self.full
        };
        // This never fails. Otherwise, the magazine would be dropped and free its objects.
        let _ = queue.push(cx, magazine);
    }

    /// Exchanges an empty magazine for one with objects. Returns false if there is none.
    #[inline]
    pub(super) fn exchange_for_full(&self, cx: Softirq<'_>, magazine: &mut KBox<Magazine>) -> bool {
        self.full.pop(cx).is_some_and(|full| {
            self.put(cx, core::mem::replace(magazine, full));
            true
        })
    }

    /// Exchanges a magazine with objects for an empty one. Returns false if there is none.
    #[inline]
    pub(super) fn exchange_for_empty(
        &self,
        cx: Softirq<'_>,
        magazine: &mut KBox<Magazine>,
    ) -> bool {
        self.empty.pop(cx).is_some_and(|empty| {
            self.put(cx, core::mem::replace(magazine, empty));
            true
        })
    }

    /// Returns the number of magazines with objects, which may change concurrently.
    pub(super) fn full(&self) -> usize {
        self.full.len()
    }

    /// Frees objects to the slab, at least `objects` if there are that many. Returns their number.
    pub(super) fn shrink(&self, cx: Softirq<'_>, objects: usize) -> usize {
        let mut done = 0;
        // Bounded, since other CPUs may push magazines at the same rate.
        for _ in 0..self.full.len() {
            if done >= objects {
                break;
            }
            let Some(mut magazine) = self.full.pop(cx) else {
                break;
            };
            // CAST: There are at most `magazine::MAX`.
            done += magazine.len() as usize;
            magazine.empty();
            self.put(cx, magazine);
        }
        done
    }
}
