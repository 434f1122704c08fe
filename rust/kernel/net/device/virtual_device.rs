// SPDX-License-Identifier: GPL-2.0

//! Network devices without a bus device: tunnels, virtual ports.

pub(super) mod registrations;

#[cfg(all(CONFIG_KUNIT = "y", CONFIG_MODULES))]
pub(super) mod tests;

use self::registrations::Registrable;

use super::virtual_driver::{
    DeviceOf,
    VirtualDriver, //
};

use crate::{
    module::this_module,
    prelude::*, //
};

/// A network device without a parent.
///
/// It is unregistered when this is dropped, or else when the module of its driver is unloaded: the
/// registration belongs to the module, and this is a handle.
///
/// To make one, and to drop it, takes RTNL. So this is for process context, without RTNL, and not
/// for callbacks that are called with it held, or for which its holder waits.
pub struct VirtualDevice(u64);

impl VirtualDevice {
    /// Makes a network device of driver `T`, and registers it.
    ///
    /// # Errors
    ///
    /// That of `driver`, or of the registration; `ENODEV` if the module of `T` is being unloaded;
    /// `EINVAL` if the name is too long; `ENOMEM`.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::net::{
    ///     device::{
    ///         VirtualDevice,
    ///         VirtualDriver, //
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
    /// fn make() -> Result<VirtualDevice> {
    ///     VirtualDevice::new(Ok(Sink))
    /// }
    /// ```
    pub fn new<T: VirtualDriver>(driver: impl PinInit<T, Error>) -> Result<Self> {
        let device = KBox::new(DeviceOf::new(driver)?, GFP_KERNEL)?;
        Self::of(this_module::<T::OwnerModule>(), device)
    }

    /// Registers `device`, until `owner` goes.
    pub(super) fn of(owner: &ThisModule, device: KBox<dyn Registrable>) -> Result<Self> {
        registrations::add(owner, device).map(Self)
    }
}

impl Drop for VirtualDevice {
    fn drop(&mut self) {
        registrations::end(self.0);
    }
}

impl<T: VirtualDriver> Registrable for DeviceOf<T> {
    fn register(&mut self) -> Result {
        DeviceOf::register(self)
    }
}
