// SPDX-License-Identifier: GPL-2.0

//! References to network devices.

use crate::{
    bindings,
    types::Opaque, //
};

/// A network device, registered or about to be.
///
/// Drivers get a reference to it in their callbacks, none of which comes before
/// the device is being registered.
///
/// # Invariants
///
/// `self.0` is a valid `struct net_device`.
#[repr(transparent)]
pub struct Device(Opaque<bindings::net_device>);

// SAFETY: References to a `struct net_device` can be used from any context.
unsafe impl Send for Device {}

// SAFETY: As for `Send`; the methods of `Device` can be called concurrently.
unsafe impl Sync for Device {}

impl Device {
    /// Creates a reference to a network device.
    ///
    /// # Safety
    ///
    /// `raw` must be valid, and must remain so for `'a`. If the result is lent
    /// to a driver, the device must be registered, or the core be about to
    /// complete that.
    #[inline]
    pub(crate) unsafe fn from_raw<'a>(raw: *mut bindings::net_device) -> &'a Self {
        // SAFETY: `Device` is a transparent wrapper of
        // `Opaque<bindings::net_device>`, and `raw` is valid by the safety
        // requirements.
        unsafe { &*raw.cast() }
    }

    /// Returns the pointer to the `struct net_device`.
    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::net_device {
        self.0.get()
    }

    /// Reports to the stack that there is a link: packets can be transmitted.
    /// Any context.
    #[inline]
    pub fn carrier_on(&self) {
        // SAFETY: By the type invariants, the device is valid.
        unsafe { bindings::netif_carrier_on(self.as_raw()) };
    }

    /// Reports to the stack that there is no link. Any context.
    #[inline]
    pub fn carrier_off(&self) {
        // SAFETY: By the type invariants, the device is valid.
        unsafe { bindings::netif_carrier_off(self.as_raw()) };
    }

    /// Whether there is a link, as far as the stack knows.
    #[inline]
    pub fn is_carrier_ok(&self) -> bool {
        // SAFETY: By the type invariants, the device is valid.
        unsafe { bindings::netif_carrier_ok(self.as_raw()) }
    }

    /// Whether the device is up, or about to be.
    #[inline]
    pub fn is_running(&self) -> bool {
        // SAFETY: By the type invariants, the device is valid.
        unsafe { bindings::netif_running(self.as_raw()) }
    }

    /// The largest payload of a frame, in bytes, without the Ethernet header.
    #[inline]
    pub fn mtu(&self) -> u32 {
        // SAFETY: By the type invariants, the device is valid. The MTU may
        // change concurrently, hence the volatile read, of an aligned word.
        unsafe { core::ptr::read_volatile(&raw const (*self.as_raw()).mtu) }
    }
}
