// SPDX-License-Identifier: GPL-2.0

//! Many add, one works off: a list in front of something that only one CPU can use at a time.
//!
//! When CPUs want to put packets into the same queue, they take turns at its lock, and all but one
//! of them wait. With a [`Combiner`] in front of the lock, they leave their packets on a list, with
//! one compare-and-exchange each, and go. Whoever finds nobody at work, and just that one, works
//! the list off, for itself and for the others: it keeps its own packet, takes all that others have
//! added with one exchange, and has a [`Batch`], in the order in which it was added.
//!
//! # Who waits for whom
//!
//! [`Combiner::submit`] is the whole of it for something that has a lock. The CPU that got the role
//! takes the lock, and hands batches to a closure until there are none, and then gives the role up.
//! Nobody waits for it meanwhile. So that it does not work for others for ever, it gives the role
//! up with the last batch still to be done once it has done as much as it was told to: the next one
//! who adds something becomes the combiner and waits for the lock, and that is the only one who
//! does. No element is ever left without somebody who is bound to come for it.
//!
//! [`Combiner::push`] gives the role to the caller as a [`Turn`], for those who need to do it in
//! other ways. As long as a turn is not given up, it excludes all others. It is not a lock of its
//! own merit however: nobody can wait for it.
//!
//! # Context
//!
//! Elements can be added in any context, in interrupt handlers and in the closure that gets the
//! batches as well. Work is done in the context of the one who does it: if that is preempted, what
//! others have added waits for it. Disable preemption or bottom halves around it where that
//! matters, as the network stack does when it transmits.
//!
//! The number of elements that can be on the list is limited by each one who adds one, who gets the
//! element back if there are that many. The combiner's own is not counted. The limit is not exact:
//! each CPU that is just adding while the list is taken may exceed it by one.
//!
//! # Examples
//!
//! ```
//! use kernel::{
//!     impl_has_llist_node,
//!     net::combiner::{
//!         Combiner,
//!         Submitted, //
//!     },
//!     new_spinlock,
//!     sync::llist::Node, //
//! };
//!
//! struct Report {
//!     length: u32,
//!     node: Node,
//! }
//!
//! impl_has_llist_node! {
//!     impl HasNode for Report { self.node }
//! }
//!
//! let reports = Combiner::new();
//! let total = KBox::pin_init(new_spinlock!(0), GFP_KERNEL)?;
//!
//! for length in 1..=4 {
//!     let report = KBox::new(Report { length, node: Node::new() }, GFP_KERNEL)?;
//!     let submitted = reports.submit(report, 1000, 64, || total.lock(), |total, batch| {
//!         **total += batch.map(|report| report.length).sum::<u32>();
//!     });
//!     // Nobody else was there.
//!     assert!(matches!(submitted, Ok(Submitted::Done)));
//! }
//! assert_eq!(*total.lock(), 10);
//! # Ok::<(), Error>(())
//! ```

use crate::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        llist::{
            self,
            Chain,
            Link,
            Node, //
        }, //
    }, //
};
use core::{
    cell::UnsafeCell,
    iter::FusedIterator,
    marker::PhantomData,
    ptr, //
};

mod role;
mod tests;

use role::{
    Added,
    Depth,
    Word, //
};

/// No node is there, as nodes are aligned.
const BUSY: usize = 1;

/// The word of a combiner, see [`role`].
#[repr(transparent)]
struct First(Atomic<*mut Node>);

impl Word for First {
    type Pointer = *mut Node;

    const IDLE: *mut Node = ptr::null_mut();
    const BUSY: *mut Node = ptr::without_provenance_mut(BUSY);

    #[inline(always)]
    fn load_relaxed(&self) -> *mut Node {
        self.0.load(Relaxed)
    }

    #[inline(always)]
    fn occupy(&self) -> Result<(), *mut Node> {
        self.0.cmpxchg(Self::IDLE, Self::BUSY, Acquire).map(|_| ())
    }

    #[inline(always)]
    fn replace_release(&self, old: *mut Node, new: *mut Node) -> Result<(), *mut Node> {
        self.0.cmpxchg(old, new, Release).map(|_| ())
    }

    #[inline(always)]
    fn exchange(&self, new: *mut Node) -> *mut Node {
        self.0.xchg(new, Full)
    }
}

/// About how many elements were added since the list was last taken.
#[repr(transparent)]
struct Behind(Atomic<isize>);

impl Depth for Behind {
    #[inline(always)]
    fn increment(&self) -> usize {
        // CAST: It counts up from zero.
        self.0.fetch_add(1isize, Relaxed) as usize
    }

    #[inline(always)]
    fn reset(&self) {
        self.0.store(0isize, Relaxed);
    }
}

/// A list to which many add, and which one of them works off.
///
/// See the [module's documentation](self).
///
/// # Invariants
///
/// `first` is what [`role`] says. If it points to a node, that is the one of an element which the
/// list owns, as is what follows it. While it is not idle, there is one [`Turn`], one that was
/// forgotten, or C code that has the role.
#[repr(C)]
pub struct Combiner<P: Link> {
    // Next to each other: who adds something behind somebody needs both. C code has the same two
    // words as `defer_count` and `defer_list` of a `struct Qdisc`.
    behind: Behind,
    first: First,
    // Elements come in through a shared reference, so this must not pass for a list of elements
    // that live shorter: a cell makes it invariant.
    _owns: PhantomData<UnsafeCell<P>>,
}

// SAFETY: The list passes elements on to other contexts, which may be done if they are `Send`.
unsafe impl<P: Link + Send> Send for Combiner<P> {}

// SAFETY: Likewise. No reference to an element is handed out.
unsafe impl<P: Link + Send> Sync for Combiner<P> {}

/// What has become of an element that was pushed.
#[must_use = "what is dropped in here, is dropped"]
pub enum Pushed<'a, P: Link> {
    /// Somebody is at work, and has not done yet: the element is on the list.
    Behind,
    /// Nobody was at work, so this is for the caller to do, with the element as the first one.
    First(Turn<'a, P>),
    /// The list is full. Here is the element.
    Refused(P),
}

/// What has become of an element that was submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// It was left for somebody who is at work.
    Left,
    /// It was worked off by the caller, with what others have left meanwhile.
    Done,
}

impl<P: Link> Combiner<P> {
    /// What the second word is while somebody is at work who has taken all elements.
    #[cfg(CONFIG_NET_XMIT_LLIST_RUST)]
    pub(crate) const BUSY: usize = BUSY;

    /// Returns an empty list.
    #[inline]
    pub const fn new() -> Self {
        // INVARIANT: There are no elements, and there is nobody at work.
        Self {
            behind: Behind(Atomic::new(0)),
            first: First(Atomic::new(First::IDLE)),
            _owns: PhantomData,
        }
    }

    /// Adds an element, unless there are about `limit` elements on the list.
    ///
    /// An element that finds nobody at work is always accepted.
    #[inline]
    pub fn push(&self, element: P, limit: usize) -> Pushed<'_, P> {
        let node = element.into_node();
        // INVARIANT: The list owns the element if this adds it.
        let added = role::add(&self.first, &self.behind, limit, node.as_ptr(), |older| {
            // SAFETY: The element is ours until it has been added.
            unsafe { llist::set_next(node.as_ptr(), older.unwrap_or(ptr::null_mut())) }
        });

        if added == Added::Behind {
            return Pushed::Behind;
        }
        // SAFETY: The node is that of `element`, which is not on the list.
        let element = unsafe { P::from_node(node) };
        if added == Added::Refused {
            return Pushed::Refused(element);
        }
        // INVARIANT: We have the role now.
        Pushed::First(Turn {
            list: self,
            held: true,
            own: Some(element),
        })
    }

    /// Adds an element, and works it off with all that others add, unless somebody is at it.
    ///
    /// If nobody is, this calls `lock`, then `work` with batches and what `lock` has returned until
    /// there is nothing left. When `bound` elements were done, it gives the role up with the next
    /// batch, so that `work` gets at most `bound` elements and two times `limit` more.
    ///
    /// The lock is what protects that last batch from the next combiner. So `lock` must exclude
    /// others until what it has returned is dropped, and `work` must not submit to the same list.
    ///
    /// # Errors
    ///
    /// Returns the element if somebody is at work, and there are `limit` elements on the list.
    #[inline]
    pub fn submit<G>(
        &self,
        element: P,
        limit: usize,
        bound: usize,
        lock: impl FnOnce() -> G,
        mut work: impl FnMut(&mut G, Batch<P>),
    ) -> Result<Submitted, P> {
        let mut turn = match self.push(element, limit) {
            Pushed::Behind => return Ok(Submitted::Left),
            Pushed::Refused(element) => return Err(element),
            Pushed::First(turn) => turn,
        };
        let mut guard = lock();
        let mut done = 0;
        while done < bound {
            let Some(batch) = turn.take() else {
                return Ok(Submitted::Done);
            };
            done += batch.len();
            work(&mut guard, batch);
        }
        let last = turn.take_last();
        if last.len() != 0 {
            work(&mut guard, last);
        }
        Ok(Submitted::Done)
    }

    /// Whether somebody is at work, which may have changed already.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.first.load_relaxed() != First::IDLE
    }

    /// Makes a batch of an element and what was taken, which is younger.
    ///
    /// # Safety
    ///
    /// `newest` was taken off this list by the one who has the role, and not been used since.
    #[inline(always)]
    unsafe fn batch(own: Option<P>, newest: Option<*mut Node>) -> Batch<P> {
        let newest = newest.unwrap_or(ptr::null_mut());
        // SAFETY: By the type invariants, these are elements that the list has owned. It does not
        // any more, and gives them to the chain.
        let (mut chain, mut len) = unsafe { Chain::from_first(newest) }.reverse_and_count();

        if let Some(own) = own {
            chain.push(own);
            len += 1;
        }
        Batch { chain, len }
    }
}

impl<P: Link> Default for Combiner<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Link> Drop for Combiner<P> {
    fn drop(&mut self) {
        let newest = self.first.exchange(First::IDLE);

        if newest != First::BUSY {
            // SAFETY: As in `batch`. Nobody else has access to the list, not even if a turn was
            // forgotten.
            drop(unsafe { Chain::<P>::from_first(newest) });
        }
    }
}

/// The role of the one who works a list off.
///
/// To drop it drops what is on the list.
///
/// # Invariants
///
/// If it is `held`, this is the combiner of `list`: there is no other one. If not, there is no
/// `own`.
#[must_use = "what is on the list is dropped with it"]
pub struct Turn<'a, P: Link> {
    list: &'a Combiner<P>,
    held: bool,
    /// The element by which it got the role, until the first batch.
    own: Option<P>,
}

impl<P: Link> Turn<'_, P> {
    /// Takes all elements. If there are none, this is the end of the turn.
    #[inline]
    pub fn take(&mut self) -> Option<Batch<P>> {
        if !self.held {
            return None;
        }
        // Either writes to the word, so there is no reading it first.
        if self.own.is_none() && role::finish(&self.list.first) {
            // INVARIANT: Somebody else may have become the combiner. There is no own one.
            self.held = false;
            return None;
        }
        let newest = role::take(&self.list.first, &self.list.behind);
        // SAFETY: We have the role, and have just taken it.
        Some(unsafe { Combiner::batch(self.own.take(), newest) })
    }

    /// Takes all elements, if any, and ends the turn: who adds something now gets the next one.
    #[inline]
    pub fn take_last(mut self) -> Batch<P> {
        self.release()
    }

    fn release(&mut self) -> Batch<P> {
        let newest = if self.held {
            role::take_last(&self.list.first, &self.list.behind)
        } else {
            None
        };

        // INVARIANT: Somebody else may have become the combiner. The own one is taken below.
        self.held = false;
        // SAFETY: We had the role, and have just taken it.
        unsafe { Combiner::batch(self.own.take(), newest) }
    }
}

impl<P: Link> Drop for Turn<'_, P> {
    #[inline]
    fn drop(&mut self) {
        if self.held {
            drop(self.release());
        }
    }
}

/// Elements that were taken together, in the order in which they were added.
///
/// What is left of a batch is dropped with it.
pub struct Batch<P: Link> {
    chain: Chain<P>,
    len: usize,
}

impl<P: Link> Batch<P> {
    /// Gives the elements up to the caller, linked to each other, as the node of the first one.
    #[cfg(CONFIG_NET_XMIT_LLIST_RUST)]
    #[inline(always)]
    pub(crate) fn into_first(self) -> *mut Node {
        self.chain.into_first()
    }
}

impl<P: Link> Iterator for Batch<P> {
    type Item = P;

    #[inline]
    fn next(&mut self) -> Option<P> {
        let element = self.chain.pop()?;
        self.len -= 1;
        Some(element)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl<P: Link> ExactSizeIterator for Batch<P> {}

impl<P: Link> FusedIterator for Batch<P> {}
