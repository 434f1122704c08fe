// SPDX-License-Identifier: GPL-2.0

//! Virtual devices with queue vectors.

#[cfg(CONFIG_KUNIT)]
mod tests;

use super::{
    registration::Registration,
    Driver,
    Parent,
    VirtualDevices, //
};

use crate::{
    device::{
        self,
        Bound, //
    },
    prelude::*, //
};

/// The parent of a virtual device with queue vectors, which has none.
pub struct NoParent(());

static NO_PARENT: NoParent = NoParent(());

// SAFETY: There is one, which is static.
unsafe impl Parent for NoParent {
    fn as_device(&self) -> Option<&device::Device<Bound>> {
        None
    }

    unsafe fn reset(&self) -> bool {
        // Only the driver's code accesses memory.
        true
    }
}

impl VirtualDevices {
    /// Makes a network device of driver `T`, and registers it after [`Driver::probe`] has
    /// succeeded.
    ///
    /// # Errors
    ///
    /// That of [`Driver::probe`]; `EINVAL` if the description makes no sense; `ENOMEM`.
    pub fn add_with_queues<T: Driver<Bus = NoParent>>(&mut self, setup: T::Setup) -> Result {
        let (info, data) = T::probe(&NO_PARENT, setup)?;
        let mut registration = Registration::<T>::new(&NO_PARENT, &info, data)?;

        registration.register(&info)?;
        self.keep(registration)
    }
}
