// SPDX-License-Identifier: GPL-2.0

//! The kernel's own sources: the files in `kernel/` are symbolic links to those of `rust/kernel`.

pub mod head;
pub mod index;
pub mod reserve;
pub mod role;
