// SPDX-License-Identifier: GPL-2.0

//! The restart of a receive queue, of any device.

use crate::{
    bindings,
    error::to_result,
    prelude::*,
    task::Task, //
};

/// Restarts a receive queue, with new memory, of the device with that index in the network
/// namespace of the task. The device stays up, and its other queues go on.
///
/// The device may be one of any driver, in C as well. If it is down, its driver makes memory for
/// the queue as a trial, if it does so at all.
///
/// This becomes part of the module that calls it, and the core has the function that it takes in a
/// namespace: the module says so with `imports_ns: ["NETDEV_INTERNAL"]`.
///
/// Context: process context, with neither RTNL nor the lock of a device held, and not in a callback
/// that the device waits for when it goes down.
///
/// # Errors
///
/// [`ENODEV`] if there is no such device, or if the task is exiting, [`ERANGE`] if it has no such
/// queue in use, [`EOPNOTSUPP`] if its driver cannot restart one. Those of the driver: then the
/// queue has the memory that it had before, or the driver has reported what else it did.
#[inline]
pub fn restart_rx_queue(ifindex: i32, queue: u32) -> Result {
    // SAFETY: The current task exists. Only the task itself changes its namespaces, and one that
    // exits has none.
    let dev = unsafe {
        let spaces = (*Task::current_raw()).nsproxy;
        if spaces.is_null() {
            return Err(ENODEV);
        }
        bindings::dev_get_by_index((*spaces).net_ns, ifindex)
    };
    if dev.is_null() {
        return Err(ENODEV);
    }

    // SAFETY: We have a reference to the device.
    unsafe { bindings::netdev_lock(dev) };
    // SAFETY: The device is valid, and locked.
    let result = unsafe { restart(dev, queue) };
    // SAFETY: It was locked above, by this task, and the reference is ours.
    unsafe {
        bindings::netdev_unlock(dev);
        bindings::dev_put(dev);
    }
    result
}

/// # Safety
///
/// The device must be valid, and locked.
#[inline]
unsafe fn restart(dev: *mut bindings::net_device, queue: u32) -> Result {
    // SAFETY: By the safety requirements. The core asks the operations for the configuration of a
    // queue in use.
    unsafe {
        if u32::from((*dev).reg_state) != bindings::netdev_reg_state_NETREG_REGISTERED {
            return Err(ENODEV);
        }
        if (*dev).queue_mgmt_ops.is_null() {
            return Err(EOPNOTSUPP);
        }
        if queue >= (*dev).real_num_rx_queues {
            return Err(ERANGE);
        }
        to_result(bindings::netdev_rx_queue_restart(dev, queue))
    }
}
