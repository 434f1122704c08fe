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
        unsafe { Addresses::new(self.unicast) }
    }

    /// Multicast group addresses.
    pub fn multicast(&self) -> impl ExactSizeIterator<Item = MacAddress> + '_ {
        // SAFETY: By the type invariants, the list is valid and does not change.
        unsafe { Addresses::new(self.multicast) }
    }
}

/// Iterates over a list of addresses.
///
/// # Invariants
///
/// `next` is an entry of a valid list, which has at least `left` more entries, and which does not
/// change during `'a`.
struct Addresses<'a> {
    next: *mut bindings::list_head,
    left: usize,
    _list: PhantomData<&'a bindings::netdev_hw_addr_list>,
}

impl Addresses<'_> {
    /// Creates the iterator.
    ///
    /// # Safety
    ///
    /// `list` must be valid and must not be changed during `'a`.
    unsafe fn new(list: *mut bindings::netdev_hw_addr_list) -> Self {
        // INVARIANT: A valid list has `count` entries.
        //
        // SAFETY: `list` is valid by the safety requirements.
        unsafe {
            Self {
                next: (*list).list.next,
                left: usize::try_from((*list).count).unwrap_or(0),
                _list: PhantomData,
            }
        }
    }
}

impl Iterator for Addresses<'_> {
    type Item = MacAddress;

    fn next(&mut self) -> Option<MacAddress> {
        self.left = self.left.checked_sub(1)?;

        // SAFETY: By the type invariants, `next` is the `list` member of an entry. An Ethernet
        // address is the beginning of the address in it. `netdev_hw_addr` is not packed.
        unsafe {
            let entry = crate::container_of!(self.next, bindings::netdev_hw_addr, list);
            let address = (&raw const (*entry).addr)
                .cast::<[u8; MacAddress::LEN]>()
                .read();

            self.next = (*self.next).next;
            Some(MacAddress::from(address))
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Addresses<'_> {}
