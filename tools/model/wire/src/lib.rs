// SPDX-License-Identifier: GPL-2.0
//! What is plugged into the ports: a generator and checker of frames, cables, pcap files,
//! tap devices; and the fabric that carries frames between them and the ports.

pub mod fabric;
mod frames;
mod pace;
mod pcap;
mod run;
pub mod spec;
mod tap;
mod wires;

pub use fabric::{Fabric, Request, Turn};
