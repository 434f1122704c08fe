// SPDX-License-Identifier: GPL-2.0

//! The version of the firmware.

use super::super::prelude::*;

use crate::{
    fmt,
    str::NullTerminatedFormatter, //
};

use core::fmt::Write;

const VERSION_LEN: usize = bindings::ETHTOOL_FWVERS_LEN as usize;

/// Takes the version of the firmware, see [`DrvinfoOps::firmware`].
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

/// A driver that knows the version of the firmware, see [`OptionalOps::drvinfo`].
pub trait DrvinfoOps: Driver {
    /// The version of the firmware, for `ethtool -i`.
    fn firmware<'bound>(data: Pin<&Self::Data<'bound>>, version: &mut FirmwareVersion<'_>);
}

impl<T: DrvinfoOps> OptionalOps<T> {
    /// Adds the callback of [`DrvinfoOps`].
    pub const fn drvinfo(mut self) -> Self {
        self.ethtool.get_drvinfo = Some(Self::get_drvinfo);
        self
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `info`.
    unsafe extern "C" fn get_drvinfo(
        dev: *mut bindings::net_device,
        info: *mut bindings::ethtool_drvinfo,
    ) {
        // SAFETY: The core calls us for a registered device.
        let inner = unsafe { ops::inner::<T>(dev) };
        // SAFETY: The core gives us zeroed `info` to fill in. Its characters are bytes.
        let version = unsafe { &mut *(&raw mut (*info).fw_version).cast::<[u8; VERSION_LEN]>() };

        if inner.check_reachable().is_ok() {
            T::firmware(inner.data(), &mut FirmwareVersion(version));
        }
    }
}
