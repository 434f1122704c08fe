// SPDX-License-Identifier: GPL-2.0
//! The wires of the ports: a generator and checker of frames, cables, pcap files, TAP devices; and
//! the fabric that carries frames between them and the ports.

pub mod answer;
mod end;
pub mod fabric;
pub mod files;
mod frames;
mod pace;
mod pcap;
mod run;
pub mod spec;
mod stream;
mod tap;
mod wires;

pub use end::End;
pub use fabric::{Activity, Fabric, Request};
pub use stream::Stream;
