// SPDX-License-Identifier: GPL-2.0
//! vhost-user PCI transport: shows a [`PciFunction`] to User-Mode Linux over a Unix socket.
//!
//! The guest side is Linux' `virtio_pcidev`: a virtio device with two queues. Accesses to
//! configuration space and BARs are messages in the first one, interrupts are messages in the
//! second ([`protocol`]). The crates of rust-vmm implement vhost-user and walk the rings. The
//! modules:
//!
//! * [`commands`]: a message of the guest becomes a call of the function;
//! * [`msix`]: the MSI-X table, which no hypervisor emulates here;
//! * [`interrupts`]: a message to the guest;
//! * [`shared`]: registers in guest memory, for a guest that asks for it;
//! * [`server`]: connections, one after the other.
//!
//! Latency matters most: the guest spins while it waits for a read. So the thread of the packet
//! engine polls the queue too ([`Source`]), with notifications switched off, and only when nothing
//! moves for a while a thread of its own waits for a notification of the guest.
//!
//! [`PciFunction`]: nicmodel_device::function::PciFunction
//! [`Source`]: nicmodel_device::function::Source

mod backend;
pub mod commands;
pub mod interrupts;
pub mod msix;
pub mod protocol;
mod ring;
pub mod server;
pub mod shared;

pub use commands::Commands;
pub use server::Server;
pub use shared::SharedPages;
