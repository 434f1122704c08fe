// SPDX-License-Identifier: GPL-2.0

//! Model check of the kernel's array-based queue.
//!
//! The kernel's `rust/kernel/sync/alf_queue/index.rs`, which holds the index arithmetic and the
//! memory ordering of the queue, is compiled here from the same source over the atomics of loom.
//! The tests run it through every interleaving of a producer and a consumer, and every value that
//! the memory model allows a load to return; loom reports accesses to a slot that are not ordered.

#[cfg(test)]
#[path = "../../../rust/kernel/sync/alf_queue/index.rs"]
mod index;

#[cfg(test)]
mod ring;

#[cfg(test)]
mod tests;
