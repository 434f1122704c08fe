// SPDX-License-Identifier: GPL-2.0

//! Lock-free lists: any context adds elements, and a taker takes all of them at once.
//!
//! A [`LockLessList`] is a stack of boxes, or of other owned pointers that implement [`Link`].
//! Their targets are linked through a [`Node`] inside, so adding an element needs no allocation.
//! [`push`] may be called in any context, on all CPUs concurrently: in NMIs, too, on architectures
//! whose compare-and-exchange works there (`CONFIG_ARCH_HAVE_NMI_SAFE_CMPXCHG`). [`take_all`]
//! takes all elements and leaves the list empty. They form a [`Chain`], which belongs to the caller
//! alone. It has the newest element first; [`Chain::reverse`] restores the order in which elements
//! were added.
//!
//! There is no operation that removes a single element: a compare-and-exchange on the first node
//! would suffer from the ABA problem.
//!
//! This is the counterpart of `struct llist_head`. It is written in Rust rather than wrapped: it
//! has only two operations, which are inlined this way, and have no more ordering than they need.
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
//!     // The sender that finds the list empty wakes the receiver.
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
    sync::atomic::Atomic, //
};
use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    }, //
};

mod first;
mod head;
mod tests;

use first::First;
use head::AtomicFirst;

/// The member that links an element to others.
///
/// # Invariants
///
/// While the element is in a list or chain, `next` is null or points to the node of another element
/// of it.
#[repr(transparent)]
pub struct Node {
    next: UnsafeCell<*mut Node>,
}

// SAFETY: Only the owner of the list or chain that the element is in accesses the pointer.
unsafe impl Send for Node {}

// SAFETY: A shared reference gives no access to the pointer.
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
/// There is a [`Node`] at [`Self::OFFSET`] in each value, which only this module uses.
pub unsafe trait HasNode {
    /// Offset of the node in a value.
    const OFFSET: usize;
}

/// Implements [`HasNode`] for a type with a field of the type [`Node`].
///
/// [`HasNode`]: crate::sync::llist::HasNode
/// [`Node`]: crate::sync::llist::Node
#[macro_export]
macro_rules! impl_has_llist_node {
    ($(impl$({$($generics:tt)*})? HasNode for $self:ty { self.$field:ident })*) => {$(
        // SAFETY: The offset is that of the field, and the closures check that it is a node.
        unsafe impl$(<$($generics)*>)? $crate::sync::llist::HasNode for $self {
            const OFFSET: usize = {
                // References must be aligned, so this rejects packed structures.
                let _is_aligned = |this: &Self| {
                    let _ = &this.$field;
                };
                // A reference to a box of a node would coerce to one to the node. Raw pointers do
                // not coerce.
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

/// Owned pointers that can be linked to each other through a [`Node`] in their targets.
///
/// # Safety
///
/// The node that [`Self::into_node`] returns is valid, and only this module uses it, until
/// [`Self::from_node`] has been called with it.
pub unsafe trait Link: Sized {
    /// Gives up ownership, and returns the node.
    fn into_node(self) -> NonNull<Node>;

    /// Takes ownership back.
    ///
    /// # Safety
    ///
    /// `node` was returned by [`Self::into_node`] of this type, and has not been taken back since.
    unsafe fn from_node(node: NonNull<Node>) -> Self;
}

// SAFETY: By the safety requirements of `HasNode`, the node is in the box. There is no access to
// the box until ownership is taken back.
unsafe impl<T: HasNode> Link for KBox<T> {
    #[inline(always)]
    fn into_node(self) -> NonNull<Node> {
        // SAFETY: A box is not null, and by the safety requirements of `HasNode`, the node is in
        // its value.
        unsafe { NonNull::new_unchecked(KBox::into_raw(self).byte_add(T::OFFSET).cast()) }
    }

    #[inline(always)]
    unsafe fn from_node(node: NonNull<Node>) -> Self {
        // SAFETY: By the safety requirements, `into_node` got this pointer from a box.
        unsafe { KBox::from_raw(node.as_ptr().byte_sub(T::OFFSET).cast()) }
    }
}

/// Sets the successor of `node`.
///
/// # Safety
///
/// `node` is the node of an element that the caller owns.
#[inline(always)]
pub(crate) unsafe fn set_next(node: *mut Node, next: *mut Node) {
    // SAFETY: By the safety requirements, there is no other access to it.
    unsafe { *(*node).next.get() = next };
}

/// Returns the successor of `node`.
///
/// # Safety
///
/// `node` is the node of an element that the caller owns.
#[inline(always)]
unsafe fn next_of(node: *mut Node) -> *mut Node {
    // SAFETY: By the safety requirements, there is no other access to it.
    unsafe { *(*node).next.get() }
}

/// A list to which any context can add elements, without a lock.
///
/// # Invariants
///
/// `first` is null or points to the node of an element that the list owns, and so does the pointer
/// in each node.
pub struct LockLessList<P: Link> {
    first: First,
    // Elements are added through a shared reference, so the list must not be covariant: a cell
    // makes it invariant.
    _owns: PhantomData<UnsafeCell<P>>,
}

// SAFETY: The list passes elements to other contexts, which `P: Send` allows.
unsafe impl<P: Link + Send> Send for LockLessList<P> {}

// SAFETY: Likewise. The list gives out no references to elements.
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

    /// Adds an element. Returns whether the list was empty.
    #[inline]
    pub fn push(&self, element: P) -> bool {
        // INVARIANT: The list owns the element from now on.
        let node = element.into_node().as_ptr();
        // SAFETY: The element is ours until `add()` publishes it.
        head::add(&self.first, node, |next| unsafe { set_next(node, next) }).is_null()
    }

    /// Takes all elements, the newest first.
    #[inline]
    pub fn take_all(&self) -> Chain<P> {
        // INVARIANT: The exchange has transferred all elements to us.
        Chain {
            first: self.first.take_acquire(),
            _owns: PhantomData,
        }
    }

    /// Returns whether there are no elements, which may change concurrently.
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

/// Linked elements with a single owner, and an iterator that removes them one by one.
///
/// # Invariants
///
/// `first` is null or points to the node of an element that the chain owns, and so does the pointer
/// in each node.
pub struct Chain<P: Link> {
    first: *mut Node,
    _owns: PhantomData<P>,
}

// SAFETY: A chain owns elements, and is `Send` if they are.
unsafe impl<P: Link + Send> Send for Chain<P> {}

// SAFETY: A shared reference only allows checking whether the chain is empty.
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

    /// Adds an element at the front.
    #[inline]
    pub fn push(&mut self, element: P) {
        let node = element.into_node().as_ptr();

        // SAFETY: The element was given to us.
        unsafe { set_next(node, self.first) };
        // INVARIANT: The chain owns it from now on.
        self.first = node;
    }

    /// Removes and returns the first element.
    #[inline]
    pub fn pop(&mut self) -> Option<P> {
        let node = NonNull::new(self.first)?;

        // SAFETY: By the type invariants, it is the node of an element that we own. INVARIANT: The
        // chain gives it up.
        unsafe {
            self.first = next_of(node.as_ptr());
            Some(P::from_node(node))
        }
    }

    /// Returns the elements in reverse order.
    #[inline]
    pub fn reverse(self) -> Self {
        self.reverse_and_count().0
    }

    /// Returns whether there are no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Returns a chain of linked nodes.
    ///
    /// # Safety
    ///
    /// `first` is null or points to a node that [`Link::into_node`] of `P` has returned, and so
    /// does the pointer in each node. None of them has been taken back or is used elsewhere.
    #[inline(always)]
    pub(crate) unsafe fn from_first(first: *mut Node) -> Self {
        // INVARIANT: The caller gives the elements to the chain.
        Self {
            first,
            _owns: PhantomData,
        }
    }

    /// Returns the elements in reverse order, and their number.
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
        // INVARIANT: The chain gives them up, so dropping it does nothing.
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
