// SPDX-License-Identifier: GPL-2.0

//! Packets that a NIC cannot process with all of its features.

use super::{
    prelude::*,
    Features, //
};

use crate::net::skbuff::SkBuff;

use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};

/// A driver of a NIC with limits that features cannot express, see
/// [`OptionalOps::features_check`].
pub trait FeaturesCheckOps: Driver {
    /// Withdraws features from a packet that the NIC cannot process with all of `features`.
    ///
    /// The stack does in software what the result lacks: it completes the checksum, or splits the
    /// packet, before the packet gets to [`Driver::start_xmit`]. Added features are ignored. The
    /// core asks for packets that need a feature only: a linear packet that is complete, as routers
    /// forward it, is sent without a call. Any context that does not sleep, the device may be up,
    /// down or suspended.
    fn features_check<'bound>(
        data: Pin<&Self::Data<'bound>>,
        skb: &SkBuff,
        features: Features,
    ) -> Features;
}

impl<T: FeaturesCheckOps> OptionalOps<T> {
    /// Adds the callback of [`FeaturesCheckOps`].
    pub const fn features_check(mut self) -> Self {
        self.netdev.ndo_features_check = Some(Self::check_features);
        self
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid packet.
    unsafe extern "C" fn check_features(
        skb: *mut bindings::sk_buff,
        dev: *mut bindings::net_device,
        features: bindings::netdev_features_t,
    ) -> bindings::netdev_features_t {
        // SAFETY: The device is registered.
        let inner = unsafe { ops::inner::<T>(dev) };
        // SAFETY: The core lends us the packet, with its reference, until we return: it is not
        // dropped.
        let packet = unsafe { ManuallyDrop::new(SkBuff::from_raw(NonNull::new_unchecked(skb))) };
        let mut left =
            features & T::features_check(inner.data(), &packet, Features::from_raw(features)).0;

        // Whether the NIC splits packets in tunnels, see `Info::tunnels`.
        // SAFETY: The field does not change once the device is registered.
        let has_tunnels = || unsafe { (*dev).gso_partial_features != 0 };
        if packet.gso_size().is_some() && packet.is_encapsulated() && has_tunnels() {
            left = Features::from_raw(left).with_same_ids().0;
        }
        if left != features {
            return withdrawn(&packet, left);
        }
        // SAFETY: The packet is valid.
        unsafe { bindings::vlan_features_check(skb, features) }
    }
}

/// The features that are left when all but `left` have been withdrawn. A NIC that does not insert
/// the checksum cannot split the packet either.
// Not inlined: nearly all packets keep all of them.
#[cold]
fn withdrawn(packet: &SkBuff, left: bindings::netdev_features_t) -> bindings::netdev_features_t {
    const CHECKSUMS: u64 = 1 << bindings::NETIF_F_HW_CSUM_BIT
        | 1 << bindings::NETIF_F_IP_CSUM_BIT
        | 1 << bindings::NETIF_F_IPV6_CSUM_BIT;
    const SEGMENTATION: u64 =
        (1 << (bindings::NETIF_F_GSO_LAST + 1)) - (1 << bindings::NETIF_F_GSO_SHIFT);

    let withdrawn = if left & CHECKSUMS == 0 {
        SEGMENTATION
    } else {
        0
    };
    // SAFETY: The packet is valid.
    unsafe { bindings::vlan_features_check(packet.as_raw(), left & !withdrawn) }
}
