// SPDX-License-Identifier: GPL-2.0

//! The devices that network devices belong to.

use crate::{
    device::{
        self,
        Bound,
        Core, //
    },
    platform, //
};

#[cfg(CONFIG_PCI)]
use crate::pci;

use core::ops::Deref;

/// The parent of a network device.
///
/// # Safety
///
/// A reference to an implementing type must be valid for as long as the network device is
/// registered, regardless of the lifetime of the reference that it was obtained from.
pub unsafe trait Parent: Sync + 'static {
    /// The device itself, if there is one.
    fn as_device(&self) -> Option<&device::Device<Bound>>;
}

/// A device on a bus, whose driver can register network devices.
///
/// # Safety
///
/// A reference to an implementing type must be a reference to the C structure of the device.
pub unsafe trait BusDevice: Parent {
    /// The device in the callbacks of its bus.
    type Core<'a>: Deref<Target = Self>;

    /// The generic device in the same context.
    fn as_core<'r, 'a>(bus: &'r Self::Core<'a>) -> &'r device::Device<Core<'a>>;
}

// SAFETY: `device::Device` is a transparent wrapper of `struct device`, which is not freed while it
// is bound. The registration ends before it is unbound: see `register_path()`.
unsafe impl Parent for device::Device<Bound> {
    fn as_device(&self) -> Option<&device::Device<Bound>> {
        Some(self)
    }
}

// SAFETY: It is a transparent wrapper.
unsafe impl BusDevice for device::Device<Bound> {
    type Core<'a> = device::Device<Core<'a>>;

    fn as_core<'r, 'a>(bus: &'r Self::Core<'a>) -> &'r device::Device<Core<'a>> {
        bus
    }
}

#[cfg(CONFIG_PCI)]
// SAFETY: `pci::Device` is a transparent wrapper of `struct pci_dev`, else as above.
unsafe impl Parent for pci::Device<Bound> {
    fn as_device(&self) -> Option<&device::Device<Bound>> {
        Some(self.as_ref())
    }
}

#[cfg(CONFIG_PCI)]
// SAFETY: It is a transparent wrapper.
unsafe impl BusDevice for pci::Device<Bound> {
    type Core<'a> = pci::Device<Core<'a>>;

    fn as_core<'r, 'a>(bus: &'r Self::Core<'a>) -> &'r device::Device<Core<'a>> {
        bus.as_ref()
    }
}

// SAFETY: `platform::Device` is a transparent wrapper of `struct platform_device`, else as above.
unsafe impl Parent for platform::Device<Bound> {
    fn as_device(&self) -> Option<&device::Device<Bound>> {
        Some(self.as_ref())
    }
}

// SAFETY: It is a transparent wrapper.
unsafe impl BusDevice for platform::Device<Bound> {
    type Core<'a> = platform::Device<Core<'a>>;

    fn as_core<'r, 'a>(bus: &'r Self::Core<'a>) -> &'r device::Device<Core<'a>> {
        bus.as_ref()
    }
}
