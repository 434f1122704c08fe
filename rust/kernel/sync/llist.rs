// SPDX-License-Identifier: GPL-2.0

//! Lock-free lists to which anyone adds, and of which everything is taken at once.
//!
//! A [`LockLessList`] is a stack of boxes that are linked through a [`Node`] inside of them, so
//! that nothing is allocated to add one. [`push`] may be called in any context, NMIs included, on
//! all CPUs at once. [`take_all`] takes what there is and leaves the list empty. What was taken is
//! a [`Chain`], which belongs to the caller alone. It has the newest element first;
//! [`Chain::reverse`] restores the order in which elements were added.
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
    ptr, //
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

/// Returns the node of an element.
///
/// # Safety
///
/// `element` points to a value.
#[inline(always)]
unsafe fn node_of<T: HasNode>(element: *mut T) -> *mut Node {
    // SAFETY: By the safety requirements and those of the trait, this is inside of the value.
    unsafe { element.byte_add(T::OFFSET).cast() }
}

/// Returns the element of a node.
///
/// # Safety
///
/// `node` was returned by [`node_of`] for a `T`.
#[inline(always)]
unsafe fn element_of<T: HasNode>(node: *mut Node) -> *mut T {
    // SAFETY: By the safety requirements, the value begins there.
    unsafe { node.byte_sub(T::OFFSET).cast() }
}

/// Makes `next` follow `node`.
///
/// # Safety
///
/// `node` is the node of an element that the caller owns.
#[inline(always)]
unsafe fn set_next(node: *mut Node, next: *mut Node) {
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

/// A list to which anyone can add boxes, without a lock.
///
/// # Invariants
///
/// `first` is null or points to the node of an element that the list owns, as is what follows it.
pub struct LockLessList<T: HasNode> {
    first: First,
    // Elements come in through a shared reference, so the list must not pass for one of elements
    // that live shorter: a cell makes it invariant.
    _owns: PhantomData<UnsafeCell<KBox<T>>>,
}

// SAFETY: The list passes boxes on to other contexts, which may be done if they are `Send`.
unsafe impl<T: HasNode + Send> Send for LockLessList<T> {}

// SAFETY: Likewise. No reference to an element is handed out.
unsafe impl<T: HasNode + Send> Sync for LockLessList<T> {}

impl<T: HasNode> LockLessList<T> {
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
    pub fn push(&self, element: KBox<T>) -> bool {
        // SAFETY: It is a value. INVARIANT: The list owns it from now on.
        let node = unsafe { node_of(KBox::into_raw(element)) };
        // SAFETY: The element is ours until `add` has added it.
        head::add(&self.first, node, |next| unsafe { set_next(node, next) }).is_null()
    }

    /// Adds all elements of a chain at once, the first one first, and returns whether the list was
    /// empty.
    ///
    /// An empty chain changes nothing. Otherwise this takes time in proportion to the elements.
    pub fn push_chain(&self, chain: Chain<T>) -> bool {
        let first = chain.into_first();
        if first.is_null() {
            return self.is_empty();
        }
        let mut last = first;
        // SAFETY: We own the elements of the chain, and those that follow are theirs.
        while let Some(next) = ptr::NonNull::new(unsafe { next_of(last) }) {
            last = next.as_ptr();
        }
        // SAFETY: The elements are ours until `add` has added them.
        head::add(&self.first, first, |next| unsafe { set_next(last, next) }).is_null()
    }

    /// Takes all elements, the one that was added last first.
    #[inline]
    pub fn take_all(&self) -> Chain<T> {
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

impl<T: HasNode> Default for LockLessList<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: HasNode> Drop for LockLessList<T> {
    fn drop(&mut self) {
        drop(self.take_all());
    }
}

/// Linked elements that belong to one owner; an iterator that takes them off one by one.
///
/// # Invariants
///
/// `first` is null or points to the node of an element that the chain owns, as is what follows it.
pub struct Chain<T: HasNode> {
    first: *mut Node,
    _owns: PhantomData<KBox<T>>,
}

// SAFETY: A chain owns boxes, and is `Send` if they are.
unsafe impl<T: HasNode + Send> Send for Chain<T> {}

// SAFETY: There is nothing to be done with a shared reference but to ask if it is empty.
unsafe impl<T: HasNode + Send> Sync for Chain<T> {}

impl<T: HasNode> Chain<T> {
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
    pub fn push(&mut self, element: KBox<T>) {
        // SAFETY: It is a value, and ours. INVARIANT: The chain owns it from now on.
        unsafe {
            let node = node_of(KBox::into_raw(element));
            set_next(node, self.first);
            self.first = node;
        }
    }

    /// Takes the first element off.
    #[inline]
    pub fn pop(&mut self) -> Option<KBox<T>> {
        let node = ptr::NonNull::new(self.first)?.as_ptr();
        // SAFETY: By the type invariants, it is the node of an element that we own, and which was
        // made from a box. INVARIANT: It is not the chain's any more.
        unsafe {
            self.first = next_of(node);
            Some(KBox::from_raw(element_of(node)))
        }
    }

    /// Returns the elements in the opposite order.
    #[inline]
    pub fn reverse(self) -> Self {
        let mut rest = self.into_first();
        let mut first = ptr::null_mut();
        while !rest.is_null() {
            // SAFETY: By the type invariants, it is the node of an element that we own.
            let next = unsafe { next_of(rest) };
            // SAFETY: Likewise.
            unsafe { set_next(rest, first) };
            first = rest;
            rest = next;
        }
        // INVARIANT: These are the elements that this chain owned.
        Self {
            first,
            _owns: PhantomData,
        }
    }

    /// Whether there are no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Gives the elements up to the caller.
    #[inline]
    fn into_first(mut self) -> *mut Node {
        // INVARIANT: They are not the chain's any more, so that dropping it does nothing.
        core::mem::replace(&mut self.first, ptr::null_mut())
    }
}

impl<T: HasNode> Default for Chain<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: HasNode> Iterator for Chain<T> {
    type Item = KBox<T>;

    #[inline]
    fn next(&mut self) -> Option<KBox<T>> {
        self.pop()
    }
}

impl<T: HasNode> Drop for Chain<T> {
    fn drop(&mut self) {
        while let Some(element) = self.pop() {
            drop(element);
        }
    }
}
