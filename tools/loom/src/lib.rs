// SPDX-License-Identifier: GPL-2.0

//! Model check of the kernel's array-based queue, lock-free list and combining list.
//!
//! The kernel's `rust/kernel/sync/alf_queue/index.rs` and `reserve.rs`, which hold the index
//! arithmetic and the memory ordering of the queue, are compiled here from the same source over the
//! atomics of loom. The tests run them through every interleaving of producers and consumers, and
//! every value that the memory model allows a load to return; loom reports accesses to a slot that
//! are not ordered. The same source over plain memory is compared to a sequential model, with
//! operations at random. The lists' `rust/kernel/sync/llist/head.rs` and
//! `rust/kernel/net/combiner/role.rs` are checked in the same way.

#[cfg(test)]
mod kernel;

#[cfg(test)]
mod combiner_tests;

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod llist_tests;

#[cfg(test)]
mod ring;

#[cfg(test)]
mod shared_tests;

#[cfg(test)]
mod tests;
