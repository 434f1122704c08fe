// SPDX-License-Identifier: GPL-2.0

//! How several users share one end of an array-based queue.
//!
//! Like [`index`], nothing here depends on the rest of the kernel, so that the same source runs
//! under a model checker on a host.
//!
//! A user of a shared end *claims* a run of positions with one compare-and-exchange, accesses
//! their slots, waits until the end has published everything before its run, and publishes its own.
//! So the other end sees a single position that moves on, whoever moved it, and works alike
//! whether this end is shared or not.
//!
//! # Ordering
//!
//! There are three edges, and no full barrier:
//!
//! - *Slots, between the ends.* As with unique ends, a release store of the position that an end
//!   publishes, and an acquire load of it by the other end.
//! - *Slots, along one end.* What the other end acquires from the last user of an end must cover
//!   the slots of the users before. Each user reads the position that its predecessor published
//!   before it overwrites it with its own, so the release stores form a chain. The memory model of
//!   the kernel lets a release cover what a relaxed load before it has observed; that of the
//!   language, in which the model checker works, asks for an acquire load. That is what
//!   [`AtomicIndex::wait_for`] does: the load is done in any case, and an acquire is free or
//!   nearly so on the processors that we know.
//! - *Knowledge, along one end.* A claim carries what its user knows of the other end, and the next
//!   user builds on it: acquire when it reads the claim, release when it is replaced. Besides,
//!   whoever has seen a claim cannot see an older position of the other end than the one that the
//!   claim was made with. Without that, an end that is never empty could seem so.
//!
//! The order among users of an end that the compare-and-exchange gives is that of one location,
//! which needs no barrier. Slots of a run are not touched before the claim: the loads and stores
//! depend on it in that they are not done without, and the acquire load of the other end's position
//! comes before.
//!
//! [`index`]: super::index

use super::index::AtomicIndex;

/// What a shared end needs of the atomic word that positions are claimed with.
pub(crate) trait AtomicClaim {
    /// Reads the word, with acquire ordering.
    fn load_acquire(&self) -> u64;

    /// Replaces the word with `new` if it is `old`, with release ordering, and tells whether it
    /// was; if not, nothing is ordered.
    fn replace_release(&self, old: u64, new: u64) -> bool;

    /// Overwrites the word, without ordering.
    fn store_relaxed(&self, new: u64);
}

/// The state of an end of a queue.
///
/// Everything is on cache lines of its own: two rather than one, since processors that fetch lines
/// in pairs would otherwise make the ends disturb each other.
///
/// # Invariants
///
/// - `claim` holds the first position that nobody claimed, and a position that the other end has
///   published, see [`Claim`]. It is used only if the end is shared.
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
/// and a user that was held up cannot bring an old value back. It also means that the other
/// end's cache line is needed only when what is known of it has been used up.
#[derive(Clone, Copy)]
struct Claim {
    head: u32,
    seen: u32,
}

impl Claim {
    #[inline(always)]
    fn unpack(word: u64) -> Self {
        Self {
            // CAST: The upper half fits, and the lower half is what is wanted.
            head: (word >> 32) as u32,
            seen: word as u32,
        }
    }

    #[inline(always)]
    fn pack(self) -> u64 {
        u64::from(self.head) << 32 | u64::from(self.seen)
    }

    /// Returns how many positions there are up to where the other end was seen, `lead` added.
    ///
    /// By the invariants of [`End`] this is never less than nothing. If the claim is not the
    /// current one any more, it may be too much: then the claim will not be replaced.
    #[inline(always)]
    fn room(self, lead: u32) -> u32 {
        self.seen.wrapping_add(lead).wrapping_sub(self.head)
    }
}

/// How many positions a user asks for.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) count: u32,
    /// Whether fewer positions are of no use.
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
    /// `claim` makes the word, and `position` the position.
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
    /// `other` is the position of the other end, and `lead` how far this end may be before it: the
    /// capacity for producers, and nothing for consumers. Returns [`None`] if there are not enough
    /// positions, or none. A caller that got a run must publish it soon: others wait for it.
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

    /// As [`Self::claim`], where the caller knows that nobody else uses this end meanwhile.
    #[inline(always)]
    pub(crate) fn claim_alone(&self, other: &P, lead: u32, wanted: Wanted) -> Option<Run> {
        let word = self.claim.load_acquire();
        let (next, run) = Self::next_claim(word, other, lead, wanted)?;
        // Who uses the end after us, our caller has ordered behind us.
        self.claim.store_relaxed(next);
        Some(run)
    }

    /// Returns what is to replace the claim `word`, and the run that is claimed then.
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
            // The head is the upper half, and wraps at the end of the word.
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

    /// Publishes the run, after everybody who claimed before has published theirs.
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
