// SPDX-License-Identifier: GPL-2.0

//! The memory ordering of a lock-free list.
//!
//! Nothing here depends on the rest of the kernel: the atomic operations come in through
//! [`AtomicFirst`], so that the same source runs under a model checker on a host.

/// What the list needs of the atomic pointer to its first node.
///
/// A node is written with plain accesses, and passed on with it all that it belongs to:
///
/// - Who adds nodes, writes them, then makes the first one visible: release. A compare-and-exchange
///   that fails makes nothing visible and reads nothing that is followed: it orders nothing.
/// - Who takes the list, exchanges the pointer, then reads the nodes: acquire. It is ordered behind
///   all those who added a node, not just the last one: each compare-and-exchange replaces what the
///   one before has stored, and a chain of these hands on what its first link released.
///
/// Whether the list was empty before is decided by the order of operations on the one pointer: of
/// those who add nodes after the list has been taken, exactly one finds it empty. This needs no
/// barrier either.
pub(crate) trait AtomicFirst {
    /// Points to a node, or to none.
    type Pointer: Copy;

    /// Reads the pointer, without ordering.
    fn load_relaxed(&self) -> Self::Pointer;

    /// Replaces the pointer with `new` if it is `old`, with release ordering; returns what it was
    /// if not.
    fn replace_release(&self, old: Self::Pointer, new: Self::Pointer) -> Result<(), Self::Pointer>;

    /// Replaces the pointer with one to no node, with acquire ordering.
    fn take_acquire(&self) -> Self::Pointer;
}

/// Adds nodes in front of the others, and returns which one was the first before.
///
/// `link` is called with that one, once or several times, and makes it follow the last one of those
/// that are added, of which `new` is the first one.
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
