// SPDX-License-Identifier: GPL-2.0

//! The EEPROM of a NIC.

use super::super::prelude::*;

use core::slice;

/// A driver of a NIC with an EEPROM, see [`OptionalOps::eeprom`].
pub trait EepromOps: Driver {
    /// Size of the EEPROM in bytes.
    fn eeprom_len<'bound>(data: Pin<&Self::Data<'bound>>) -> usize;

    /// Reads the EEPROM from byte `offset` on, for `ethtool -e`. The range is within its size.
    fn read_eeprom<'bound>(
        data: Pin<&Self::Data<'bound>>,
        offset: usize,
        bytes: &mut [u8],
        lock: &mut OpsLocked<'bound>,
    ) -> Result;
}

impl<T: EepromOps> OptionalOps<T> {
    /// Adds the callbacks of [`EepromOps`].
    pub const fn eeprom(mut self) -> Self {
        self.ethtool.get_eeprom_len = Some(Self::get_eeprom_len);
        self.ethtool.get_eeprom = Some(Self::get_eeprom);
        self
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`.
    unsafe extern "C" fn get_eeprom_len(dev: *mut bindings::net_device) -> c_int {
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
    unsafe extern "C" fn get_eeprom(
        dev: *mut bindings::net_device,
        eeprom: *mut bindings::ethtool_eeprom,
        data: *mut u8,
    ) -> c_int {
        // SAFETY: The core calls us for a registered device, and holds its lock. `data` is as
        // long as `eeprom` says, which is valid.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let eeprom = unsafe { &*eeprom };
        // SAFETY: As above.
        let bytes = unsafe { slice::from_raw_parts_mut(data, eeprom.len as usize) };

        inner.if_reachable(|| {
            let offset = eeprom.offset as usize;
            let end = offset.checked_add(bytes.len()).ok_or(EINVAL)?;
            if end > T::eeprom_len(inner.data()) {
                return Err(EINVAL);
            }
            T::read_eeprom(inner.data(), offset, bytes, &mut lock)
        })
    }
}
