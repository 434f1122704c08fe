// SPDX-License-Identifier: GPL-2.0

//! The devices that network devices belong to.

use crate::device::{
    self,
    Bound,
    Core, //
};

#[cfg(CONFIG_PCI)]
use crate::{
    bindings,
    ffi::c_int,
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
    /// The device itself, if there is one.
    fn as_device(&self) -> Option<&device::Device<Bound>>;

    /// Whether the bus knows that the device was removed, and has stopped for good.
    ///
    /// Reads of all ones do not tell that, not of its configuration either: it may be behind a
    /// channel that is frozen for the moment.
    fn is_removed(&self) -> bool {
        false
    }

    /// Enables DMA, if that is up to the parent.
    fn allow_dma(&self) {}

    /// Disables DMA, which limits the damage of a device that its driver could not stop. Nothing
    /// relies on it: the driver of the bus and the bus itself may enable DMA again at any time.
    fn forbid_dma(&self) {}

    /// Resets a device that its driver could not stop, and which is being unbound. It may have DMA
    /// disabled after that.
    ///
    /// Returns whether it is certain that the device knows of no memory any more.
    ///
    /// # Safety
    ///
    /// The device must be locked, as it is while it is being unbound.
    unsafe fn reset(&self) -> bool {
        false
    }
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
// SAFETY: `pci::Device` is a transparent wrapper of `struct pci_dev`, which is not freed while it
// is bound. The registration ends before it is unbound: see `register()`.
unsafe impl Parent for pci::Device<Bound> {
    fn as_device(&self) -> Option<&device::Device<Bound>> {
        Some(self.as_ref())
    }

    fn is_removed(&self) -> bool {
        // SAFETY: The device is valid.
        unsafe { is_removed(as_raw(self)) }
    }

    fn allow_dma(&self) {
        // SAFETY: The device is valid.
        unsafe { bindings::pci_set_master(as_raw(self)) };
    }

    fn forbid_dma(&self) {
        // SAFETY: The device is valid.
        unsafe { bindings::pci_clear_master(as_raw(self)) };
    }

    unsafe fn reset(&self) -> bool {
        // SAFETY: The device is valid, and locked by the safety requirements.
        unsafe { reset_function(as_raw(self)) }
    }
}

#[cfg(CONFIG_PCI)]
fn as_raw(pdev: &pci::Device<Bound>) -> *mut bindings::pci_dev {
    let dev: &device::Device<Bound> = pdev.as_ref();

    // SAFETY: This is the device that is part of a `struct pci_dev`.
    unsafe { crate::container_of!(dev.as_raw(), bindings::pci_dev, dev) }
}

/// Whether a function was removed, as the core knows.
///
/// # Safety
///
/// `pdev` must be valid.
#[cfg(CONFIG_PCI)]
unsafe fn is_removed(pdev: *mut bindings::pci_dev) -> bool {
    // SAFETY: By the safety requirements. The state is read while it may change.
    let state = unsafe { (&raw const (*pdev).error_state).read_volatile() };

    state == bindings::pci_channel_io_perm_failure
}

/// Resets a function, and leaves bus mastering off. Returns whether it knows of no memory any more:
/// it was reset, or the device was removed.
///
/// One whose configuration reads as all ones counts as neither, unless the core knows better: it
/// may be behind a frozen channel, which lets no reset through.
///
/// These are the steps of `pci_reset_function_locked()`, but for the callbacks of the driver, which
/// is being unbound: `pci_reset_function()` would take the lock that the driver core holds. Nor
/// does either lock the bridge here, whose lock is taken before that of the device.
///
/// Not generic, so that this is not part of a driver's module.
///
/// # Safety
///
/// `pdev` must be valid, and locked. Process context.
#[cfg(CONFIG_PCI)]
#[inline(never)]
pub(super) unsafe fn reset_function(pdev: *mut bindings::pci_dev) -> bool {
    // `bindgen` does not see through the cast of the constant, `PCI_D0`.
    const D0: bindings::pci_power_t = 0;

    // SAFETY: By the safety requirements.
    if unsafe { is_removed(pdev) } {
        return true;
    }
    // SAFETY: The device is valid and locked, and so is its configuration, by the first of these
    // calls: nobody else saves or restores it, or resets the device, until the last one.
    unsafe {
        // Users would read what the reset leaves behind, or write to it.
        bindings::pci_cfg_access_lock(pdev);
        // One that sleeps does not answer, or its reset fails. If this does, so does the rest.
        let _ = bindings::pci_set_power_state(pdev, D0);
        let is_reset = bindings::pci_device_is_present(pdev) && {
            bindings::pci_clear_master(pdev);
            bindings::pci_save_state(pdev);
            bindings::pci_write_config_word(
                pdev,
                bindings::PCI_COMMAND as c_int,
                bindings::PCI_COMMAND_INTX_DISABLE as u16,
            );
            let error = bindings::__pci_reset_function_locked(pdev);
            bindings::pci_restore_state(pdev);
            error == 0
        };
        bindings::pci_cfg_access_unlock(pdev);
        is_reset
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
