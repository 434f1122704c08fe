// SPDX-License-Identifier: GPL-2.0

//! The kernel's own sources: the files in the folders of `kernel/` are symbolic links to those of
//! `rust/kernel`. They find loom's atomics under the kernel's names, and their orderings are those
//! of the kernel. Files there that are no links stand in for others of the kernel.

pub mod alf_queue;
pub mod combiner;
pub mod llist;
