// SPDX-License-Identifier: GPL-2.0

//! Counters of the MAC, for `ethtool -S DEV --groups`.
//!
//! Fields are [`None`] if the NIC does not count that; users then do not see them.

use super::super::prelude::*;

/// Counters of the MAC, IEEE 802.3 clause 30.3.1.1: group `eth-mac`.
#[derive(Clone, Copy, Debug, Default)]
pub struct MacStats {
    /// Frames sent, without those of MAC control.
    pub tx_frames: Option<u64>,
    /// Their bytes. IEEE 802.3 counts data and padding alone; drivers, and the kernel's test of
    /// these counters, count headers and check sequence, too.
    pub tx_octets: Option<u64>,
    /// Those to multicast addresses.
    pub tx_multicast: Option<u64>,
    /// Those to the broadcast address.
    pub tx_broadcast: Option<u64>,
    /// Good frames received, without those of MAC control.
    pub rx_frames: Option<u64>,
    /// Their bytes. IEEE 802.3 counts data and padding alone; drivers, and the kernel's test of
    /// these counters, count headers and check sequence, too.
    pub rx_octets: Option<u64>,
    /// Those to multicast addresses.
    pub rx_multicast: Option<u64>,
    /// Those to the broadcast address.
    pub rx_broadcast: Option<u64>,
    /// Frames of whole bytes with a wrong check sequence.
    pub rx_fcs_errors: Option<u64>,
    /// Frames whose length field does not match their length.
    pub rx_length_errors: Option<u64>,
    /// Frames that were too long.
    pub rx_too_long: Option<u64>,
}

/// Sets a counter, which the core has set to "not known", if there is one.
pub(super) fn put(to: &mut u64, value: Option<u64>) {
    if let Some(value) = value {
        *to = value;
    }
}

/// A driver of a NIC that counts as standards say, see [`OptionalOps::mac_stats`].
pub trait MacStatsOps: Driver {
    /// The counters of the MAC.
    fn mac_stats<'bound>(data: Pin<&Self::Data<'bound>>, lock: &mut OpsLocked<'bound>) -> MacStats;
}

impl<T: MacStatsOps> OptionalOps<T> {
    /// Adds the callback of [`MacStatsOps`].
    pub const fn mac_stats(mut self) -> Self {
        self.ethtool.get_eth_mac_stats = Some(Self::get_eth_mac_stats);
        self
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with valid `stats`.
    unsafe extern "C" fn get_eth_mac_stats(
        dev: *mut bindings::net_device,
        stats: *mut bindings::ethtool_eth_mac_stats,
    ) {
        // SAFETY: The core calls us for a registered device, gives us `stats` to fill in, of which
        // both views are plain numbers, and holds its lock.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let to = unsafe { &mut (*stats).__bindgen_anon_1.__bindgen_anon_1 };
        if inner.check_reachable().is_err() {
            return;
        }
        let from = T::mac_stats(inner.data(), &mut lock);

        put(&mut to.FramesTransmittedOK, from.tx_frames);
        put(&mut to.OctetsTransmittedOK, from.tx_octets);
        put(&mut to.MulticastFramesXmittedOK, from.tx_multicast);
        put(&mut to.BroadcastFramesXmittedOK, from.tx_broadcast);
        put(&mut to.FramesReceivedOK, from.rx_frames);
        put(&mut to.OctetsReceivedOK, from.rx_octets);
        put(&mut to.MulticastFramesReceivedOK, from.rx_multicast);
        put(&mut to.BroadcastFramesReceivedOK, from.rx_broadcast);
        put(&mut to.FrameCheckSequenceErrors, from.rx_fcs_errors);
        put(&mut to.InRangeLengthErrors, from.rx_length_errors);
        put(&mut to.FrameTooLongErrors, from.rx_too_long);
    }
}

#[macros::kunit_tests(rust_net_mac_stats)]
mod tests {
    use super::*;

    #[test]
    fn unknown_counters_stay() {
        let (mut known, mut unknown) = (u64::MAX, u64::MAX);

        put(&mut known, Some(0));
        put(&mut unknown, None);
        assert_eq!((known, unknown), (0, u64::MAX));
    }
}
