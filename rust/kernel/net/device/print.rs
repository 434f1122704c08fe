// SPDX-License-Identifier: GPL-2.0

//! Messages of network devices.
//!
//! A network device can be renamed at any time, which frees the name of its generic device. So that
//! is never lent out, and messages are printed by C, from the name in the `struct net_device`.
//!
//! C header: [`include/net/net_debug.h`](srctree/include/net/net_debug.h)

use super::Device;

use crate::{
    bindings,
    prelude::*, //
};

impl Device {
    /// Prints a message after the driver, the parent and the name of the device.
    ///
    /// `level` is the number of a level, which the macros know.
    #[doc(hidden)]
    #[cold]
    pub fn printk(&self, level: u8, message: crate::fmt::Arguments<'_>) {
        // As `KERN_ERR` and others are.
        let level = [1, b'0' + level % 8, 0];

        // SAFETY: By the type invariants, the device is valid. The level and the format end in NUL,
        // and `%pA` takes a pointer to `fmt::Arguments`.
        unsafe {
            bindings::netdev_printk(
                level.as_ptr(),
                self.as_raw(),
                c"%pA".as_char_ptr(),
                (&raw const message).cast::<c_void>(),
            )
        };
    }

    /// Logs the reason for the refusal of a request whose reply has no place for it, and returns
    /// `error`.
    pub fn refuse(&self, error: Error, reason: &str) -> Error {
        crate::netdev_notice!(self, "{}\n", reason);
        error
    }
}

/// Prints a message of a network device. Drivers use a macro for its level, as [`netdev_err`].
///
/// [`netdev_err`]: crate::netdev_err
#[doc(hidden)]
#[macro_export]
macro_rules! netdev_printk {
    ($level:literal, $dev:expr, $($f:tt)*) => {
        $crate::net::device::Device::printk($dev, $level, $crate::prelude::fmt!($($f)*))
    };
}

/// Prints an error of a network device: `netdev_err!(dev, "queue {} hangs\n", queue)`.
#[macro_export]
macro_rules! netdev_err {
    ($($f:tt)*) => { $crate::netdev_printk!(3, $($f)*) };
}

/// Prints a warning of a network device, as [`netdev_err`](crate::netdev_err) does an error.
#[macro_export]
macro_rules! netdev_warn {
    ($($f:tt)*) => { $crate::netdev_printk!(4, $($f)*) };
}

/// Prints a notice of a network device, as [`netdev_err`](crate::netdev_err) does an error.
#[macro_export]
macro_rules! netdev_notice {
    ($($f:tt)*) => { $crate::netdev_printk!(5, $($f)*) };
}

/// Prints information on a network device, as [`netdev_err`](crate::netdev_err) does an error.
#[macro_export]
macro_rules! netdev_info {
    ($($f:tt)*) => { $crate::netdev_printk!(6, $($f)*) };
}
