//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! A function for any lifetime is one for a certain lifetime, too: a subtype. A driver for the one
//! type is not a driver for the other: their callbacks take different private data.

#![forbid(unsafe_code)]

use kernel::pci::SuspendOps;

pub struct Nic<F>(pub F);

pub type Any = for<'a> fn(&'a ());
pub type Certain = fn(&'static ());

//~ pub fn callbacks(ops: SuspendOps<Nic<Any>>) -> SuspendOps<Nic<Any>> {
pub fn callbacks(ops: SuspendOps<Nic<Certain>>) -> SuspendOps<Nic<Any>> {
    ops
}
