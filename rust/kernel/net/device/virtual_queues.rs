// SPDX-License-Identifier: GPL-2.0

//! Virtual devices with queue vectors.

#[cfg(all(CONFIG_KUNIT = "y", CONFIG_MODULES))]
mod tests;

use super::{
    registration::Registration,
    virtual_device::registrations::Registrable,
    Driver,
    Info,
    Parent,
    VirtualDevice, //
};

use crate::{
    device::{
        self,
        Bound, //
    },
    module::this_module,
    prelude::*, //
};

/// The parent of a [`VirtualDevice`] with queue vectors, which has none.
pub struct NoParent(());

static NO_PARENT: NoParent = NoParent(());

// SAFETY: There is one, which is static.
unsafe impl Parent for NoParent {
    const HAS_DMA: bool = false;

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

impl VirtualDevice {
    /// Makes a network device of driver `T`, and registers it after [`Driver::probe`] has
    /// succeeded.
    ///
    /// # Errors
    ///
    /// That of [`Driver::probe`]; `ENODEV` if the module of `T` is being unloaded; `EINVAL` if the
    /// description makes no sense; `ENOMEM`.
    pub fn with_queues<T: Driver<Bus = NoParent>>(setup: T::Setup) -> Result<Self> {
        let (info, data) = T::probe(&NO_PARENT, setup)?;
        let registration = Registration::<T>::new(&NO_PARENT, &info, data)?;
        let device = KBox::new(Described { registration, info }, GFP_KERNEL)?;

        Self::of(this_module::<T::OwnerModule>(), device)
    }
}
