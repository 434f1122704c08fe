// SPDX-License-Identifier: GPL-2.0

//! Plug-in modules.

use super::super::prelude::*;

use core::slice;

/// Bytes that a place can have an offset in.
const PAGE_LEN: u32 = 2 * bindings::ETH_MODULE_EEPROM_PAGE_LEN;

/// A place in the pages of the memory of a plug-in module, see [`ModuleEepromOps::module_eeprom`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EepromPage {
    /// The module's address on the I2C bus, of 7 bits: usually 0x50 or 0x51.
    pub address: u8,
    /// The bank, of modules that have several.
    pub bank: u8,
    /// The page in it. All have the lower 128 bytes in common.
    pub page: u8,
    /// The first byte.
    pub offset: u8,
}

impl EepromPage {
    /// Returns the place that the core asks for, and the number of bytes there.
    fn of(request: &bindings::ethtool_module_eeprom) -> Result<(Self, usize)> {
        let end = request.offset.checked_add(request.length).ok_or(EINVAL)?;

        if end > PAGE_LEN || request.length == 0 {
            return Err(EINVAL);
        }
        let place = Self {
            address: request.i2c_address,
            bank: request.bank,
            page: request.page,
            // CAST: It is less than `PAGE_LEN`.
            offset: request.offset as u8,
        };
        Ok((place, request.length as usize))
    }
}

/// A driver of a NIC with plug-in modules, see [`OptionalOps::module_eeprom`].
pub trait ModuleEepromOps: Driver {
    /// Reads the memory of the plug-in module, for `ethtool -m`. `bytes` are zero before, and the
    /// range is within a page.
    ///
    /// [`EOPNOTSUPP`] for a page that modules of this port do not have.
    fn module_eeprom<'bound>(
        data: Pin<&Self::Data<'bound>>,
        page: EepromPage,
        bytes: &mut [u8],
        lock: &mut OpsLocked<'bound>,
        extack: &ExtAck<'_>,
    ) -> Result;
}

impl<T: ModuleEepromOps> OptionalOps<T> {
    /// Adds the callback of [`ModuleEepromOps`].
    pub const fn module_eeprom(mut self) -> Self {
        self.ethtool.get_module_eeprom_by_page = Some(Self::get_module_eeprom_by_page);
        self
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `page`, whose data
    /// must have as many bytes as it says, and a null or valid `extack`.
    unsafe extern "C" fn get_module_eeprom_by_page(
        dev: *mut bindings::net_device,
        page: *const bindings::ethtool_module_eeprom,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The core calls us for a registered device, and holds its lock. `page` and
            // `extack` are valid for the call.
            let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
            // SAFETY: As above.
            let (page, extack) = unsafe { (&*page, ExtAck::new(extack)) };
            inner.check_reachable()?;

            let (place, len) = EepromPage::of(page)?;
            // SAFETY: The core has allocated that many bytes, and leaves them to us. This
            // initializes them.
            let bytes = unsafe {
                page.data.write_bytes(0, len);
                slice::from_raw_parts_mut(page.data, len)
            };
            T::module_eeprom(inner.data(), place, bytes, &mut lock, &extack)?;
            // CAST: No more than `PAGE_LEN`.
            Ok(len as c_int)
        })
    }
}

#[macros::kunit_tests(rust_net_module_eeprom)]
mod tests {
    use super::*;

    fn request(offset: u32, length: u32) -> Result<(EepromPage, usize)> {
        let mut request: bindings::ethtool_module_eeprom = pin_init::zeroed();

        request.i2c_address = 0x51;
        request.offset = offset;
        request.length = length;
        EepromPage::of(&request)
    }

    #[test]
    fn a_place_is_within_a_page() -> Result {
        let (place, len) = request(255, 1)?;

        assert_eq!((place.address, place.offset, len), (0x51, 255, 1));
        assert_eq!(request(0, 256).map(|(_, len)| len), Ok(256));
        assert_eq!(request(255, 2), Err(EINVAL));
        assert_eq!(request(u32::MAX, 1), Err(EINVAL));
        assert_eq!(request(0, 0), Err(EINVAL));
        Ok(())
    }
}
