// SPDX-License-Identifier: GPL-2.0

//! The light that identifies a port.

use super::super::prelude::*;

/// Number of times that the light goes on in a second.
const BLINKS: c_int = 2;

/// A driver of a port with a light, see [`OptionalOps::phys_id`].
pub trait PhysIdOps: Driver {
    /// Turns the light that identifies the port on or off, or gives it back to the NIC with
    /// [`None`]; for `ethtool -p`.
    ///
    /// Called with `Some(true)` first, and with [`None`] last. Not called concurrently for a
    /// device, but without the lock: it is released while the light blinks.
    fn set_phys_id<'bound>(data: Pin<&Self::Data<'bound>>, on: Option<bool>) -> Result;
}

impl<T: PhysIdOps> OptionalOps<T> {
    /// Adds the callback of [`PhysIdOps`].
    pub const fn phys_id(mut self) -> Self {
        self.ethtool.set_phys_id = Some(Self::set_phys_id);
        self
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`.
    unsafe extern "C" fn set_phys_id(
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
            bindings::ethtool_phys_id_state::ETHTOOL_ID_ACTIVE => (Some(true), BLINKS),
            bindings::ethtool_phys_id_state::ETHTOOL_ID_ON => (Some(true), 0),
            bindings::ethtool_phys_id_state::ETHTOOL_ID_OFF => (Some(false), 0),
            _ => (None, 0),
        };
        from_result(|| T::set_phys_id(inner.data(), on).map(|()| blinks))
    }
}
