//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! A device that lies may write to a buffer at any time: there is no reference to what is in it.

#![forbid(unsafe_code)]

use kernel::net::page_pool::CpuBuffer;

//~ pub fn read<'a>(buffer: &'a CpuBuffer<'_>) -> kernel::io::SysMem<'a, [u8]> {
pub fn read<'a>(buffer: &'a CpuBuffer<'_>) -> &'a [u8] {
    buffer.data()
}
