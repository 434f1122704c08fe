//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! A network device is registered from a callback of the bus. An object that is dropped when the
//! bus device is unbound has a reference to it, too, but a registration would be left behind.

#![forbid(unsafe_code)]

use core::marker::PhantomData;
use kernel::{
    device::Bound,
    net::device::{
        register,
        Driver, //
    },
    pci, //
};

pub struct Data<'bound, T: Driver<Bus = pci::Device<Bound>, Setup = ()>> {
    pub pdev: &'bound pci::Device<Bound>,
    pub other: PhantomData<T>,
}

impl<T: Driver<Bus = pci::Device<Bound>, Setup = ()>> Drop for Data<'_, T> {
    fn drop(&mut self) {
        //~ let _ = self.pdev;
        let _ = register::<T>(self.pdev, ());
    }
}
