// SPDX-License-Identifier: GPL-2.0

//! Network devices without a bus device: tunnels, virtual ports.

mod registrations;

#[cfg(all(CONFIG_KUNIT = "y", CONFIG_MODULES))]
mod tests;

use super::{
    registration::Registration,
    tx_path::{
        self,
        Direct, //
    },
    Driver,
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

/// A registered network device without a parent.
///
/// It is unregistered when this is dropped, or else when the module of its driver is unloaded: the
/// registration belongs to the module, and this is a handle.
pub struct VirtualDevice(u64);

impl VirtualDevice {
    /// Registers a network device of driver `T`, after [`Driver::probe`] has succeeded.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the module of `T` is being unloaded.
    pub fn new<T: Driver<Bus = NoParent>>(setup: T::Setup) -> Result<Self> {
        let (info, data) = T::probe(&NO_PARENT, setup)?;
        let new_path = tx_path::new::<T, Direct>;
        let mut registration = Registration::<T>::new(&NO_PARENT, &info, data, new_path)?;

        registration.register(&info)?;
        let registration = KBox::new(registration, GFP_KERNEL)?;
        registrations::add(this_module::<T::OwnerModule>(), registration).map(Self)
    }
}

impl Drop for VirtualDevice {
    fn drop(&mut self) {
        registrations::end(self.0);
    }
}
