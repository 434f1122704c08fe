// SPDX-License-Identifier: GPL-2.0

//! Model check of the kernel's array-based queue, lock-free list and combining list.
//!
//! The files of `rust/kernel` that hold the index arithmetic, the atomics and the ordering of each
//! access to them are compiled here from the same source, over the atomics of loom. The tests run
//! them through every interleaving of producers and consumers, and every value that the memory
//! model allows a load to return; loom reports accesses to a slot that are not ordered. The index
//! arithmetic over plain memory is compared to a sequential model, with operations at random.
//!
//! `make test ONLY=orderings` weakens each ordering in those files, one at a time, and expects one
//! of the tests to fail.

#[cfg(test)]
mod kernel;

#[cfg(test)]
mod combiner_tests;

#[cfg(test)]
mod delay_tests;

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod llist_tests;

#[cfg(test)]
mod processor;

#[cfg(test)]
mod ring;

#[cfg(test)]
mod shared_tests;

#[cfg(test)]
mod sync;

#[cfg(test)]
mod tests;
