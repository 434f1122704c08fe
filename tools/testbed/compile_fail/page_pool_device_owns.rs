//@ error: E0599 no method named `data`
// SPDX-License-Identifier: GPL-2.0

//! The CPU cannot read a buffer to which the device may write.

#![forbid(unsafe_code)]

use kernel::net::page_pool::DeviceBuffer;

//~ pub fn read(buffer: &kernel::net::page_pool::CpuBuffer<'_>) -> usize {
pub fn read(buffer: &DeviceBuffer) -> usize {
    buffer.data().len()
}
