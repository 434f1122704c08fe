// SPDX-License-Identifier: GPL-2.0

//! The kernel's own sources: the folders of `kernel/` are symbolic links to those of `rust/kernel`.
//! Their files find loom's atomics under the kernel's names, and their orderings are those of the
//! kernel. The files beside the links stand in for the kernel's, and name the modules they have.

pub mod alf_queue;
pub mod combiner;
pub mod llist;
pub mod skbuff;
