// SPDX-License-Identifier: GPL-2.0

//! Packets that a NIC cannot process with all of its features.

use super::{
    prelude::*,
    segments::{
        borrow,
        segmentation_checked,
        SEGMENTATION, //
    },
    Features, //
};

use crate::net::skbuff::SkBuff;

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
