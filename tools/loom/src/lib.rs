// SPDX-License-Identifier: GPL-2.0

//! Model check of the kernel's array-based queue, lock-free list and combining list, and of who is
//! the only owner of a packet.
//!
//! The files of `rust/kernel` are compiled here from the same source, over the atomics of loom: of
//! the queue all but its constructors and its interface for C, of the others those that hold the
//! atomics and the ordering of each access to them. The tests run them through every interleaving
//! of producers and consumers, and every value that the memory model allows a load to return; loom
//! reports accesses to a slot that are not ordered. The index arithmetic over plain memory is
//! compared to a sequential model, with operations at random.
//!
//! `make test ONLY=orderings` weakens each ordering in those files, one at a time, and expects one
//! of the tests to fail.

// The kernel's sources find this crate as `core`: it replaces what they access slots by.
#[cfg(test)]
extern crate self as core;
#[cfg(test)]
use std::{hint, mem, slice};
#[cfg(test)]
mod cell;
#[cfg(test)]
mod ptr;

#[cfg(test)]
mod kernel;

#[cfg(test)]
mod alloc;

#[cfg(test)]
mod combiner_tests;

#[cfg(test)]
mod delay_tests;

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod llist_tests;

#[cfg(test)]
mod prelude;

#[cfg(test)]
mod processor;

#[cfg(test)]
mod ring;

#[cfg(test)]
mod shared_tests;

#[cfg(test)]
mod skbuff_tests;

#[cfg(test)]
mod softirq;

#[cfg(test)]
mod sync;

#[cfg(test)]
mod tests;

#[cfg(test)]
mod watch;
