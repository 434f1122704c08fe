// SPDX-License-Identifier: GPL-2.0

//! Tests of resetting a PCI device that did not stop.

use super::super::bus::reset_function;

use crate::{
    bindings,
    prelude::*, //
};

use core::ptr;

/// # Safety
///
/// `value` must be valid.
unsafe extern "C" fn read(
    _bus: *mut bindings::pci_bus,
    _devfn: c_uint,
    _place: c_int,
    _size: c_int,
    value: *mut u32,
) -> c_int {
    // SAFETY: By the safety requirements.
    unsafe { *value = u32::MAX };
    0
}

/// Tries to reset a device whose configuration reads as all ones. Returns whether it knows of no
/// memory any more.
fn reset(state: bindings::pci_channel_state_t) -> Result<bool> {
    let mut ops = bindings::pci_ops {
        read: Some(read),
        ..Default::default()
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
    dev.bus = ptr::from_mut(&mut *bus);
    dev.error_state = state;
    // SAFETY: The device is valid as far as its configuration space is concerned, which is all that
    // is used of one that does not answer.
    Ok(unsafe { reset_function(&raw mut *dev) })
}

#[macros::kunit_tests(rust_net_bus)]
mod cases {
    use super::*;

    #[test]
    fn a_device_that_reads_as_all_ones_may_access_memory() -> Result {
        assert!(!reset(bindings::pci_channel_io_normal)?);
        assert!(!reset(bindings::pci_channel_io_frozen)?);
        Ok(())
    }

    #[test]
    fn a_device_that_was_removed_accesses_no_memory() -> Result {
        assert!(reset(bindings::pci_channel_io_perm_failure)?);
        Ok(())
    }
}
