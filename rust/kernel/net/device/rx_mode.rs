// SPDX-License-Identifier: GPL-2.0

//! The receive filter of a device.

use super::MacAddress;

use crate::{
    bindings,
    prelude::*, //
};

use core::marker::PhantomData;

/// The addresses whose packets a device is to receive, besides its own.
///
/// # Invariants
///
/// `unicast` and `multicast` are valid lists that do not change during `'a`.
pub struct RxMode<'a> {
    flags: c_uint,
    unicast: *mut bindings::netdev_hw_addr_list,
    multicast: *mut bindings::netdev_hw_addr_list,
    _lists: PhantomData<&'a bindings::netdev_hw_addr_list>,
}

impl RxMode<'_> {
    /// Creates the description.
    ///
    /// # Safety
    ///
    /// `unicast` and `multicast` must be valid and must not be changed during `'a`.
    pub(super) unsafe fn new(
        flags: c_uint,
        unicast: *mut bindings::netdev_hw_addr_list,
        multicast: *mut bindings::netdev_hw_addr_list,
    ) -> Self {
        // INVARIANT: The safety requirements are the type invariants.
        Self {
            flags,
            unicast,
            multicast,
            _lists: PhantomData,
        }
    }

    /// Whether all packets are to be received.
    #[inline]
    pub fn is_promiscuous(&self) -> bool {
        self.flags & bindings::net_device_flags_IFF_PROMISC != 0
    }

    /// Whether all packets to multicast groups are to be received.
    #[inline]
    pub fn is_all_multicast(&self) -> bool {
        self.flags & bindings::net_device_flags_IFF_ALLMULTI != 0
    }

    /// Further unicast addresses.
    pub fn unicast(&self) -> impl ExactSizeIterator<Item = MacAddress> + '_ {
        // SAFETY: By the type invariants, the list is valid and does not change.
        unsafe { addresses(self.unicast) }
    }

    /// Multicast group addresses.
    pub fn multicast(&self) -> impl ExactSizeIterator<Item = MacAddress> + '_ {
        // SAFETY: By the type invariants, the list is valid and does not change.
        unsafe { addresses(self.multicast) }
    }
}

/// Returns the addresses of a list.
///
/// # Safety
///
/// `list` must be valid and must not be changed during `'a`.
unsafe fn addresses<'a>(
    list: *mut bindings::netdev_hw_addr_list,
) -> impl ExactSizeIterator<Item = MacAddress> + 'a {
    // SAFETY: By the safety requirements.
    let (mut next, count) = unsafe { ((*list).list.next, (*list).count) };

    (0..usize::try_from(count).unwrap_or(0)).map(move |_| {
        // SAFETY: A valid list has `count` entries, of which `next` is the `list` member of one. An
        // Ethernet address is the beginning of the address in it. `netdev_hw_addr` is not packed.
        unsafe {
            let entry = crate::container_of!(next, bindings::netdev_hw_addr, list);
            let address = (&raw const (*entry).addr)
                .cast::<[u8; MacAddress::LEN]>()
                .read();

            next = (*next).next;
            MacAddress::from(address)
        }
    })
}
