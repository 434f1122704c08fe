// SPDX-License-Identifier: GPL-2.0

//! Tests of keeping a PCI device from accessing memory.

use super::super::bus::clear_master;

use crate::{
    bindings,
    prelude::*, //
};

use core::ptr;

/// The configuration space of a device.
struct Config {
    command: u32,
    access: Access,
}

/// The effect of accesses to the configuration space.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Works,
    /// Reads give what was there before writes.
    ReadOnly,
    /// Reads give all ones, and writes are lost.
    Frozen,
}

/// # Safety
///
/// `bus` must have a [`Config`], to which there is no other access.
unsafe fn config<'a>(bus: *mut bindings::pci_bus) -> &'a mut Config {
    // SAFETY: By the safety requirements.
    unsafe { &mut *(*bus).sysdata.cast() }
}

/// # Safety
///
/// As [`config`]; `value` must be valid.
unsafe extern "C" fn read(
    bus: *mut bindings::pci_bus,
    _devfn: c_uint,
    place: c_int,
    _size: c_int,
    value: *mut u32,
) -> c_int {
    // SAFETY: By the safety requirements.
    let config = unsafe { config(bus) };
    let word = match (config.access, place as u32) {
        (Access::Frozen, _) => u32::MAX,
        (_, bindings::PCI_COMMAND) => config.command,
        _ => 0x10fb_8086,
    };

    // SAFETY: By the safety requirements.
    unsafe { *value = word };
    0
}

/// # Safety
///
/// As [`config`].
unsafe extern "C" fn write(
    bus: *mut bindings::pci_bus,
    _devfn: c_uint,
    place: c_int,
    _size: c_int,
    value: u32,
) -> c_int {
    // SAFETY: By the safety requirements.
    let config = unsafe { config(bus) };

    if config.access == Access::Works && place as u32 == bindings::PCI_COMMAND {
        config.command = value;
    }
    0
}

/// Tries to keep a device from memory. Returns whether that is certain, and whether the device has
/// been told.
fn forbid(access: Access, state: bindings::pci_channel_state_t) -> Result<(bool, bool)> {
    let mut ops = bindings::pci_ops {
        read: Some(read),
        write: Some(write),
        ..Default::default()
    };
    let mut config = Config {
        command: bindings::PCI_COMMAND_MASTER | bindings::PCI_COMMAND_MEMORY,
        access,
    };
    let zeroed = GFP_KERNEL | __GFP_ZERO;
    // SAFETY: All zeros are a valid value of both C structures.
    let (mut bus, mut dev) = unsafe {
        (
            KBox::<bindings::pci_bus>::new_uninit(zeroed)?.assume_init(),
            KBox::<bindings::pci_dev>::new_uninit(zeroed)?.assume_init(),
        )
    };

    bus.ops = &raw mut ops;
    bus.sysdata = (&raw mut config).cast();
    dev.bus = ptr::from_mut(&mut *bus);
    dev.error_state = state;
    // SAFETY: The device is valid as far as its configuration space is concerned.
    let certain = unsafe { clear_master(&raw mut *dev) };
    Ok((certain, config.command & bindings::PCI_COMMAND_MASTER == 0))
}

#[macros::kunit_tests(rust_net_bus)]
mod cases {
    use super::*;

    const NORMAL: bindings::pci_channel_state_t = bindings::pci_channel_io_normal;

    #[test]
    fn a_device_that_listens_is_kept_from_memory() -> Result {
        assert_eq!(forbid(Access::Works, NORMAL)?, (true, true));
        Ok(())
    }

    #[test]
    fn a_device_that_stays_master_may_access_memory() -> Result {
        assert_eq!(forbid(Access::ReadOnly, NORMAL)?, (false, false));
        Ok(())
    }

    #[test]
    fn a_device_that_reads_as_all_ones_may_access_memory() -> Result {
        let frozen = bindings::pci_channel_io_frozen;

        assert_eq!(forbid(Access::Frozen, NORMAL)?, (false, false));
        assert_eq!(forbid(Access::Frozen, frozen)?, (false, false));
        Ok(())
    }

    #[test]
    fn a_device_that_was_removed_accesses_no_memory() -> Result {
        let removed = bindings::pci_channel_io_perm_failure;

        assert!(forbid(Access::Frozen, removed)?.0);
        Ok(())
    }
}
