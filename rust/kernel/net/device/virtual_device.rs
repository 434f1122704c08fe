// SPDX-License-Identifier: GPL-2.0

//! Network devices without a bus device: tunnels, virtual ports.

#[cfg(CONFIG_KUNIT)]
mod tests;

use super::virtual_driver::{
    DeviceOf,
    VirtualDriver, //
};

use crate::{
    prelude::*,
    sync::SetOnce, //
};

/// The virtual devices of a module.
///
/// They belong to the module, and are unregistered, the newest one first, when it is unloaded, or
/// could not be initialised. Only [`VirtualModule::init`] gets a reference, so no callback of a
/// driver can make a device or end one: both take RTNL, which may be held there.
pub struct VirtualDevices(KVec<KBox<dyn Send>>);

// SAFETY: A shared reference gives access to nothing.
unsafe impl Sync for VirtualDevices {}

impl VirtualDevices {
    /// Initialises the devices of module `T`, once; `EBUSY` after that.
    ///
    /// Process context, without RTNL, as to drop them.
    ///
    /// # Safety
    ///
    /// The first call with this `is_loaded` must be that of the module's loader, which drops the
    /// devices before the code of `T` goes.
    #[doc(hidden)]
    pub unsafe fn new<T: VirtualModule>(is_loaded: &SetOnce<()>) -> Result<Self> {
        if !is_loaded.populate(()) {
            return Err(EBUSY);
        }
        let mut devices = Self(KVec::new());
        T::init(&mut devices)?;
        Ok(devices)
    }

    /// Makes a network device of driver `T`, and registers it.
    ///
    /// # Errors
    ///
    /// That of `driver`, or of the registration; `EINVAL` if the name is too long; `ENOMEM`.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::net::{
    ///     device::{
    ///         VirtualDevices,
    ///         VirtualDriver,
    ///         VirtualModule, //
    ///     },
    ///     skbuff::SkBuff, //
    /// };
    ///
    /// struct Sink;
    /// #[vtable]
    /// impl VirtualDriver for Sink {
    ///     const NAME: &'static CStr = c"sink%d";
    ///
    ///     fn start_xmit(&self, skb: SkBuff) {
    ///         skb.consume();
    ///     }
    /// }
    ///
    /// struct Sinks;
    /// impl VirtualModule for Sinks {
    ///     fn init(devices: &mut VirtualDevices) -> Result {
    ///         devices.add(Ok(Sink))
    ///     }
    /// }
    /// ```
    pub fn add<T: VirtualDriver>(&mut self, driver: impl PinInit<T, Error>) -> Result {
        let mut device = DeviceOf::new(driver)?;

        device.register()?;
        self.keep(device)
    }

    /// Keeps a registered device, which is unregistered when it is dropped.
    pub(super) fn keep(&mut self, device: impl Send + 'static) -> Result {
        let device = KBox::new(device, GFP_KERNEL)?;

        Ok(self.0.push(device, GFP_KERNEL)?)
    }
}

impl Drop for VirtualDevices {
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}

/// A module with virtual devices, see [`module_virtual_devices!`](crate::module_virtual_devices).
pub trait VirtualModule {
    /// Makes the devices. Called when the module is loaded, in process context, without RTNL.
    fn init(devices: &mut VirtualDevices) -> Result;
}

/// Declares a module whose devices a [`VirtualModule`](crate::net::device::VirtualModule) makes.
///
/// # Examples
///
/// ```ignore
/// kernel::module_virtual_devices! {
///     type: Sinks,
///     name: "sink",
///     authors: ["Author name"],
///     description: "Description",
///     license: "GPL v2",
/// }
/// ```
#[macro_export]
macro_rules! module_virtual_devices {
    (type: $type:ty, $($f:tt)*) => {
        struct VirtualDevicesModule {
            _devices: $crate::net::device::VirtualDevices,
        }

        impl $crate::Module for VirtualDevicesModule {
            fn init(_module: &'static $crate::ThisModule) -> $crate::error::Result<Self> {
                static IS_LOADED: $crate::sync::SetOnce<()> = $crate::sync::SetOnce::new();

                // SAFETY: No code of a module runs before the loader calls this. That keeps the
                // result in a static, and drops it as the last thing that it does with the module.
                let _devices = unsafe {
                    $crate::net::device::VirtualDevices::new::<$type>(&IS_LOADED)?
                };
                Ok(Self { _devices })
            }
        }

        $crate::prelude::module! {
            type: VirtualDevicesModule,
            $($f)*
        }
    }
}
