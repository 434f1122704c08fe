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
//! - *The known room, along one end.* A claim carries what its user knew of the other end's
//!   position, and the next user builds on it: acquire when it reads the claim, release when it
//!   replaces it. Besides, a user that has read a claim cannot read an older position of the other
//!   end than the one that the claim was made with. Without that, a queue that is never empty could
//!   seem so.
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
/// - `claim` holds the first unclaimed position, and how many positions there are at least to claim
///   from there on, see [`Claim`]. It is used only if the end is shared.
/// - All positions before `tail` have been published by this end.
#[repr(align(128))]
pub(crate) struct End<C, P> {
    claim: C,
    pub(crate) tail: P,
}

/// Maximum capacity of a queue.
pub(crate) const MAX_CAPACITY: u32 = 1 << 20;

/// A claim, as it is in the word.
///
/// The low bits are the *room*: the number of positions that can be claimed, as far as is known
/// from the last look at the other end's position. The bits above are the *head*, the first
/// unclaimed position. As both are in one word, one compare-and-exchange keeps them consistent, and
/// the other end's cache line is accessed only when the room known of does not suffice.
///
/// # Wrapping
///
/// A user looks at the other end's position after it has read the claim, and before it replaces
/// that. So the replacement must fail if others have replaced the claim in between, also if the
/// word has come back to what it was, or the user would bring an outdated position into it. Each
/// replacement advances the head, which has 43 bits, of which the lower 32 are the position: the
/// word comes back after 2^43 elements. Even with runs of [`MAX_CAPACITY`], copying so many takes
/// hours, and all of them would have to pass between two instructions of a user that is neither
/// preempted nor interrupted by softirqs.
#[derive(Clone, Copy)]
struct Claim(u64);

impl Claim {
    /// The number of bits of the room, which is at most the capacity.
    const ROOM_BITS: u32 = MAX_CAPACITY.ilog2() + 1;
    const ROOM: u64 = (1 << Self::ROOM_BITS) - 1;

    /// Returns the claim of an end at the position `start` that knows of no room.
    #[inline(always)]
    const fn new(start: u32) -> Self {
        // CAST: The head has more bits than a position.
        Self((start as u64) << Self::ROOM_BITS)
    }

    /// Returns the position of the head.
    #[inline(always)]
    const fn start(self) -> u32 {
        // CAST: A position is the lower bits of the head.
        (self.0 >> Self::ROOM_BITS) as u32
    }

    /// Returns the room.
    #[inline(always)]
    const fn room(self) -> u32 {
        // CAST: These are fewer bits.
        (self.0 & Self::ROOM) as u32
    }

    /// Returns the claim with a room of `room`, which is not less than before.
    #[inline(always)]
    const fn with_room(self, room: u32) -> Self {
        // CAST: By the invariants of `End`, the room fits. If this claim is not the current one any
        // more, it may not, but then replacing the claim fails.
        Self(self.0.wrapping_add(room.wrapping_sub(self.room()) as u64))
    }

    /// Returns the claim after `count` positions of its room have been claimed.
    #[inline(always)]
    const fn advance(self, count: u32) -> Self {
        // The head goes up by as much as the room goes down. The head is the upper bits: it wraps
        // with the word. CAST: The product of 21 and 32 bits fits.
        Self(self.0.wrapping_add((count as u64) * Self::ROOM))
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
            claim: claim(Claim::new(start).0),
            tail: position(start),
        }
    }

    /// Claims positions whose slots then belong to the caller until it publishes them.
    ///
    /// `other` is the position of the other end, and `lead` how far this end may be ahead of it:
    /// the capacity for producers, at most [`MAX_CAPACITY`], and 0 for consumers. Returns [`None`]
    /// if the request cannot be met, or is for no positions. The caller must publish the run soon:
    /// other users wait for it.
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
        let claim = Claim(word);
        let start = claim.start();

        if wanted.count <= claim.room() {
            if wanted.count == 0 {
                return None;
            }
            let count = wanted.count;
            return Some((claim.advance(count).0, Run { start, count }));
        }

        let room = (other.load_acquire().wrapping_add(lead)).wrapping_sub(start);
        let count = if wanted.count <= room {
            wanted.count
        } else if wanted.all || room == 0 {
            return None;
        } else {
            room
        };
        Some((claim.with_room(room).advance(count).0, Run { start, count }))
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
