// SPDX-License-Identifier: GPL-2.0

//! Statistics with names of the driver's, for `ethtool -S`.

use super::{
    super::prelude::*,
    strings::{
        Pass,
        StringSet, //
    }, //
};

use core::slice;

pub use super::strings::Statistics;

/// A driver with statistics of its own, see [`OptionalOps::statistics`].
pub trait StatisticsOps: Driver {
    /// Names and values for `ethtool -S`.
    ///
    /// This is called to count, to name and to read the statistics; it should add the same ones in
    /// the same order each time. They are counted when users first ask for them: what is added
    /// beyond that number later is ignored. As long as there are none, users get [`EOPNOTSUPP`].
    /// They are counted and named while the device is suspended, too.
    fn statistics<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        statistics: &mut Statistics<'_>,
        lock: &mut OpsLocked<'bound>,
    );
}

impl<T: StatisticsOps> OptionalOps<T> {
    /// Adds the callback of [`StatisticsOps`].
    pub const fn statistics(mut self) -> Self {
        self.ethtool.get_ethtool_stats = Some(Self::get_ethtool_stats);
        self.strings[bindings::ethtool_stringset_ETH_SS_STATS as usize] = Some(StringSet {
            count: Self::count_statistics,
            names: Self::name_statistics,
        });
        self
    }

    /// The number of statistics, or an error if there are none.
    ///
    /// They are counted when they are first asked for. Before a device is registered, the driver
    /// must not get a reference to it: there are no references to its `struct device` to count.
    ///
    /// As long as there are none, they are counted again: the core has not allocated anything for
    /// an error. It warns of zero. But DSA takes over these operations, has its own statistics
    /// behind ours, and cannot add to an error.
    ///
    /// # Safety
    ///
    /// See [`StringSet`].
    unsafe fn count_statistics(dev: *mut bindings::net_device) -> c_int {
        // SAFETY: By the safety requirements.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        let lock = &mut lock;

        if let Some(count) = *inner.statistics.get(lock) {
            return count;
        }
        let mut statistics = Statistics::new(Pass::Count);
        T::statistics(inner.data(), inner.dev(), &mut statistics, lock);
        let count = c_int::try_from(statistics.added).unwrap_or(0);

        // SAFETY: The device is valid, and this only looks at a pointer, which changes under RTNL.
        if count == 0 && unsafe { !bindings::netdev_is_dsa_conduit(inner.dev().as_raw()) } {
            return EOPNOTSUPP.to_errno();
        }
        *inner.statistics.get_mut(lock) = Some(count);
        count
    }

    /// # Safety
    ///
    /// See [`StringSet`].
    unsafe fn name_statistics(dev: *mut bindings::net_device, data: *mut u8) {
        // SAFETY: By the safety requirements.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // CAST: They have been counted, from zero on.
        let count = inner.statistics.get(&lock).unwrap_or(0) as usize;

        if count != 0 {
            // SAFETY: `count_statistics()` has never returned another number that is not zero.
            // There is room for that many names, zeroed.
            let mut names = unsafe { Statistics::names(data, count) };

            T::statistics(inner.data(), inner.dev(), &mut names, &mut lock);
        }
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`. `data` must have room for as
    /// many values as `stats` says.
    unsafe extern "C" fn get_ethtool_stats(
        dev: *mut bindings::net_device,
        stats: *mut bindings::ethtool_stats,
        data: *mut u64,
    ) {
        // SAFETY: The core calls us for a registered device, and holds its lock.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };

        // If the device is suspended, they stay zero.
        if inner.check_reachable().is_err() {
            return;
        }
        // Entries behind ours belong to others: with DSA, to a switch.
        //
        // SAFETY: `stats` is valid.
        let room = unsafe { (*stats).n_stats } as usize;
        // CAST: As in `name_statistics()`.
        let count = (inner.statistics.get(&lock).unwrap_or(0) as usize).min(room);
        if count == 0 {
            return;
        }
        // SAFETY: The core has allocated `data` for `n_stats` values, zeroed.
        let values = unsafe { slice::from_raw_parts_mut(data, count) };

        let mut values = Statistics::new(Pass::Values(values));

        T::statistics(inner.data(), inner.dev(), &mut values, &mut lock);
    }
}
