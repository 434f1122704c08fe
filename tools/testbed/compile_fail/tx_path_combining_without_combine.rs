//@ error: E0277 the trait bound `T: Combine` is not satisfied
// SPDX-License-Identifier: GPL-2.0

//! A combining device needs a driver that implements `Combine`.

#![forbid(unsafe_code)]

use kernel::{
    device::{
        Bound,
        Core, //
    },
    net::device::{
        self,
        combining::Combining, //
    },
    pci,
    prelude::*, //
};

pub fn bind<T>(bus: &pci::Device<Core<'_>>, setup: T::Setup) -> Result
where
    //~ T: device::combining::Combine<Bus = pci::Device<Bound>>,
    T: device::Driver<Bus = pci::Device<Bound>>,
{
    device::register_with::<T, Combining>(bus, setup)
}
