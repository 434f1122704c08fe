// SPDX-License-Identifier: GPL-2.0

//! Who works off a list to which everyone adds, and the memory ordering of it.
//!
//! Nothing here depends on the rest of the kernel: the atomic operations come in through [`Word`]
//! and [`Depth`], so that the same source runs under a model checker on a host.
//!
//! One word holds everything. It is one of
//!
//! - *idle*: no elements, and nobody at work;
//! - *busy*: no elements that nobody has taken, and somebody at work;
//! - the newest element, from which the others are linked. Somebody is at work, or about to be.
//!
//! Whoever replaces idle has the role of the combiner, and keeps the element it came with: nobody
//! else needs to see it. It has the role until it has put idle back, by an exchange that takes the
//! last elements, or in place of busy. All other operations leave the word as something that is not
//! idle. So there is one combiner as long as there are elements, and never two.
//!
//! C code that knows idle (null) and elements only can use the same word. It must take busy for an
//! element behind which there are no others. It gets the role by putting an element in place of
//! idle, and gives it up when it takes them all.

/// The word.
///
/// Elements are written with plain accesses, and passed on with them all that belongs to them.
///
/// - Who adds an element, writes it, then makes it visible: release.
/// - Who takes elements, exchanges the word, then reads them: acquire. All values of the word come
///   from read-modify-write operations, a chain of which hands on what each of its links has
///   released. So this is ordered behind all who have added one.
/// - Who puts idle in place of busy, releases what it has done as the combiner. Who replaces idle
///   is the next one, and ordered behind that: acquire.
/// - Who sees an element on the list can rely on it that somebody will come for it, and looks then
///   at what is there to do, whatever that is. So what comes after an exchange must not be done
///   before: it is a full barrier.
///
/// An exchange that leaves idle behind is not ordered before what the next combiner does: what one
/// has left to do after that is not protected by the role.
pub(crate) trait Word {
    /// Points to an element, or is one of the two values that do not.
    type Pointer: Copy + PartialEq;

    /// Nobody is at work.
    const IDLE: Self::Pointer;
    /// Somebody is at work, who has taken all elements.
    const BUSY: Self::Pointer;

    /// Reads the word, without ordering.
    fn load_relaxed(&self) -> Self::Pointer;

    /// Replaces idle with busy, with acquire ordering; returns what it was if not so.
    fn occupy(&self) -> Result<(), Self::Pointer>;

    /// Replaces `old` with `new`, with release ordering; returns what it was if not `old`.
    fn replace_release(&self, old: Self::Pointer, new: Self::Pointer) -> Result<(), Self::Pointer>;

    /// Replaces the word with `new`, as a full barrier.
    fn exchange(&self, new: Self::Pointer) -> Self::Pointer;
}

/// About how many elements were added since the list was last taken, or tried to be.
///
/// It bounds the length of the list. Nothing is ordered by it.
pub(crate) trait Depth {
    /// Adds one, and returns how many there were.
    fn increment(&self) -> usize;

    /// Starts again from zero.
    fn reset(&self);
}

/// What has become of an element that was to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// Somebody is at work, who will see it.
    Behind,
    /// Nobody was: the caller is the combiner now, and has the element still.
    First,
    /// There were about `limit` elements behind somebody who is at work. It was not added.
    Refused,
}

/// Adds an element, if somebody is there to work it off.
///
/// `link` is called with the element that was the newest one, if any, and makes it follow `new`.
///
/// The limit is not exact. Who takes the list and who adds to it access the number one after the
/// other, and not at once with the list: those who are just adding when it is taken, one per CPU,
/// may not be counted, or be refused. Nothing adds up, as the number begins anew each time.
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
        // Otherwise those who come too late would add up until the next one takes something.
        depth.reset();
    }
    Added::First
}

/// Takes all elements and stays the combiner.
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

/// Takes all elements and gives the role up.
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

/// Gives the role up if there is nothing to do, and says whether it has.
///
/// Only the combiner may call this.
#[inline(always)]
pub(crate) fn finish<W: Word>(word: &W) -> bool {
    word.replace_release(W::BUSY, W::IDLE).is_ok()
}
