// SPDX-License-Identifier: GPL-2.0

//! The array-based queue.

pub mod atomics;
pub mod index;
pub mod reserve;
