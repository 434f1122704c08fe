// SPDX-License-Identifier: GPL-2.0

//! What CPUs exchange magazines with.

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

/// Two queues of magazines: of those with objects, and of empty ones.
///
/// All magazines there are were made with the pool, and each CPU has two of them at any time, so
/// the depot has the rest. There is room for all of them in each queue: nothing that is put into
/// the depot is refused, and nothing needs to be allocated when the pool is in use.
pub(super) struct Depot {
    full: Mpmc<KBox<Magazine>>,
    empty: Mpmc<KBox<Magazine>>,
}

impl Depot {
    /// Makes a depot with room for `room` magazines.
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
        // If there was no room after all, it would be dropped, and its objects with it.
        let _ = queue.push(cx, magazine);
    }

    /// Exchanges an empty magazine for one with objects, and returns whether there was one.
    #[inline]
    pub(super) fn exchange_for_full(&self, cx: Softirq<'_>, magazine: &mut KBox<Magazine>) -> bool {
        self.full.pop(cx).is_some_and(|full| {
            self.put(cx, core::mem::replace(magazine, full));
            true
        })
    }

    /// Exchanges a magazine with objects for an empty one, and returns whether there was one.
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

    /// The number of magazines with objects, which changes while one looks.
    pub(super) fn full(&self) -> usize {
        self.full.len()
    }

    /// Gives objects back to the slab, at least `objects` of them if there are so many.
    pub(super) fn shrink(&self, cx: Softirq<'_>, objects: usize) -> usize {
        let mut done = 0;
        // Others may put in as much as is taken out: there is an end to it.
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
