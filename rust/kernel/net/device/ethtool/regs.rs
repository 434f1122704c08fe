// SPDX-License-Identifier: GPL-2.0

//! The registers of a NIC.

use super::super::prelude::*;

use core::slice;

/// A driver that shows the registers of its NIC, see [`OptionalOps::regs`].
pub trait RegsOps: Driver {
    /// Number of registers that [`RegsOps::regs`] reads, for `ethtool -d`.
    const REGS: usize;

    /// The version of their layout.
    const REGS_VERSION: u32;

    /// Reads [`RegsOps::REGS`] registers, preferably those that do not change by that.
    fn regs<'bound>(
        data: Pin<&Self::Data<'bound>>,
        values: &mut [u32],
        lock: &mut OpsLocked<'bound>,
    );
}

impl<T: RegsOps> OptionalOps<T> {
    /// Adds the callbacks of [`RegsOps`].
    pub const fn regs(mut self) -> Self {
        self.ethtool.get_regs_len = Some(Self::get_regs_len);
        self.ethtool.get_regs = Some(Self::get_regs);
        self
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`.
    unsafe extern "C" fn get_regs_len(_dev: *mut bindings::net_device) -> c_int {
        const { assert!(T::REGS <= 1 << 20) };

        // CAST: It has just been checked.
        (T::REGS * size_of::<u32>()) as c_int
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `regs`. `data`
    /// must have as many bytes as `get_regs_len()` returns.
    unsafe extern "C" fn get_regs(
        dev: *mut bindings::net_device,
        regs: *mut bindings::ethtool_regs,
        data: *mut c_void,
    ) {
        // SAFETY: The core calls us for a registered device, and holds its lock. It has allocated
        // `data`, zeroed and aligned, for that many registers. `regs` is valid.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let values = unsafe {
            (*regs).version = T::REGS_VERSION;
            slice::from_raw_parts_mut(data.cast::<u32>(), T::REGS)
        };

        // If the device is suspended, they stay zero.
        if inner.check_reachable().is_ok() {
            T::regs(inner.data(), values, &mut lock);
        }
    }
}
