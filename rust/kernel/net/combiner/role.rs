// SPDX-License-Identifier: GPL-2.0

//! The role of the combiner, and the memory ordering that goes with it.
//!
//! Nothing here depends on the rest of the kernel: the atomic operations come in through [`Word`]
//! and [`Depth`], so that the same source runs under a model checker on a host.
//!
//! One word holds the whole state. It is one of
//!
//! - *idle*: no elements, and no combiner;
//! - *busy*: a combiner, which has taken all elements;
//! - the newest element, from which the others are linked; there is a combiner.
//!
//! The CPU that replaces idle has the role of the combiner, and keeps the element it came with: no
//! other CPU needs to see it. It has the role until it puts idle back, by an exchange that takes
//! the last elements, or in place of busy. All other operations leave the word as something that is
//! not idle. So there is one combiner as long as there are elements, and never two.
//!
//! C code that knows idle (null) and elements only can use the same word. It must take busy for an
//! element that no others are linked from. It gets the role by putting an element in place of idle,
//! and gives it up when it takes them all.

/// The word.
///
/// Elements are written with plain accesses, and passed on along with everything they own.
///
/// - Adding an element: the CPU writes it, then makes it visible: release.
/// - Taking elements: the combiner exchanges the word, then reads them: acquire. All values of the
///   word come from read-modify-write operations, a chain of which hands on the releases of each of
///   its links. So the exchange is ordered after everything that any of the adding CPUs has
///   released.
/// - Giving up the role by putting idle in place of busy releases what the combiner has done. The
///   CPU that replaces idle is the next combiner, and is ordered after that: acquire.
/// - A CPU that sees an element on the list can rely on a combiner that will take it, and will look
///   at whatever there is to do afterwards. So the combiner's accesses after an exchange must not
///   be reordered before it: the exchange is a full barrier.
///
/// An exchange that leaves idle behind is not ordered before the accesses of the next combiner:
/// accesses of a combiner after that exchange are not protected by the role.
pub(crate) trait Word {
    /// Points to an element, or is one of the two values that do not.
    type Pointer: Copy + PartialEq;

    /// There is no combiner.
    const IDLE: Self::Pointer;
    /// There is a combiner, which has taken all elements.
    const BUSY: Self::Pointer;

    /// Reads the word, without ordering.
    fn load_relaxed(&self) -> Self::Pointer;

    /// Replaces idle with busy, with acquire ordering; returns the word if it is not idle.
    fn occupy(&self) -> Result<(), Self::Pointer>;

    /// Replaces `old` with `new`, with release ordering; returns the word if it is not `old`.
    fn replace_release(&self, old: Self::Pointer, new: Self::Pointer) -> Result<(), Self::Pointer>;

    /// Replaces the word with `new`, as a full barrier.
    fn exchange(&self, new: Self::Pointer) -> Self::Pointer;
}

/// Roughly the number of elements that were added, or refused, since the list was last taken.
///
/// It bounds the length of the list, and orders nothing.
pub(crate) trait Depth {
    /// Adds one, and returns the number before.
    fn increment(&self) -> usize;

    /// Starts again from zero.
    fn reset(&self);
}

/// The result of adding an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// There is a combiner, which will take it.
    Behind,
    /// There was none: the caller is the combiner now, and still has the element.
    First,
    /// There is a combiner, and about `limit` elements wait for it. It was not added.
    Refused,
}

/// Adds an element if there is a combiner to work it off, or makes the caller the combiner.
///
/// `link` is called with the element that was the newest one, if any, and makes it follow `new`.
///
/// The limit is not exact. The number and the list are not accessed in one atomic operation: an
/// element that is just being added when the list is taken, one per CPU, may go uncounted, or be
/// refused. The error does not accumulate, as the number begins at zero each time.
#[inline(always)]
pub(crate) fn add<W: Word>(
    word: &W,
    depth: &impl Depth,
    limit: usize,
    new: W::Pointer,
    mut link: impl FnMut(Option<W::Pointer>),
) -> Added {
    let mut old = word.load_relaxed();
    let mut counted = false;
    loop {
        let replaced = if old == W::IDLE {
            word.occupy()
        } else {
            if !counted {
                if depth.increment() >= limit {
                    return Added::Refused;
                }
                counted = true;
            }
            link((old != W::BUSY).then_some(old));
            word.replace_release(old, new)
        };
        match replaced {
            Ok(()) => break,
            Err(now) => old = now,
        }
    }
    if old != W::IDLE {
        return Added::Behind;
    }
    if counted {
        // Otherwise elements that were counted too late would add up until the next one takes some.
        depth.reset();
    }
    Added::First
}

/// Takes all elements; the caller stays the combiner.
///
/// Only the combiner may call this. It returns none if nothing was added.
#[inline(always)]
pub(crate) fn take<W: Word>(word: &W, depth: &impl Depth) -> Option<W::Pointer> {
    if word.load_relaxed() == W::BUSY {
        return None;
    }
    let newest = word.exchange(W::BUSY);
    depth.reset();
    Some(newest)
}

/// Takes all elements and gives up the role.
///
/// Only the combiner may call this, and it is not the combiner afterwards.
#[inline(always)]
pub(crate) fn take_last<W: Word>(word: &W, depth: &impl Depth) -> Option<W::Pointer> {
    let newest = word.exchange(W::IDLE);
    if newest == W::BUSY {
        return None;
    }
    depth.reset();
    Some(newest)
}

/// Gives up the role if there are no elements, and returns whether it has.
///
/// Only the combiner may call this.
#[inline(always)]
pub(crate) fn finish<W: Word>(word: &W) -> bool {
    word.replace_release(W::BUSY, W::IDLE).is_ok()
}
