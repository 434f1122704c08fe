//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! Descriptors have the byte order of cards, not that of the CPU.

#![forbid(unsafe_code)]

use kernel::{
    dma::Coherent,
    io::io_write,
    net::queue::Le64, //
};

pub fn give(ring: &Coherent<[[Le64; 2]; 8]>, address: u64) {
    //~ io_write!(ring, [build: 0][build: 0], Le64::new(address));
    io_write!(ring, [build: 0][build: 0], address);
}
