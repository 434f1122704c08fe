// SPDX-License-Identifier: GPL-2.0

//! Network devices without a bus device: tunnels, virtual ports.

mod registrations;

#[cfg(all(CONFIG_KUNIT = "y", CONFIG_MODULES))]
mod tests;

use self::registrations::Registrable;

use super::{
    registration::Registration,
    Driver,
    Info,
    Parent, //
};

use crate::{
    device::{
        self,
        Bound, //
    },
    module::this_module,
    prelude::*, //
};

/// The parent of a [`VirtualDevice`], which has none.
pub struct NoParent(());

static NO_PARENT: NoParent = NoParent(());

// SAFETY: There is one, which is static.
unsafe impl Parent for NoParent {
    const HAS_CARD: bool = false;

    fn as_device(&self) -> Option<&device::Device<Bound>> {
        None
    }
}

/// A device with its description.
struct Described<T: Driver> {
    registration: Registration<T>,
    info: Info,
}

impl<T: Driver> Registrable for Described<T> {
    fn register(&mut self) -> Result {
        self.registration.register(&self.info)
    }
}

/// A network device without a parent.
///
/// It is unregistered when this is dropped, or else when the module of its driver is unloaded: the
/// registration belongs to the module, and this is a handle.
///
/// To make one, and to drop it, takes RTNL. So this is for process context, without RTNL, and not
/// for callbacks that are called with it held, or for which its holder waits.
pub struct VirtualDevice(u64);

impl VirtualDevice {
    /// Makes a network device of driver `T`, and registers it after [`Driver::probe`] has
    /// succeeded.
    ///
    /// # Errors
    ///
    /// That of [`Driver::probe`]; `ENODEV` if the module of `T` is being unloaded; `EINVAL` if the
    /// description makes no sense; `ENOMEM`.
    pub fn new<T: Driver<Bus = NoParent>>(setup: T::Setup) -> Result<Self> {
        let (info, data) = T::probe(&NO_PARENT, setup)?;
        let registration = Registration::<T>::new(&NO_PARENT, &info, data)?;
        let device = KBox::new(Described { registration, info }, GFP_KERNEL)?;

        registrations::add(this_module::<T::OwnerModule>(), device).map(Self)
    }
}

impl Drop for VirtualDevice {
    fn drop(&mut self) {
        registrations::end(self.0);
    }
}
