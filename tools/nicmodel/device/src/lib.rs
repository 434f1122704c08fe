// SPDX-License-Identifier: GPL-2.0
//! Device model of the Intel 82599 10 GbE controller.
//!
//! The crate is independent of the transport, which calls [`function::PciFunction`] for each access
//! of the guest, and of the wire: the owner of a [`port::Datapath`] takes frames out of it and puts
//! frames in.
//!
//! Two threads meet at a [`device::Device`]: the transport's, which serves trapped accesses,
//! and the engine's, which moves packets. All that they share is atomic.
#![forbid(unsafe_code)]

pub mod checksum;
pub mod clock;
pub mod config;
pub mod counters;
pub mod descriptor;
pub mod device;
pub mod eeprom;
mod effects;
pub mod fault;
pub mod fdir;
pub mod filter;
pub mod function;
pub mod irq;
pub mod judge;
pub mod link;
pub mod memory;
pub mod module;
pub mod packet;
mod pause;
pub mod port;
mod ptp;
pub mod regs;
mod ring;
mod rsc;
mod rss;
mod rx;
pub mod sfp;
pub mod trace;
mod tso;
mod tx;
mod wake;
pub mod watch;

#[cfg(test)]
mod card;
#[cfg(test)]
mod device_tests;
#[cfg(test)]
mod irq_tests;
#[cfg(test)]
mod rsc_tests;
#[cfg(test)]
mod rx_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tx_tests;
