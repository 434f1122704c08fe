// SPDX-License-Identifier: GPL-2.0

//! A QEMU TCG plugin that counts guest instructions between two marks.
//!
//! Every translation block counts its executions per CPU with an inline
//! addition. The guest opens and closes *windows* with no-ops that mean
//! nothing to a processor (see [`insn_marks::encoding`]) and describes them with a text;
//! the difference of the counters over a window goes into the report, one row
//! per block. Attribution of addresses to functions and modules is left to
//! the reader of the report, which has the symbols.

mod options;
mod windows;

// In unit tests there is no QEMU to link with.
#[cfg(not(test))]
mod api;
#[cfg(not(test))]
mod plugin;
