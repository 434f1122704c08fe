// SPDX-License-Identifier: GPL-2.0

//! Access to the registers of a port.

use kernel::{
    io::{
        poll::read_poll_timeout,
        Io, //
    },
    pci,
    prelude::*,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

use crate::regs::*;

/// Size of the register space.
pub(crate) const BAR_SIZE: usize = 0x20000;

/// The register space.
pub(crate) type Bar0<'bound> = pci::Bar<'bound, BAR_SIZE>;

/// Returns whether the device has been removed: then all registers read as all ones.
pub(crate) fn is_gone(bar: &Bar0<'_>) -> bool {
    bar.read(STATUS).into_raw() == u32::MAX
}

/// Flushes posted writes to the device.
pub(crate) fn flush(bar: &Bar0<'_>) {
    bar.read(STATUS);
}

/// Polls `read` every `interval` until `cond` holds for its value, and returns that.
///
/// On a busy host, a virtual machine may lose its CPU for longer than `timeout`, and have read only
/// once by then. So time alone does not make this fail: some more reads have to agree.
pub(crate) fn poll<T>(
    mut read: impl FnMut() -> T,
    mut cond: impl FnMut(&T) -> bool,
    interval: Delta,
    timeout: Delta,
) -> Result<T> {
    const MORE_READS: usize = 8;

    read_poll_timeout(|| Ok(read()), &mut cond, interval, timeout).or_else(|error| {
        for _ in 0..MORE_READS {
            fsleep(interval);
            let value = read();
            if cond(&value) {
                return Ok(value);
            }
        }
        Err(error)
    })
}

/// Polls `read` until `cond` holds for its value, or the device is gone.
///
/// A removed device counts as success: it does no DMA, and callers check [`is_gone`] where it
/// matters.
pub(crate) fn wait_for<T>(
    bar: &Bar0<'_>,
    read: impl Fn() -> T,
    cond: impl Fn(&T) -> bool,
    timeout: Delta,
) -> Result {
    poll(
        read,
        |value| cond(value) || is_gone(bar),
        Delta::from_micros(100),
        timeout,
    )
    .map(|_| ())
}
