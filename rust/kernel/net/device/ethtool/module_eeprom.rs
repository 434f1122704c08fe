// SPDX-License-Identifier: GPL-2.0

//! Plug-in modules.

use super::super::prelude::*;

use core::{
    mem,
    ptr,
    slice, //
};

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
    /// Returns the place of a byte of an SFP module, of which the diagnostics follow the identity.
    fn of_sfp(offset: u32) -> Self {
        Self {
            address: SFP_ADDRESSES[usize::from(offset >= PAGE_LEN)],
            bank: 0,
            page: 0,
            // CAST: It is less than `PAGE_LEN`.
            offset: (offset % PAGE_LEN) as u8,
        }
    }

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

/// The addresses of an SFP module: that of its identity, and that of its diagnostics.
const SFP_ADDRESSES: [u8; 2] = [0x50, 0x51];

/// The bytes that an SFP module says of itself (SFF-8472), at [`SFP_ADDRESSES`]`[0]`.
#[derive(Clone, Copy)]
struct SfpIdentity {
    /// Byte 0, the kind of the module (SFF-8024).
    identifier: u8,
    /// Byte 92, the type of its diagnostics.
    monitoring: u8,
    /// Byte 94, the revision of the specification that it complies with.
    compliance: u8,
}

impl SfpIdentity {
    /// Modules of other specifications begin here: QSFP and later ones, which have pages.
    const PAGED: u8 = 0x0c;
    /// It has diagnostics.
    const HAS_DIAGNOSTICS: u8 = 1 << 6;
    /// They come after a change of address, of which the drivers know nothing.
    const CHANGES_ADDRESS: u8 = 1 << 2;

    /// Returns type and number of all bytes, for programs that know nothing of pages.
    fn memory(self) -> Result<(u32, u32)> {
        let needed = Self::HAS_DIAGNOSTICS | Self::CHANGES_ADDRESS;

        if self.identifier >= Self::PAGED {
            return Err(EOPNOTSUPP);
        }
        if self.compliance != 0 && self.monitoring & needed == Self::HAS_DIAGNOSTICS {
            Ok((
                bindings::ETH_MODULE_SFF_8472,
                bindings::ETH_MODULE_SFF_8472_LEN,
            ))
        } else {
            Ok((
                bindings::ETH_MODULE_SFF_8079,
                bindings::ETH_MODULE_SFF_8079_LEN,
            ))
        }
    }
}

/// A driver of a NIC with plug-in modules, see [`OptionalOps::module_eeprom`].
pub trait ModuleEepromOps: Driver {
    /// Reads the memory of the plug-in module, for `ethtool -m`. `bytes` are zero before, and the
    /// range is within a page.
    ///
    /// [`EINVAL`] for a page that modules of this port do not have, [`EOPNOTSUPP`] if it has none
    /// at all: the core asks for the same bytes without pages then.
    fn module_eeprom<'bound>(
        data: Pin<&Self::Data<'bound>>,
        page: EepromPage,
        bytes: &mut [u8],
        lock: &mut OpsLocked<'bound>,
        extack: &ExtAck<'_>,
    ) -> Result;
}

impl<T: ModuleEepromOps> OptionalOps<T> {
    /// Adds the callbacks of [`ModuleEepromOps`]: one for pages, and those for programs that read
    /// all of an SFP module at once.
    pub const fn module_eeprom(mut self) -> Self {
        self.ethtool.get_module_eeprom_by_page = Some(Self::get_module_eeprom_by_page);
        self.ethtool.get_module_info = Some(Self::get_module_info);
        self.ethtool.get_module_eeprom = Some(Self::get_module_eeprom);
        self
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `info`.
    unsafe extern "C" fn get_module_info(
        dev: *mut bindings::net_device,
        info: *mut bindings::ethtool_modinfo,
    ) -> c_int {
        // SAFETY: The core calls us for a registered device, and holds its lock. There is no way
        // to give a reason.
        let ((inner, mut lock), extack) =
            unsafe { (ops::locked::<T>(dev), ExtAck::new(ptr::null_mut())) };
        // SAFETY: The core gives us `info` to fill in.
        let info = unsafe { &mut *info };

        inner.if_reachable(|| {
            let mut byte = |offset| {
                let mut byte = [0];
                let place = EepromPage::of_sfp(offset);

                T::module_eeprom(inner.data(), place, &mut byte, &mut lock, &extack)
                    .map(|()| byte[0])
            };
            let identity = SfpIdentity {
                identifier: byte(0)?,
                monitoring: byte(92)?,
                compliance: byte(94)?,
            };

            (info.type_, info.eeprom_len) = identity.memory()?;
            Ok(())
        })
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `eeprom`, which is
    /// within what [`Self::get_module_info`] says. `data` must have as many bytes as that says.
    unsafe extern "C" fn get_module_eeprom(
        dev: *mut bindings::net_device,
        eeprom: *mut bindings::ethtool_eeprom,
        data: *mut u8,
    ) -> c_int {
        // SAFETY: As above. `data` is as long as `eeprom` says, which is valid, and initialized.
        let ((inner, mut lock), extack, eeprom) = unsafe {
            (
                ops::locked::<T>(dev),
                ExtAck::new(ptr::null_mut()),
                &*eeprom,
            )
        };
        // SAFETY: As above.
        let mut bytes = unsafe { slice::from_raw_parts_mut(data, eeprom.len as usize) };

        inner.if_reachable(|| {
            let mut offset = eeprom.offset;

            while !bytes.is_empty() {
                let place = EepromPage::of_sfp(offset);
                let room = (PAGE_LEN - u32::from(place.offset)) as usize;
                let len = room.min(bytes.len());
                let (part, rest) = mem::take(&mut bytes).split_at_mut(len);

                part.fill(0);
                T::module_eeprom(inner.data(), place, part, &mut lock, &extack)?;
                // CAST: No more than `PAGE_LEN`.
                offset = offset.saturating_add(len as u32);
                bytes = rest;
            }
            Ok(())
        })
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

    #[test]
    fn a_byte_of_both_addresses_is_at_one_of_them() {
        let of = |offset| {
            let place = EepromPage::of_sfp(offset);
            (place.address, place.offset)
        };

        assert_eq!([0, 255].map(of), [(0x50, 0), (0x50, 255)]);
        assert_eq!([256, 511].map(of), [(0x51, 0), (0x51, 255)]);
    }

    #[test]
    fn a_module_has_diagnostics_if_it_says_so() {
        let of = |identifier, monitoring, compliance| {
            SfpIdentity {
                identifier,
                monitoring,
                compliance,
            }
            .memory()
            .map(|(_, len)| len)
        };

        assert_eq!(of(3, 0x68, 5), Ok(512));
        // It says that it has none, or nothing of the kind, or has them elsewhere.
        for (monitoring, compliance) in [(0, 5), (0x68, 0), (0x6c, 5)] {
            assert_eq!(of(3, monitoring, compliance), Ok(256));
        }
        assert_eq!(of(0x0d, 0x68, 5), Err(EOPNOTSUPP));
    }
}
