// SPDX-License-Identifier: GPL-2.0

//! Packets that are to be split, and that no NIC could split.

use super::Features;
use crate::{
    bindings,
    net::skbuff::SkBuff, //
};
use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};

/// The features of segmentation.
pub(super) const SEGMENTATION: u64 =
    (1 << (bindings::NETIF_F_GSO_LAST + 1)) - (1 << bindings::NETIF_F_GSO_SHIFT);

/// The callback of a driver without
/// [`FeaturesCheckOps`](super::features_check::FeaturesCheckOps).
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
pub(super) unsafe fn borrow(skb: *mut bindings::sk_buff) -> ManuallyDrop<SkBuff> {
    // SAFETY: By the safety requirements. It is not dropped, so its reference stays with the owner.
    unsafe { ManuallyDrop::new(SkBuff::from_raw(NonNull::new_unchecked(skb))) }
}

/// Withdraws the features of segmentation of which no NIC can make use for a packet.
///
/// # Safety
///
/// `dev` must be a registered device.
pub(super) unsafe fn segmentation_checked(
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
