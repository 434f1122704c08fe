// SPDX-License-Identifier: GPL-2.0

//! Lock-free lists to which anyone adds, and of which everything is taken at once.
//!
//! A [`LockLessList`] is a stack of boxes, or of other owned pointers that can be a [`Link`]. What
//! they point to is linked through a [`Node`] inside of it, so that nothing is allocated to add
//! one. [`push`] may be called in any context, NMIs included, on all CPUs at once. [`take_all`]
//! takes what there is and leaves the list empty. What was taken is a [`Chain`], which belongs to
//! the caller alone. It has the newest element first; [`Chain::reverse`] restores the order in
//! which elements were added.
//!
//! Single elements cannot be taken off the list: a compare-and-exchange on the first node could
//! not tell a list that was changed in between from one that was not. There is no such operation,
//! so there is nothing to get wrong.
//!
//! This is the counterpart of `struct llist_head`. It is written in Rust rather than wrapped, since
//! its two operations are all there is to it, and so they are inlined, and ordered no more than
//! they need to be.
//!
//! C header: [`include/linux/llist.h`](srctree/include/linux/llist.h)
//!
//! # Examples
//!
//! ```
//! use kernel::{
//!     impl_has_llist_node,
//!     sync::llist::{LockLessList, Node},
//! };
//!
//! struct Report {
//!     number: u32,
//!     node: Node,
//! }
//!
//! impl_has_llist_node! {
//!     impl HasNode for Report { self.node }
//! }
//!
//! let list = LockLessList::new();
//! for number in 0..3 {
//!     let report = KBox::new(Report { number, node: Node::new() }, GFP_KERNEL)?;
//!     // Whoever finds the list empty is the one to wake whoever empties it.
//!     assert_eq!(list.push(report), number == 0);
//! }
//! assert!(!list.is_empty());
//!
//! let reports = list.take_all().reverse();
//! assert!(reports.map(|report| report.number).eq(0..3));
//! assert!(list.is_empty());
//! # Ok::<(), Error>(())
//! ```
//!
//! [`push`]: LockLessList::push
//! [`take_all`]: LockLessList::take_all

use crate::{
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    }, //
};
use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    }, //
};

mod head;
mod tests;

use head::AtomicFirst;

/// The part of an element by which it is linked to others.
///
/// # Invariants
///
/// While the element is in a list or chain, `next` is null or points to the node of another element
/// of it.
#[repr(transparent)]
pub struct Node {
    next: UnsafeCell<*mut Node>,
}

// SAFETY: A node is used by who owns the list or chain that its element is in; the pointer is of no
// use to others, who cannot get at it.
unsafe impl Send for Node {}

// SAFETY: There is nothing to be done with a shared reference.
unsafe impl Sync for Node {}

impl Node {
    /// Returns a node of an element that is in no list.
    #[inline]
    pub const fn new() -> Self {
        // INVARIANT: It is in no list.
        Self {
            next: UnsafeCell::new(ptr::null_mut()),
        }
    }
}

impl Default for Node {
    fn default() -> Self {
        Self::new()
    }
}

/// Types whose values can be elements of lists, implemented by [`impl_has_llist_node!`].
///
/// # Safety
///
/// There is a [`Node`] at [`Self::OFFSET`] in each value, which nothing but this module uses.
pub unsafe trait HasNode {
    /// Where the node is in a value.
    const OFFSET: usize;
}

/// Implements [`HasNode`] for a type with a field of the type [`Node`].
///
/// [`HasNode`]: crate::sync::llist::HasNode
/// [`Node`]: crate::sync::llist::Node
#[macro_export]
macro_rules! impl_has_llist_node {
    ($(impl$({$($generics:tt)*})? HasNode for $self:ty { self.$field:ident })*) => {$(
        // SAFETY: The offset is that of the field, which the assertions make sure is a node.
        unsafe impl$(<$($generics)*>)? $crate::sync::llist::HasNode for $self {
            const OFFSET: usize = {
                // References must be aligned, so this refuses packed structures.
                let _is_aligned = |this: &Self| {
                    let _ = &this.$field;
                };
                // A reference to a box of a node would become one to the node. Raw pointers do not.
                let _is_node = |this: *const Self| -> *const $crate::sync::llist::Node {
                    // SAFETY: This is never called.
                    unsafe { &raw const (*this).$field }
                };
                ::core::mem::offset_of!(Self, $field)
            };
        }
    )*};
}
pub use impl_has_llist_node;

/// Owned pointers that can be linked to each other, since there is a [`Node`] in what they own.
///
/// # Safety
///
/// The node that [`Self::into_node`] returns is valid, and nothing but this module uses it, until
/// [`Self::from_node`] has been called with it.
pub unsafe trait Link: Sized {
    /// Gives the ownership up, and returns the node.
    fn into_node(self) -> NonNull<Node>;

    /// Takes the ownership back.
    ///
    /// # Safety
    ///
    /// `node` was returned by [`Self::into_node`] of this type, and has not been taken back since.
    unsafe fn from_node(node: NonNull<Node>) -> Self;
}

// SAFETY: The node is in the box, by the safety requirements of `HasNode`. Nobody has access to the
// box until it is taken back.
unsafe impl<T: HasNode> Link for KBox<T> {
    #[inline(always)]
    fn into_node(self) -> NonNull<Node> {
        // SAFETY: A box is not null, and `HasNode` says that the node is inside of its value.
        unsafe { NonNull::new_unchecked(KBox::into_raw(self).byte_add(T::OFFSET).cast()) }
    }

    #[inline(always)]
    unsafe fn from_node(node: NonNull<Node>) -> Self {
        // SAFETY: By the safety requirements, `into_node` got this pointer from a box.
        unsafe { KBox::from_raw(node.as_ptr().byte_sub(T::OFFSET).cast()) }
    }
}

/// Makes `next` follow `node`.
///
/// # Safety
///
/// `node` is the node of an element that the caller owns.
#[inline(always)]
pub(crate) unsafe fn set_next(node: *mut Node, next: *mut Node) {
    // SAFETY: By the safety requirements, nobody else accesses it.
    unsafe { *(*node).next.get() = next };
}

/// Returns the node that follows `node`.
///
/// # Safety
///
/// `node` is the node of an element that the caller owns.
#[inline(always)]
unsafe fn next_of(node: *mut Node) -> *mut Node {
    // SAFETY: By the safety requirements, nobody else accesses it.
    unsafe { *(*node).next.get() }
}

/// The pointer to the first node.
struct First(Atomic<*mut Node>);

impl AtomicFirst for First {
    type Pointer = *mut Node;

    #[inline(always)]
    fn load_relaxed(&self) -> *mut Node {
        self.0.load(Relaxed)
    }

    #[inline(always)]
    fn replace_release(&self, old: *mut Node, new: *mut Node) -> Result<(), *mut Node> {
        self.0.cmpxchg(old, new, Release).map(|_| ())
    }

    #[inline(always)]
    fn take_acquire(&self) -> *mut Node {
        self.0.xchg(ptr::null_mut(), Acquire)
    }
}

/// A list to which anyone can add elements, without a lock.
///
/// # Invariants
///
/// `first` is null or points to the node of an element that the list owns, as is what follows it.
pub struct LockLessList<P: Link> {
    first: First,
    // Elements come in through a shared reference, so the list must not pass for one of elements
    // that live shorter: a cell makes it invariant.
    _owns: PhantomData<UnsafeCell<P>>,
}

// SAFETY: The list passes elements on to other contexts, which may be done if they are `Send`.
unsafe impl<P: Link + Send> Send for LockLessList<P> {}

// SAFETY: Likewise. No reference to an element is handed out.
unsafe impl<P: Link + Send> Sync for LockLessList<P> {}

impl<P: Link> LockLessList<P> {
    /// Returns an empty list.
    #[inline]
    pub const fn new() -> Self {
        // INVARIANT: There are no elements.
        Self {
            first: First(Atomic::new(ptr::null_mut())),
            _owns: PhantomData,
        }
    }

    /// Adds an element, and returns whether the list was empty.
    #[inline]
    pub fn push(&self, element: P) -> bool {
        // INVARIANT: The list owns the element from now on.
        let node = element.into_node().as_ptr();
        // SAFETY: The element is ours until `add` has added it.
        head::add(&self.first, node, |next| unsafe { set_next(node, next) }).is_null()
    }

    /// Adds all elements of a chain at once, the first one first, and returns whether the list was
    /// empty.
    ///
    /// An empty chain changes nothing. Otherwise this takes time in proportion to the elements.
    pub fn push_chain(&self, chain: Chain<P>) -> bool {
        let first = chain.into_first();
        if first.is_null() {
            return self.is_empty();
        }
        let mut last = first;
        // SAFETY: We own the elements of the chain, and those that follow are theirs.
        while let Some(next) = NonNull::new(unsafe { next_of(last) }) {
            last = next.as_ptr();
        }
        // SAFETY: The elements are ours until `add` has added them.
        head::add(&self.first, first, |next| unsafe { set_next(last, next) }).is_null()
    }

    /// Takes all elements, the one that was added last first.
    #[inline]
    pub fn take_all(&self) -> Chain<P> {
        // INVARIANT: The list was given up, and we are the ones who got it.
        Chain {
            first: self.first.take_acquire(),
            _owns: PhantomData,
        }
    }

    /// Whether there are no elements, which may have changed already.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.load_relaxed().is_null()
    }
}

impl<P: Link> Default for LockLessList<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Link> Drop for LockLessList<P> {
    fn drop(&mut self) {
        drop(self.take_all());
    }
}

/// Linked elements that belong to one owner; an iterator that takes them off one by one.
///
/// # Invariants
///
/// `first` is null or points to the node of an element that the chain owns, as is what follows it.
pub struct Chain<P: Link> {
    first: *mut Node,
    _owns: PhantomData<P>,
}

// SAFETY: A chain owns elements, and is `Send` if they are.
unsafe impl<P: Link + Send> Send for Chain<P> {}

// SAFETY: There is nothing to be done with a shared reference but to ask if it is empty.
unsafe impl<P: Link + Send> Sync for Chain<P> {}

impl<P: Link> Chain<P> {
    /// Returns an empty chain.
    #[inline]
    pub const fn new() -> Self {
        // INVARIANT: There are no elements.
        Self {
            first: ptr::null_mut(),
            _owns: PhantomData,
        }
    }

    /// Adds an element as the first one.
    #[inline]
    pub fn push(&mut self, element: P) {
        let node = element.into_node().as_ptr();

        // SAFETY: The element was given to us.
        unsafe { set_next(node, self.first) };
        // INVARIANT: The chain owns it from now on.
        self.first = node;
    }

    /// Takes the first element off.
    #[inline]
    pub fn pop(&mut self) -> Option<P> {
        let node = NonNull::new(self.first)?;

        // SAFETY: By the type invariants, it is the node of an element that we own. INVARIANT: It
        // is not the chain's any more.
        unsafe {
            self.first = next_of(node.as_ptr());
            Some(P::from_node(node))
        }
    }

    /// Returns the elements in the opposite order.
    #[inline]
    pub fn reverse(self) -> Self {
        self.reverse_and_count().0
    }

    /// Whether there are no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Makes a chain of linked nodes.
    ///
    /// # Safety
    ///
    /// `first` is null or points to a node that [`Link::into_node`] of `P` has returned, as is what
    /// follows it. None of them has been taken back, and none of them is used by anyone else.
    #[inline(always)]
    pub(crate) unsafe fn from_first(first: *mut Node) -> Self {
        // INVARIANT: The caller gives the elements to the chain.
        Self {
            first,
            _owns: PhantomData,
        }
    }

    /// Returns the elements in the opposite order, and how many they are.
    #[inline]
    pub(crate) fn reverse_and_count(self) -> (Self, usize) {
        let mut rest = self.into_first();
        let mut first = ptr::null_mut();
        let mut count = 0;
        while !rest.is_null() {
            // SAFETY: By the type invariants, it is the node of an element that we own.
            let next = unsafe { next_of(rest) };
            // SAFETY: Likewise.
            unsafe { set_next(rest, first) };
            first = rest;
            rest = next;
            count += 1;
        }
        // SAFETY: These are the elements that this chain owned.
        (unsafe { Self::from_first(first) }, count)
    }

    /// Gives the elements up to the caller.
    #[inline]
    pub(crate) fn into_first(mut self) -> *mut Node {
        // INVARIANT: They are not the chain's any more, so that dropping it does nothing.
        core::mem::replace(&mut self.first, ptr::null_mut())
    }
}

impl<P: Link> Default for Chain<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Link> Iterator for Chain<P> {
    type Item = P;

    #[inline]
    fn next(&mut self) -> Option<P> {
        self.pop()
    }
}

impl<P: Link> Drop for Chain<P> {
    fn drop(&mut self) {
        while let Some(element) = self.pop() {
            drop(element);
        }
    }
}
