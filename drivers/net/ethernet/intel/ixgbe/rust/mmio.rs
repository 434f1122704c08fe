// SPDX-License-Identifier: GPL-2.0

//! Access to the registers of a port.

use kernel::{
    device::Bound,
    io::{
        poll::read_poll_timeout,
        register::Register, //
    },
    pci::{
        self,
        CheckedBar, //
    },
    prelude::*,
    time::{
        delay::fsleep,
        Delta,
        Instant,
        Monotonic, //
    }, //
};

use crate::regs::*;

/// Size of the register space.
const BAR_SIZE: usize = 0x20000;

/// The register space, in which STATUS is never all ones.
pub(crate) type Bar0<'bound> = CheckedBar<'bound, BAR_SIZE, { STATUS::OFFSET }>;

/// Maps the registers.
pub(crate) fn map(pdev: &pci::Device<Bound>) -> Result<Bar0<'_>> {
    pdev.iomap_region_sized(0, c"ixgbe_rust")
        .map(CheckedBar::new)
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
    mut read: impl FnMut() -> Result<T>,
    mut cond: impl FnMut(&T) -> bool,
    interval: Delta,
    timeout: Delta,
) -> Result<T> {
    const MORE_READS: usize = 8;

    read_poll_timeout(&mut read, &mut cond, interval, timeout).or_else(|error| {
        for _ in 0..MORE_READS {
            fsleep(interval);
            let value = read()?;
            if cond(&value) {
                return Ok(value);
            }
        }
        Err(error)
    })
}

/// Polls `read` until `cond` holds for its value.
pub(crate) fn wait_for<T>(
    read: impl FnMut() -> Result<T>,
    cond: impl FnMut(&T) -> bool,
    timeout: Delta,
) -> Result {
    poll(read, cond, Delta::from_micros(100), timeout).map(|_| ())
}

/// The end of an operation of several steps, which share its time.
#[derive(Clone, Copy)]
pub(crate) struct Deadline(Instant<Monotonic>);

impl Deadline {
    /// The end of an operation that begins now.
    pub(crate) fn after(time: Delta) -> Self {
        Self(Instant::now() + time)
    }

    /// The earlier one.
    pub(crate) fn min(self, other: Self) -> Self {
        if self.0 - other.0 < Delta::ZERO {
            self
        } else {
            other
        }
    }

    /// As [`poll`] until then: after that, only the reads that are needed on a busy host.
    pub(crate) fn poll<T>(
        self,
        read: impl FnMut() -> Result<T>,
        cond: impl FnMut(&T) -> bool,
        interval: Delta,
    ) -> Result<T> {
        poll(read, cond, interval, self.0 - Instant::now())
    }
}
