// SPDX-License-Identifier: GPL-2.0

//! The restart of a receive queue, of any device.

use crate::{
    bindings,
    error::to_result,
    prelude::*, //
};

/// Restarts a receive queue, with new memory, of the device with that index in the network
/// namespace of the task. The device stays up, and its other queues go on.
///
/// The device may be one of any driver, in C as well. If it is down, its driver makes memory for
/// the queue as a trial, if it does so at all.
///
/// Not generic, so that this is not part of a module: the symbols are not for all modules.
///
/// Context: process context, with neither RTNL nor the lock of a device held, and not in a callback
/// that the device waits for when it goes down.
///
/// # Errors
///
/// [`ENODEV`] if there is no such device, or if the task is exiting, [`ERANGE`] if it has no such
/// queue in use, [`EOPNOTSUPP`] if its driver cannot restart one. Those of the driver: then the
/// queue has the memory that it had before, or the driver has reported what else it did.
#[inline(never)]
pub fn restart_rx_queue(ifindex: i32, queue: u32) -> Result {
    // SAFETY: This is process context. There may be no network namespace.
    let dev = unsafe { bindings::netdev_find_and_lock(ifindex) };
    if dev.is_null() {
        return Err(ENODEV);
    }

    // SAFETY: The device is valid as long as it is locked.
    let result = to_result(unsafe { bindings::netdev_restart_rx_queue(dev, queue) });
    // SAFETY: Locked above, by this task.
    unsafe { bindings::netdev_unlock(dev) };
    result
}
