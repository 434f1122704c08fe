// SPDX-License-Identifier: GPL-2.0

//! Looking at the card: firmware, registers, EEPROM, and the light that identifies it.

use super::{
    super::{
        ops,
        optional_ops::OptionalOps, //
    },
    Controls, //
};

use crate::{
    bindings,
    error::from_result,
    fmt,
    prelude::*,
    str::NullTerminatedFormatter, //
};

use core::{
    fmt::Write,
    slice, //
};

const VERSION_LEN: usize = bindings::ETHTOOL_FWVERS_LEN as usize;

/// Takes the version of the firmware, see [`Controls::firmware`].
pub struct FirmwareVersion<'a>(&'a mut [u8; VERSION_LEN]);

impl FirmwareVersion<'_> {
    /// Sets it, up to 31 characters.
    pub fn set(&mut self, version: fmt::Arguments<'_>) {
        if let Some(mut buffer) = NullTerminatedFormatter::new(self.0.as_mut_slice()) {
            // It is truncated if it does not fit.
            let _ = buffer.write_fmt(version);
        }
    }
}

impl<T: Controls> OptionalOps<T> {
    /// Number of times that the light goes on in a second.
    const BLINKS: c_int = 2;

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `info`.
    pub(super) unsafe extern "C" fn get_drvinfo(
        dev: *mut bindings::net_device,
        info: *mut bindings::ethtool_drvinfo,
    ) {
        // SAFETY: The core calls us for a registered device, and gives us zeroed `info` to fill in.
        // Its characters are bytes.
        let (inner, version) = unsafe {
            (
                ops::inner::<T>(dev),
                &mut *(&raw mut (*info).fw_version).cast::<[u8; VERSION_LEN]>(),
            )
        };

        if inner.check_reachable().is_ok() {
            T::firmware(inner.data(), &mut FirmwareVersion(version));
        }
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`.
    pub(super) unsafe extern "C" fn get_regs_len(_dev: *mut bindings::net_device) -> c_int {
        const { assert!(T::REGISTERS <= 1 << 20) };

        // CAST: It has just been checked.
        (T::REGISTERS * size_of::<u32>()) as c_int
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `regs`. `data`
    /// must have as many bytes as `get_regs_len()` returns.
    pub(super) unsafe extern "C" fn get_regs(
        dev: *mut bindings::net_device,
        regs: *mut bindings::ethtool_regs,
        data: *mut c_void,
    ) {
        // SAFETY: The core calls us for a registered device, and holds its lock. It has allocated
        // `data`, zeroed and aligned, for that many registers. `regs` is valid.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let values = unsafe {
            (*regs).version = T::REGISTERS_VERSION;
            slice::from_raw_parts_mut(data.cast::<u32>(), T::REGISTERS)
        };

        // If the device is suspended, they stay zero.
        if inner.check_reachable().is_ok() {
            T::registers(inner.data(), values, &mut lock);
        }
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`.
    pub(super) unsafe extern "C" fn get_eeprom_len(dev: *mut bindings::net_device) -> c_int {
        // SAFETY: The core calls us for a registered device.
        let inner = unsafe { ops::inner::<T>(dev) };

        if inner.check_reachable().is_err() {
            return 0;
        }
        c_int::try_from(T::eeprom_len(inner.data())).unwrap_or(0)
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `eeprom`. `data`
    /// must have as many bytes as that says.
    pub(super) unsafe extern "C" fn get_eeprom(
        dev: *mut bindings::net_device,
        eeprom: *mut bindings::ethtool_eeprom,
        data: *mut u8,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The core calls us for a registered device, and holds its lock. `data` is as
            // long as `eeprom` says, which is valid.
            let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
            // SAFETY: As above.
            let (eeprom, bytes) = unsafe {
                (
                    &*eeprom,
                    slice::from_raw_parts_mut(data, (*eeprom).len as usize),
                )
            };
            inner.check_reachable()?;

            let offset = eeprom.offset as usize;
            let end = offset.checked_add(bytes.len()).ok_or(EINVAL)?;
            if end > T::eeprom_len(inner.data()) {
                return Err(EINVAL);
            }
            T::read_eeprom(inner.data(), offset, bytes, &mut lock)?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`.
    pub(super) unsafe extern "C" fn set_phys_id(
        dev: *mut bindings::net_device,
        state: bindings::ethtool_phys_id_state,
    ) -> c_int {
        // SAFETY: The core calls us for a registered device. It does so for one user at a time, and
        // keeps the device from being unregistered.
        let inner = unsafe { ops::inner::<T>(dev) };
        if let Err(error) = inner.check_reachable() {
            return error.to_errno();
        }

        let (on, blinks) = match state {
            // The core turns it on and off from now on, so many times a second.
            bindings::ethtool_phys_id_state::ETHTOOL_ID_ACTIVE => (Some(true), Self::BLINKS),
            bindings::ethtool_phys_id_state::ETHTOOL_ID_ON => (Some(true), 0),
            bindings::ethtool_phys_id_state::ETHTOOL_ID_OFF => (Some(false), 0),
            _ => (None, 0),
        };
        from_result(|| T::identify(inner.data(), on).map(|()| blinks))
    }
}
