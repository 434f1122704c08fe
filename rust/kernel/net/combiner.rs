// SPDX-License-Identifier: GPL-2.0

//! Combining: a list in front of a resource that only one CPU can use at a time.
//!
//! When CPUs put packets into the same queue, they take turns at its lock, and all but one of them
//! wait. With a [`Combiner`] in front of the lock, they leave their packets on a list, with one
//! compare-and-exchange each, and go on. The CPU that finds the list idle, and only that one,
//! becomes the combiner and works the list off, for itself and for the others: it keeps its own
//! packet, takes all that other CPUs have added with one exchange, and has a [`Drain`] of them, in
//! the order in which they were added.
//!
//! # Waiting
//!
//! [`Combiner::submit`] does all of this for a resource that has a lock. The combiner takes the
//! lock, hands batches to a closure until there are none left, and then gives up the role. No other
//! CPU waits for it meanwhile. To bound its work for others, it gives up the role with the last
//! batch still to be done once it has done a given amount: the next CPU that adds an element
//! becomes the combiner and waits for the lock, and it is the only one that waits. There is never
//! an element on the list without a combiner that is bound to take it.
//!
//! # Context
//!
//! [`Combiner::submit`] may have to take the lock, so it can be called where that can be taken, but
//! not by the holder of the lock: not in the closure that gets the batches, nor in an interrupt
//! handler, unless the lock keeps that away. Elements are worked off in the context of the
//! combiner: if that is preempted, the elements of other CPUs wait for it. Disable preemption or
//! bottom halves around it where that matters, as the network stack does when it transmits.
//!
//! Each call that adds an element passes a limit for the number of elements on the list, and gets
//! the element back if the list is that long. The combiner's own element is not counted. The limit
//! is not exact: each CPU that is just adding while the list is taken may exceed it by one.
//!
//! # Examples
//!
//! ```
//! use kernel::{
//!     impl_has_llist_node,
//!     net::combiner::{
//!         Combiner,
//!         Disposition, //
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
//!     // There was no other CPU at work.
//!     assert!(matches!(submitted, Ok(Disposition::Done)));
//! }
//! assert_eq!(*total.lock(), 10);
//! # Ok::<(), Error>(())
//! ```

use crate::{
    prelude::*,
    sync::{
        atomic::Atomic,
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
    marker::PhantomData,
    ptr, //
};

mod role;
mod tests;
mod word;

use role::{
    Added,
    Word, //
};
use word::{
    Behind,
    RoleWord, //
};

/// A list to which many CPUs add elements, and which one of them processes.
///
/// See the [module's documentation](self).
///
/// # Invariants
///
/// `first` has one of the values that `role` describes. If it points to a node, the list owns the
/// element of that node and those of all nodes behind it. While it is not idle, the role belongs to
/// one `Turn`, which may have been forgotten, or to C code.
#[repr(C)]
pub struct Combiner<P: Link> {
    // Next to each other: a CPU that adds an element behind others needs both. C code has the same
    // two words as `defer_count` and `defer_list` of a `struct Qdisc`.
    behind: Behind,
    first: RoleWord,
    // Elements come in through a shared reference, so this must not pass for a list of elements
    // that live shorter: a cell makes it invariant.
    _owns: PhantomData<UnsafeCell<P>>,
}

// SAFETY: The list passes elements on to other contexts, which may be done if they are `Send`.
unsafe impl<P: Link + Send> Send for Combiner<P> {}

// SAFETY: Likewise. No reference to an element is handed out.
unsafe impl<P: Link + Send> Sync for Combiner<P> {}

/// The result of pushing an element.
#[must_use = "the element, or the whole list, is dropped with it"]
enum Pushed<'a, P: Link> {
    /// Another CPU is the combiner: the element is on the list.
    Behind,
    /// The list was idle: the caller is the combiner, and the element is the first one to be done.
    First(Turn<'a, P>),
    /// The list is full. Here is the element.
    Refused(P),
}

/// The result of submitting an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// It was left to another CPU, which is the combiner.
    Delegated,
    /// The caller has worked it off, with those that other CPUs have added meanwhile.
    Done,
}

impl<P: Link> Combiner<P> {
    /// The second word while there is a combiner that has taken all elements.
    #[cfg(CONFIG_NET_XMIT_LLIST_RUST)]
    pub(crate) const BUSY: usize = word::BUSY;

    /// Returns an empty list.
    #[inline]
    pub const fn new() -> Self {
        // INVARIANT: There are no elements, and there is no combiner.
        Self {
            behind: Behind(Atomic::new(0)),
            first: RoleWord(Atomic::new(RoleWord::IDLE)),
            _owns: PhantomData,
        }
    }

    /// Adds an element, unless there are about `limit` elements on the list.
    ///
    /// An element that finds the list idle is always accepted.
    #[inline]
    fn push(&self, element: P, limit: usize) -> Pushed<'_, P> {
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

    /// Adds an element, and works it off with all that other CPUs add, unless there is a combiner.
    ///
    /// If the list is idle, this calls `lock`, then `work` with its result and with batches, until
    /// there are none left. When `bound` elements were done, it gives up the role with the next
    /// batch, so that `work` gets at most `bound` elements and two times `limit` more.
    ///
    /// The lock protects that last batch from the next combiner. So `lock` must exclude other CPUs
    /// until its result is dropped, and `work` must not submit to the same list.
    ///
    /// # Errors
    ///
    /// Returns the element if there is a combiner, and there are `limit` elements on the list.
    #[inline]
    pub fn submit<G>(
        &self,
        element: P,
        limit: usize,
        bound: usize,
        lock: impl FnOnce() -> G,
        mut work: impl FnMut(&mut G, Drain<P>),
    ) -> Result<Disposition, P> {
        let mut turn = match self.push(element, limit) {
            Pushed::Behind => return Ok(Disposition::Delegated),
            Pushed::Refused(element) => return Err(element),
            Pushed::First(turn) => turn,
        };
        let mut guard = lock();
        let mut done = 0;
        while done < bound {
            let Some(batch) = turn.take() else {
                return Ok(Disposition::Done);
            };
            done += batch.len();
            work(&mut guard, batch);
        }
        let last = turn.take_last();
        if last.len() != 0 {
            work(&mut guard, last);
        }
        Ok(Disposition::Done)
    }

    /// Whether there is a combiner, which may have changed already.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.first.load_relaxed() != RoleWord::IDLE
    }

    /// Makes a batch of the combiner's own element and those that it has taken, which are younger.
    ///
    /// # Safety
    ///
    /// `newest` must have been taken off this list by the combiner, and not been used since.
    #[inline(always)]
    unsafe fn batch(own: Option<P>, newest: Option<*mut Node>) -> Drain<P> {
        let newest = newest.unwrap_or(ptr::null_mut());
        // SAFETY: By the type invariants, these are elements that the list has owned. It does not
        // any more, and gives them to the chain.
        let (mut chain, mut len) = unsafe { Chain::from_first(newest) }.reverse_and_count();

        if let Some(own) = own {
            chain.push(own);
            len += 1;
        }
        Drain { chain, len }
    }
}

impl<P: Link> Default for Combiner<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Link> Drop for Combiner<P> {
    fn drop(&mut self) {
        let newest = self.first.exchange(RoleWord::IDLE);

        if newest != RoleWord::BUSY {
            // SAFETY: As in `batch`. There is no other access to the list, not even if a turn was
            // forgotten.
            drop(unsafe { Chain::<P>::from_first(newest) });
        }
    }
}

/// The role of the combiner, which works a list off.
///
/// Dropping it drops the elements on the list.
///
/// # Invariants
///
/// If it is `held`, this is the combiner of `list`: there is no other one. If not, there is no
/// `own`.
#[must_use = "the elements on the list are dropped with it"]
struct Turn<'a, P: Link> {
    list: &'a Combiner<P>,
    held: bool,
    /// The element with which it got the role, until the first batch.
    own: Option<P>,
}

impl<P: Link> Turn<'_, P> {
    /// Takes all elements. If there are none, this is the end of the turn.
    #[inline]
    fn take(&mut self) -> Option<Drain<P>> {
        if !self.held {
            return None;
        }
        // Both ways write to the word, so it would not help to read it first.
        if self.own.is_none() && role::finish(&self.list.first) {
            // INVARIANT: Another CPU may be the combiner now. There is no own element.
            self.held = false;
            return None;
        }
        let newest = role::take(&self.list.first, &self.list.behind);
        // SAFETY: We have the role, and have just taken it.
        Some(unsafe { Combiner::batch(self.own.take(), newest) })
    }

    /// Takes all elements, if any, and ends the turn: the next element that is added begins
    /// another.
    #[inline]
    fn take_last(mut self) -> Drain<P> {
        self.release()
    }

    fn release(&mut self) -> Drain<P> {
        let newest = if self.held {
            role::take_last(&self.list.first, &self.list.behind)
        } else {
            None
        };

        // INVARIANT: Another CPU may be the combiner now. The own element is taken below.
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
/// The rest of a batch is dropped with it.
pub struct Drain<P: Link> {
    chain: Chain<P>,
    len: usize,
}

impl<P: Link> Drain<P> {
    /// Gives up the elements to the caller, linked to each other, as the node of the first one.
    #[cfg(CONFIG_NET_XMIT_LLIST_RUST)]
    #[inline(always)]
    pub(crate) fn into_first(self) -> *mut Node {
        self.chain.into_first()
    }
}

impl<P: Link> Iterator for Drain<P> {
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

impl<P: Link> ExactSizeIterator for Drain<P> {}
