// SPDX-License-Identifier: GPL-2.0

//! Counters of frames by their lengths, for `ethtool -S DEV --groups`.

use super::{
    super::prelude::*,
    mac_stats::put, //
};

/// A range of lengths of frames in bytes, check sequence included, both ends included.
pub type RmonHistRange = bindings::ethtool_rmon_hist_range;

/// Ranges of lengths by which a NIC counts frames.
///
/// # Invariants
///
/// `ranges` ends with an empty range, and has at most [`Self::MAX`] others.
pub struct RmonHistRanges {
    ranges: &'static [RmonHistRange],
}

impl RmonHistRanges {
    /// The most ranges.
    pub const MAX: usize = bindings::ETHTOOL_RMON_HIST_MAX as usize;

    /// The end of the ranges.
    pub const END: RmonHistRange = Self::range(0, 0);

    /// A range from `low` to `high`.
    pub const fn range(low: u16, high: u16) -> RmonHistRange {
        RmonHistRange { low, high }
    }

    /// Makes ranges of `ranges`, of which the last one has to be [`Self::END`].
    // Inlined for `build_assert!`.
    #[inline(always)]
    pub const fn new(ranges: &'static [RmonHistRange]) -> Self {
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
///
/// Fields are [`None`] if the NIC does not count that; users then do not see them.
#[derive(Clone, Copy, Debug, Default)]
pub struct RmonStats {
    /// Frames that were too short, with a good check sequence.
    pub undersize: Option<u64>,
    /// Frames that were too long, with a good check sequence.
    pub oversize: Option<u64>,
    /// Frames that were too short, with a wrong check sequence.
    pub fragments: Option<u64>,
    /// Frames that were too long, with a wrong check sequence.
    pub jabbers: Option<u64>,
    /// Frames received by [`RmonStatsOps::RMON_RANGES`].
    pub hist: [u64; RmonHistRanges::MAX],
    /// Frames sent by [`RmonStatsOps::RMON_RANGES`].
    pub hist_tx: [u64; RmonHistRanges::MAX],
}

/// A driver of a NIC that counts frames by their lengths, see [`OptionalOps::rmon_stats`].
pub trait RmonStatsOps: Driver {
    /// The ranges of lengths by which the NIC counts frames.
    const RMON_RANGES: RmonHistRanges;

    /// The counters of frames by their lengths.
    fn rmon_stats<'bound>(
        data: Pin<&Self::Data<'bound>>,
        lock: &mut OpsLocked<'bound>,
    ) -> RmonStats;
}

impl<T: RmonStatsOps> OptionalOps<T> {
    /// Adds the callback of [`RmonStatsOps`].
    pub const fn rmon_stats(mut self) -> Self {
        self.ethtool.get_rmon_stats = Some(Self::get_rmon_stats);
        self
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with valid `stats` and
    /// `ranges`.
    unsafe extern "C" fn get_rmon_stats(
        dev: *mut bindings::net_device,
        stats: *mut bindings::ethtool_rmon_stats,
        ranges: *mut *const RmonHistRange,
    ) {
        // SAFETY: The core calls us for a registered device, gives us `stats` to fill in, of which
        // both views are plain numbers, and holds its lock. `ranges` is valid.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let to = unsafe {
            *ranges = T::RMON_RANGES.ranges.as_ptr();
            &mut (*stats).__bindgen_anon_1.__bindgen_anon_1
        };
        if inner.check_reachable().is_err() {
            return;
        }
        let from = T::rmon_stats(inner.data(), &mut lock);

        put(&mut to.undersize_pkts, from.undersize);
        put(&mut to.oversize_pkts, from.oversize);
        put(&mut to.fragments, from.fragments);
        put(&mut to.jabbers, from.jabbers);
        for (to, from) in [(&mut to.hist, &from.hist), (&mut to.hist_tx, &from.hist_tx)] {
            for (to, from) in to.iter_mut().zip(from).take(T::RMON_RANGES.len()) {
                *to = *from;
            }
        }
    }
}

#[macros::kunit_tests(rust_net_rmon_stats)]
mod tests {
    use super::*;

    #[test]
    fn ranges_without_their_end() {
        const TWO: RmonHistRanges = RmonHistRanges::new(&[
            RmonHistRanges::range(0, 64),
            RmonHistRanges::range(65, 1518),
            RmonHistRanges::END,
        ]);

        assert_eq!(TWO.len(), 2);
        assert_eq!(RmonHistRanges::new(&[RmonHistRanges::END]).len(), 0);
    }
}
