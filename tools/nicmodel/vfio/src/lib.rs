// SPDX-License-Identifier: GPL-2.0
//! vfio-user transport: shows a [`PciFunction`] to a hypervisor over a Unix socket.
//!
//! The crate `vfio_user` implements the protocol itself. This crate fills its gaps and works
//! around its bugs:
//!
//! * its server takes one connection and returns: [`Server`] may serve again;
//! * a client that breaks the protocol makes it panic: that ends the connection, not the model;
//! * it passes the file of a region on only together with a list of sparse areas: the pages of
//!   [`Layout`] are that list.
//!
//! The hypervisor waits for most replies with its big lock held, so nothing here waits for the
//! guest.

mod backend;
mod layout;
mod memory;
mod registers;
mod server;

pub use layout::{Layout, PAGE};
pub use registers::SharedRegisters;
pub use server::Server;
