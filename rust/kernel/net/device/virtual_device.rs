// SPDX-License-Identifier: GPL-2.0

//! Network devices without a bus device: tunnels, virtual ports.

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
    prelude::*, //
};

use core::marker::PhantomPinned;

/// The parent of a [`VirtualDevice`], which has none.
pub struct NoParent(());

static NO_PARENT: NoParent = NoParent(());

// SAFETY: There is one, which is static.
unsafe impl Parent for NoParent {
    fn as_device(&self) -> Option<&device::Device<Bound>> {
        None
    }

    fn forbid_dma(&self) -> bool {
        // There is no card.
        true
    }
}

/// A registered network device without a parent.
///
/// It is unregistered when this is dropped; a module keeps it in its own data.
#[pin_data]
pub struct VirtualDevice<T: Driver<Bus = NoParent>> {
    _registration: Registration<T>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: There is nothing that can be done with a shared reference.
unsafe impl<T: Driver<Bus = NoParent>> Sync for VirtualDevice<T> {}

impl<T: Driver<Bus = NoParent>> VirtualDevice<T> {
    /// Registers a network device of driver `T`, after [`Driver::probe`] has succeeded.
    pub fn new(setup: T::Setup) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            _registration: Self::register(setup)?,
            _pin: PhantomPinned,
        }? Error)
    }

    fn register(setup: T::Setup) -> Result<Registration<T>> {
        let (info, data) = T::probe(&NO_PARENT, setup)?;
        let new_path = tx_path::new::<T, Direct>;
        let mut registration = Registration::<T>::new(&NO_PARENT, &info, data, new_path)?;

        registration.register(&info)?;
        Ok(registration)
    }
}
