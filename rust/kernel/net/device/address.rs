// SPDX-License-Identifier: GPL-2.0

//! Ethernet addresses.
//!
//! C header: [`include/linux/etherdevice.h`](srctree/include/linux/etherdevice.h)

use super::Device;

use crate::{
    bindings,
    fmt,
    prelude::*, //
};

/// An Ethernet (MAC) address.
///
/// # Examples
///
/// ```
/// use kernel::net::device::MacAddress;
///
/// let address = MacAddress::from([0x02, 0, 0, 0, 0, 0x01]);
/// assert!(address.is_valid_unicast());
/// assert!(!MacAddress::from([0xff; 6]).is_valid_unicast());
/// assert!(!MacAddress::from([0; 6]).is_valid_unicast());
/// assert_eq!(address.octets()[5], 1);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct MacAddress([u8; Self::LEN]);

impl MacAddress {
    /// Number of bytes in an address.
    pub const LEN: usize = bindings::ETH_ALEN as usize;

    /// The bytes of the address, in the order in which they are transmitted.
    #[inline]
    pub const fn octets(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// Whether this addresses a group of stations: multicast, or broadcast.
    #[inline]
    pub(super) const fn is_multicast(&self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Whether a device can have this address: it is neither zero nor that of a group.
    #[inline]
    pub fn is_valid_unicast(&self) -> bool {
        !self.is_multicast() && self.0 != [0; Self::LEN]
    }
}

impl From<[u8; MacAddress::LEN]> for MacAddress {
    #[inline]
    fn from(octets: [u8; MacAddress::LEN]) -> Self {
        Self(octets)
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        f.write_fmt(fmt!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}"))
    }
}

impl Device {
    /// The address of the device. Process context.
    pub fn mac_address(&self) -> MacAddress {
        // SAFETY: By the type invariants, the device is valid, and its address has `ETH_ALEN`
        // bytes. They may change concurrently, as for any lockless reader.
        MacAddress::from(core::array::from_fn(|byte| unsafe {
            (*self.as_raw()).dev_addr.add(byte).read_volatile()
        }))
    }
}
