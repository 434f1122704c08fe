// SPDX-License-Identifier: GPL-2.0

//! Network devices without a bus device: tunnels, virtual ports.

mod driver;
mod handle;
pub(super) mod registrations;

#[cfg(all(CONFIG_KUNIT = "y", CONFIG_MODULES))]
pub(super) mod tests;

pub use self::driver::VirtualDriver;
pub use self::handle::VirtualDevice;
