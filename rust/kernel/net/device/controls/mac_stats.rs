// SPDX-License-Identifier: GPL-2.0

//! Counters that standards define, for `ethtool -S DEV --groups`.
//!
//! Fields are [`None`] if the card does not count that; users then do not see them.

use super::{
    super::{
        ops,
        optional_ops::OptionalOps, //
    },
    Controls, //
};

use crate::{
    bindings,
    prelude::*, //
};

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

/// Pause frames, for `ethtool -I -a DEV`.
#[derive(Clone, Copy, Debug, Default)]
pub struct PauseStats {
    /// Frames sent.
    pub tx_frames: Option<u64>,
    /// Frames received.
    pub rx_frames: Option<u64>,
}

/// A range of lengths of frames in bytes, check sequence included, both ends included.
pub type LengthRange = bindings::ethtool_rmon_hist_range;

/// Ranges of lengths by which a card counts frames.
///
/// # Invariants
///
/// `ranges` ends with an empty range, and has at most [`Self::MAX`] others.
pub struct LengthRanges {
    ranges: &'static [LengthRange],
}

impl LengthRanges {
    /// The most ranges.
    pub const MAX: usize = bindings::ETHTOOL_RMON_HIST_MAX as usize;

    /// None.
    pub const NONE: Self = Self::new(&[Self::END]);

    /// The end of the ranges.
    pub const END: LengthRange = Self::range(0, 0);

    /// A range from `low` to `high`.
    pub const fn range(low: u16, high: u16) -> LengthRange {
        LengthRange { low, high }
    }

    /// Makes ranges of `ranges`, of which the last one has to be [`Self::END`].
    // Inlined for `build_assert!`.
    #[inline(always)]
    pub const fn new(ranges: &'static [LengthRange]) -> Self {
        build_assert!(!ranges.is_empty() && ranges.len() <= Self::MAX + 1);
        let last = &ranges[ranges.len() - 1];
        // The core looks no further than at a range of which both ends are zero.
        build_assert!(last.low == 0 && last.high == 0);

        // INVARIANT: As checked.
        Self { ranges }
    }

    /// Number of ranges, without the end.
    const fn len(&self) -> usize {
        self.ranges.len() - 1
    }
}

/// Counters of RFC 2819, which are about the lengths of frames: group `rmon`.
#[derive(Clone, Copy, Debug, Default)]
pub struct LengthStats {
    /// Frames that were too short, with a good check sequence.
    pub undersize: Option<u64>,
    /// Frames that were too long, with a good check sequence.
    pub oversize: Option<u64>,
    /// Frames that were too short, with a wrong check sequence.
    pub fragments: Option<u64>,
    /// Frames that were too long, with a wrong check sequence.
    pub jabbers: Option<u64>,
    /// Frames received by [`Controls::LENGTH_RANGES`].
    pub rx: [u64; LengthRanges::MAX],
    /// Frames sent by [`Controls::LENGTH_RANGES`].
    pub tx: [u64; LengthRanges::MAX],
}

/// Sets a counter, which the core has set to "not known", if there is one.
fn put(to: &mut u64, value: Option<u64>) {
    if let Some(value) = value {
        *to = value;
    }
}

impl<T: Controls> OptionalOps<T> {
    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with valid `stats`.
    pub(super) unsafe extern "C" fn get_eth_mac_stats(
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

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with valid `stats`.
    pub(super) unsafe extern "C" fn get_pause_stats(
        dev: *mut bindings::net_device,
        stats: *mut bindings::ethtool_pause_stats,
    ) {
        // SAFETY: As in `get_eth_mac_stats()`.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let to = unsafe { &mut (*stats).__bindgen_anon_1.__bindgen_anon_1 };
        if inner.check_reachable().is_err() {
            return;
        }
        let from = T::pause_stats(inner.data(), &mut lock);

        put(&mut to.tx_pause_frames, from.tx_frames);
        put(&mut to.rx_pause_frames, from.rx_frames);
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with valid `stats` and
    /// `ranges`.
    pub(super) unsafe extern "C" fn get_rmon_stats(
        dev: *mut bindings::net_device,
        stats: *mut bindings::ethtool_rmon_stats,
        ranges: *mut *const LengthRange,
    ) {
        // SAFETY: As in `get_eth_mac_stats()`. `ranges` is valid.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let to = unsafe {
            *ranges = T::LENGTH_RANGES.ranges.as_ptr();
            &mut (*stats).__bindgen_anon_1.__bindgen_anon_1
        };
        if inner.check_reachable().is_err() {
            return;
        }
        let from = T::length_stats(inner.data(), &mut lock);

        put(&mut to.undersize_pkts, from.undersize);
        put(&mut to.oversize_pkts, from.oversize);
        put(&mut to.fragments, from.fragments);
        put(&mut to.jabbers, from.jabbers);
        for (to, from) in [(&mut to.hist, &from.rx), (&mut to.hist_tx, &from.tx)] {
            for (to, from) in to.iter_mut().zip(from).take(T::LENGTH_RANGES.len()) {
                *to = *from;
            }
        }
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

    #[test]
    fn ranges_without_their_end() {
        const TWO: LengthRanges = LengthRanges::new(&[
            LengthRanges::range(0, 64),
            LengthRanges::range(65, 1518),
            LengthRanges::END,
        ]);

        assert_eq!(TWO.len(), 2);
        assert_eq!(LengthRanges::NONE.len(), 0);
    }
}
