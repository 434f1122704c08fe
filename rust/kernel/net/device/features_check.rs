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
    ///
    /// This decides for packets with any number of VLAN tags. Those with more than one come to
    /// drivers without this trait as if the NIC could do nothing with them but send them.
    ///
    /// Segments longer than [`Info::max_mtu`](super::Info::max_mtu) are left to the stack for all
    /// drivers. The packets that come of it may be as long, see
    /// [`Limits::packet_len`](crate::net::inflight::Limits::packet_len).
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
        // SAFETY: The core lends us the packet until we return.
        let packet = unsafe { borrow(skb) };
        let left =
            features & T::features_check(inner.data(), &packet, Features::from_raw(features)).0;

        // SAFETY: The device is registered.
        let left = unsafe { segmentation_checked(&packet, dev, left) };
        // A NIC that does not insert the checksum cannot split the packet either.
        if left & CHECKSUMS == 0 {
            left & !SEGMENTATION
        } else {
            left
        }
    }
}

const CHECKSUMS: u64 = 1 << bindings::NETIF_F_HW_CSUM_BIT
    | 1 << bindings::NETIF_F_IP_CSUM_BIT
    | 1 << bindings::NETIF_F_IPV6_CSUM_BIT;

const SEGMENTATION: u64 =
    (1 << (bindings::NETIF_F_GSO_LAST + 1)) - (1 << bindings::NETIF_F_GSO_SHIFT);

/// The callback of a driver without [`FeaturesCheckOps`].
///
/// # Safety
///
/// Must only be called by the core, for a registered device, with a valid packet.
pub(super) unsafe extern "C" fn check_features(
    skb: *mut bindings::sk_buff,
    dev: *mut bindings::net_device,
    features: bindings::netdev_features_t,
) -> bindings::netdev_features_t {
    // SAFETY: The packet is valid, the core lends it to us until we return, and the device is
    // registered.
    unsafe {
        let left = bindings::vlan_features_check(skb, features);
        segmentation_checked(&borrow(skb), dev, left)
    }
}

/// # Safety
///
/// The packet must be valid while the result is in use.
unsafe fn borrow(skb: *mut bindings::sk_buff) -> ManuallyDrop<SkBuff> {
    // SAFETY: By the safety requirements. It is not dropped, so its reference stays with the owner.
    unsafe { ManuallyDrop::new(SkBuff::from_raw(NonNull::new_unchecked(skb))) }
}

/// Withdraws the features of segmentation of which no NIC can make use for a packet.
///
/// # Safety
///
/// `dev` must be a registered device.
unsafe fn segmentation_checked(
    packet: &SkBuff,
    dev: *mut bindings::net_device,
    features: bindings::netdev_features_t,
) -> bindings::netdev_features_t {
    let Some(size) = packet.gso_size() else {
        return features;
    };
    // SAFETY: The device is valid. The fields do not change once it is registered.
    let (max_mtu, has_tunnels) = unsafe { ((*dev).max_mtu, (*dev).gso_partial_features != 0) };

    if !segments_fit(packet, size, max_mtu) {
        return features & !SEGMENTATION;
    }
    if has_tunnels && packet.is_encapsulated() {
        return Features::from_raw(features).with_same_ids().0;
    }
    features
}

/// Whether the segments of a packet are within an MTU. The stack checks that of routed packets
/// only: those of packet sockets and guests have any `gso_size`.
fn segments_fit(packet: &SkBuff, size: u16, mtu: u32) -> bool {
    // The headers are in the linear part, and there is hardly more in that of a long packet.
    let most = packet.head_len().wrapping_sub(packet.network_offset());

    most.saturating_add(size.into()) <= mtu
        // SAFETY: The packet is valid.
        || unsafe { bindings::skb_gso_validate_network_len(packet.as_raw(), mtu) }
}
