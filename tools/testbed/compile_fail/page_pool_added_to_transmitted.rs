//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! A received buffer becomes part of a packet that is ours alone.

#![forbid(unsafe_code)]

use kernel::{
    net::{
        page_pool::CpuBuffer,
        skbuff, //
    },
    prelude::*, //
};

//~ pub fn add(buffer: CpuBuffer<'_>, packet: &mut skbuff::UniqueSkBuff) -> Result {
pub fn add(buffer: CpuBuffer<'_>, packet: &mut skbuff::SkBuff) -> Result {
    buffer.add_to(packet)
}
