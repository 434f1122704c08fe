// SPDX-License-Identifier: GPL-2.0

//! The devices that network devices belong to.

use super::{
    Rtnl,
    RtnlCell, //
};

use crate::{
    device::{
        self,
        Bound,
        Core, //
    },
    prelude::*, //
};

#[cfg(CONFIG_PCI)]
use crate::{
    bindings,
    pci, //
};

use core::ops::Deref;

/// The parent of a network device.
///
/// # Safety
///
/// A reference to an implementing type must be valid for as long as the network device is
/// registered, regardless of the lifetime of the reference that it was obtained from.
pub unsafe trait Parent: Sync + 'static {
    /// Whether the device may do DMA. If not, only the driver's code accesses memory.
    const HAS_DMA: bool = true;

    /// The device itself, if there is one.
    fn as_device(&self) -> Option<&device::Device<Bound>>;

    /// Enables DMA, if that is up to the parent.
    fn allow_dma(&self) {}

    /// Disables DMA of a device that its driver could not stop.
    ///
    /// Returns whether it is certain that DMA has ended.
    fn forbid_dma(&self) -> bool {
        false
    }
}

/// Devices whose bus mastering is off since they did not stop DMA and their rings were freed. One
/// entry, the address, per network device.
static DMA_BLOCKED: RtnlCell<KVec<usize>> = RtnlCell::new(KVec::new());

/// Blocks DMA of `bus` on behalf of one of its network devices, until [`dma_block_put`].
///
/// Not generic, as the next ones, so that this is not part of a driver's module.
#[inline(never)]
pub(super) fn dma_block_get(bus: usize, rtnl: &mut Rtnl) -> Result {
    DMA_BLOCKED.get_mut(rtnl).push(bus, GFP_KERNEL)?;
    Ok(())
}

/// Ends a [`dma_block_get`] of a network device of `bus`.
#[inline(never)]
pub(super) fn dma_block_put(bus: usize, rtnl: &mut Rtnl) {
    let blocked = DMA_BLOCKED.get_mut(rtnl);

    if let Some(index) = blocked.iter().position(|entry| *entry == bus) {
        let _ = blocked.remove(index);
    }
}

/// Whether a network device of `bus` has DMA blocked.
#[inline(never)]
pub(super) fn is_dma_blocked(bus: usize, rtnl: &Rtnl) -> bool {
    DMA_BLOCKED.get(rtnl).contains(&bus)
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

#[cfg(CONFIG_PCI)]
// SAFETY: `pci::Device` is a transparent wrapper of `struct pci_dev`, which is not freed while it is
// bound. The registration ends before it is unbound: see `register()`.
unsafe impl Parent for pci::Device<Bound> {
    fn as_device(&self) -> Option<&device::Device<Bound>> {
        Some(self.as_ref())
    }

    fn allow_dma(&self) {
        // SAFETY: The device is valid.
        unsafe { bindings::pci_set_master(as_raw(self)) };
    }

    fn forbid_dma(&self) -> bool {
        // SAFETY: The device is valid.
        unsafe { clear_master(as_raw(self)) }
    }
}

#[cfg(CONFIG_PCI)]
fn as_raw(pdev: &pci::Device<Bound>) -> *mut bindings::pci_dev {
    let dev: &device::Device<Bound> = pdev.as_ref();

    // SAFETY: This is the device that is part of a `struct pci_dev`.
    unsafe { crate::container_of!(dev.as_raw(), bindings::pci_dev, dev) }
}

/// Turns bus mastering off, and waits for requests that are under way. Returns whether that can be
/// relied on: it is off, or the device was removed.
///
/// If its configuration reads as all ones, the device counts as not turned off: it may be behind a
/// frozen channel, which lets no write through.
///
/// Not generic, so that this is not part of a driver's module.
///
/// # Safety
///
/// `pdev` must be valid. Process context.
#[cfg(CONFIG_PCI)]
#[inline(never)]
pub(super) unsafe fn clear_master(pdev: *mut bindings::pci_dev) -> bool {
    let mut command = 0;

    // SAFETY: By the safety requirements. The state is read while it may change. Reading
    // the register flushes earlier writes of the device.
    unsafe {
        bindings::pci_clear_master(pdev);
        if (&raw const (*pdev).error_state).read_volatile() == bindings::pci_channel_io_perm_failure
        {
            return true;
        }
        bindings::pci_read_config_word(pdev, bindings::PCI_COMMAND as c_int, &mut command) == 0
            && u32::from(command) & bindings::PCI_COMMAND_MASTER == 0
            && bindings::pci_wait_for_pending_transaction(pdev) != 0
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
