// SPDX-License-Identifier: GPL-2.0

//! The marks between which the insn plugin counts: their encoding, and how a guest issues them.
//!
//! The plugin and the `insn-mark` command share this one definition.

pub mod encoding;
pub mod issue;
