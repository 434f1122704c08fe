//@ error: E0277 the trait bound `T: Combine` is not satisfied
// SPDX-License-Identifier: GPL-2.0

//! A combining device needs a driver that implements `Combine`.

#![forbid(unsafe_code)]

use kernel::{
    net::device::{
        self,
        combining::Combining, //
    },
    prelude::*, //
};

//~ pub fn bind<T: device::combining::Combine>(bus: &T::Bus, setup: T::Setup) -> Result {
pub fn bind<T: device::Driver>(bus: &T::Bus, setup: T::Setup) -> Result {
    device::register_with::<T, Combining>(bus, setup)
}
