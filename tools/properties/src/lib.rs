// SPDX-License-Identifier: GPL-2.0

//! Properties of the kernel's code that reads what a card, a module or a frame says.
//!
//! The files are compiled here from the same source as in the kernel, see [`ixgbe`], `page_pool`
//! and `net`: symbolic links lead to their folders. What they need of the kernel stands in here,
//! above plain memory. proptest chooses what the card says; `PROPTEST_CASES` is how often.
//!
//! This is the fast and narrow part of what `make fuzz` does with whole drivers.

// The driver finds this crate as `kernel`, and the kernel's own files as `crate`.
#[cfg(test)]
extern crate self as kernel;

#[cfg(test)]
mod bindings;
#[cfg(test)]
#[macro_use]
mod bitfield;
#[cfg(test)]
mod device;
#[cfg(test)]
mod io;
#[cfg(test)]
mod ixgbe;
#[cfg(test)]
mod net;
#[cfg(test)]
mod num;
#[cfg(test)]
mod page_pool;
#[cfg(test)]
mod pci;
#[cfg(test)]
mod prelude;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod sync;
#[cfg(test)]
mod time;

#[cfg(test)]
use ixgbe::{eeprom, i2c, mmio, regs, semaphore};
#[cfg(test)]
use std::fmt;
