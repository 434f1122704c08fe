// SPDX-License-Identifier: GPL-2.0

//! The memory ordering of a lock-free list.
//!
//! Nothing here depends on the rest of the kernel: atomic operations go through [`AtomicFirst`], so
//! that the same source runs under a model checker on the host.

/// The operations that the list needs on the atomic pointer to its first node.
///
/// Nodes, and the elements around them, are accessed with plain loads and stores:
///
/// - A context that adds nodes writes them, then publishes the first one: release. A failed
///   compare-and-exchange publishes nothing, and its result is not dereferenced: it needs no
///   ordering.
/// - A context that takes the list exchanges the pointer, then reads the nodes: acquire. This
///   orders
///   it after all contexts that have added nodes, not only the last one: each compare-and-exchange
///   replaces the value of the one before, and such a chain of read-modify-write operations is part
///   of the release sequence of its first one.
///
/// The order of operations on the one pointer decides whether the list was empty: of the contexts
/// that add nodes after the list has been taken, exactly one finds it empty. This needs no barrier.
pub(crate) trait AtomicFirst {
    /// A pointer to a node, or null.
    type Pointer: Copy;

    /// Reads the pointer, without ordering.
    fn load_relaxed(&self) -> Self::Pointer;

    /// Replaces the pointer with `new` if it is `old`, with release ordering. Otherwise returns its
    /// current value.
    fn replace_release(&self, old: Self::Pointer, new: Self::Pointer) -> Result<(), Self::Pointer>;

    /// Replaces the pointer with null, with acquire ordering. Returns the old value.
    fn take_acquire(&self) -> Self::Pointer;
}

/// Adds nodes in front of the others. Returns the previous first node.
///
/// `new` is the first of the added nodes. `link` is called with the previous first node, once or
/// several times, and makes it the successor of the last added node.
#[inline(always)]
pub(crate) fn add<A: AtomicFirst>(
    first: &A,
    new: A::Pointer,
    mut link: impl FnMut(A::Pointer),
) -> A::Pointer {
    let mut old = first.load_relaxed();
    loop {
        link(old);
        match first.replace_release(old, new) {
            Ok(()) => return old,
            Err(now) => old = now,
        }
    }
}
