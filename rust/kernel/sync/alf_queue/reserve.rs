// SPDX-License-Identifier: GPL-2.0

//! Sharing one end of an array-based queue between several users.
//!
//! As in [`index`], nothing here depends on the rest of the kernel, so that the same source runs
//! under a model checker on the host.
//!
//! A user of a shared end *claims* a run of positions with one compare-and-exchange, accesses
//! their slots, waits until the end has published everything before its run, and publishes its own.
//! So the other end sees a single advancing position, and works the same whether this end is shared
//! or not.
//!
//! # Ordering
//!
//! There are three edges, and no full barrier:
//!
//! - *Slots, between the ends.* As with unique ends, a release store of the position that an end
//!   publishes, and an acquire load of it by the other end.
//! - *Slots, along one end.* The position that the other end acquires from the last user of an end
//!   must cover the slots of all users before. Each user reads the position that its predecessor
//!   published before it overwrites that with its own, so the release stores form a chain. In the
//!   kernel's memory model, a release covers what a relaxed load before it has observed; the memory
//!   model of the language, which the model checker uses, requires an acquire load. That is what
//!   [`AtomicIndex::wait_for`] does: the load is needed in any case, and an acquire costs little or
//!   nothing on all relevant architectures.
//! - *The cached position, along one end.* A claim carries its user's view of the other end's
//!   position, and the next user builds on it: acquire when it reads the claim, release when it
//!   replaces it. Besides, a user that has read a claim cannot read an older position of the other
//!   end than the one in the claim. Without that, a queue that is never empty could seem so.
//!
//! The compare-and-exchange orders the users of an end by a single location, which needs no
//! barrier. The slots of a run are not accessed before the claim: the accesses are conditional on
//! it, and come after the acquire load of the other end's position.
//!
//! [`index`]: super::index

use super::index::AtomicIndex;

/// The operations that a shared end needs on the atomic word for claiming positions.
pub(crate) trait AtomicClaim {
    /// Reads the word, with acquire ordering.
    fn load_acquire(&self) -> u64;

    /// Replaces the word with `new` if it is `old`, with release ordering. Returns false, without
    /// any ordering, if it is not.
    fn replace_release(&self, old: u64, new: u64) -> bool;

    /// Overwrites the word, without ordering.
    fn store_relaxed(&self, new: u64);
}

/// The state of an end of a queue.
///
/// It is aligned to two cache lines, since CPUs that prefetch adjacent lines would otherwise cause
/// false sharing between the ends.
///
/// # Invariants
///
/// - `claim` holds the first unclaimed position, and a position that the other end has published,
///   see [`Claim`]. It is used only if the end is shared.
/// - All positions before `tail` have been published by this end.
#[repr(align(128))]
pub(crate) struct End<C, P> {
    claim: C,
    pub(crate) tail: P,
}

/// A claim, unpacked.
///
/// Both parts are in one word, so that one compare-and-exchange keeps them consistent: `seen` is
/// never older than the claim that it is used for, the difference of the two is never out of range,
/// and a delayed user cannot restore an old value. It also means that the other end's cache line is
/// accessed only when the cached position does not suffice.
#[derive(Clone, Copy)]
struct Claim {
    head: u32,
    seen: u32,
}

impl Claim {
    #[inline(always)]
    fn unpack(word: u64) -> Self {
        Self {
            // CAST: The upper half fits; the second cast selects the lower half.
            head: (word >> 32) as u32,
            seen: word as u32,
        }
    }

    #[inline(always)]
    fn pack(self) -> u64 {
        u64::from(self.head) << 32 | u64::from(self.seen)
    }

    /// Returns the number of positions from the head up to `seen` plus `lead`.
    ///
    /// By the invariants of [`End`], this does not wrap. If the claim is not the current one any
    /// more, the number may be too large, but then replacing the claim fails.
    #[inline(always)]
    fn room(self, lead: u32) -> u32 {
        self.seen.wrapping_add(lead).wrapping_sub(self.head)
    }
}

/// A request for positions.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) count: u32,
    /// Claim all `count` positions, or none.
    pub(crate) all: bool,
}

/// A run of positions that one user of an end has claimed.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) start: u32,
    pub(crate) count: u32,
}

impl<C: AtomicClaim, P: AtomicIndex> End<C, P> {
    /// Returns an end at the position `start` of an empty ring.
    ///
    /// `claim` creates the word, and `position` the position.
    pub(crate) fn new(
        start: u32,
        claim: impl FnOnce(u64) -> C,
        position: impl FnOnce(u32) -> P,
    ) -> Self {
        // INVARIANT: Nothing has been claimed, and nothing published.
        Self {
            claim: claim(
                Claim {
                    head: start,
                    seen: start,
                }
                .pack(),
            ),
            tail: position(start),
        }
    }

    /// Claims positions whose slots then belong to the caller until it publishes them.
    ///
    /// `other` is the position of the other end, and `lead` how far this end may be ahead of it:
    /// the capacity for producers, and 0 for consumers. Returns [`None`] if the request cannot be
    /// met, or is for no positions. The caller must publish the run soon: other users wait for it.
    #[inline(always)]
    pub(crate) fn claim(&self, other: &P, lead: u32, wanted: Wanted) -> Option<Run> {
        loop {
            let word = self.claim.load_acquire();
            let (next, run) = Self::next_claim(word, other, lead, wanted)?;
            if self.claim.replace_release(word, next) {
                return Some(run);
            }
        }
    }

    /// As [`Self::claim`], where the caller guarantees that there is no other user of this end.
    #[inline(always)]
    pub(crate) fn claim_alone(&self, other: &P, lead: u32, wanted: Wanted) -> Option<Run> {
        let word = self.claim.load_acquire();
        let (next, run) = Self::next_claim(word, other, lead, wanted)?;
        // The caller orders the next user of this end after us.
        self.claim.store_relaxed(next);
        Some(run)
    }

    /// Returns the word that replaces the claim `word`, and the run that it claims.
    #[inline(always)]
    fn next_claim(word: u64, other: &P, lead: u32, wanted: Wanted) -> Option<(u64, Run)> {
        let claim = Claim::unpack(word);
        let run = |count| Run {
            start: claim.head,
            count,
        };

        if wanted.count <= claim.room(lead) {
            if wanted.count == 0 {
                return None;
            }
            // The head is the upper half: it wraps with the word.
            let next = word.wrapping_add(u64::from(wanted.count) << 32);
            return Some((next, run(wanted.count)));
        }

        let fresh = Claim {
            seen: other.load_acquire(),
            ..claim
        };
        let room = fresh.room(lead);
        let count = if wanted.count <= room {
            wanted.count
        } else if wanted.all || room == 0 {
            return None;
        } else {
            room
        };
        let next = Claim {
            head: claim.head.wrapping_add(count),
            ..fresh
        };
        Some((next.pack(), run(count)))
    }

    /// Publishes the run, after all earlier claims have been published.
    #[inline(always)]
    pub(crate) fn publish(&self, run: Run) {
        self.tail.wait_for(run.start);
        self.publish_alone(run);
    }

    /// As [`Self::publish`], of a run that was claimed by [`Self::claim_alone`].
    #[inline(always)]
    pub(crate) fn publish_alone(&self, run: Run) {
        self.tail.store_release(run.start.wrapping_add(run.count));
    }
}
