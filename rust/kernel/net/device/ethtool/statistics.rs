// SPDX-License-Identifier: GPL-2.0

//! Statistics with names of the driver's, for `ethtool -S`.

use super::{
    super::{
        capability::*,
        inner::Inner, //
    },
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

/// Asks the driver for its statistics. Returns how many it has added.
fn collect<T: StatisticsOps>(
    inner: &Inner<T>,
    lock: &mut OpsLocked<'static>,
    mut statistics: Statistics<'_>,
) -> usize {
    T::statistics(inner.data(), inner.dev(), &mut statistics, lock);
    statistics.added
}

/// The number of statistics for which users of the callbacks have room. Not negative.
fn counted<T: StatisticsOps>(inner: &Inner<T>, lock: &OpsLocked<'static>) -> usize {
    // CAST: They have been counted, from zero on.
    inner.statistics.get(lock).map_or(0, |count| count as usize)
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
        let count = collect(inner, lock, Statistics::new(Pass::Count));
        let count = c_int::try_from(count).unwrap_or(0);

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
        let count = counted(inner, &lock);

        if count != 0 {
            // SAFETY: `count_statistics()` has never returned another number that is not zero.
            // There is room for that many names, zeroed.
            let names = unsafe { Statistics::names(data, count) };

            collect(inner, &mut lock, names);
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
        let count = counted(inner, &lock).min(room);
        if count == 0 {
            return;
        }
        // SAFETY: The core has allocated `data` for `n_stats` values, zeroed.
        let values = unsafe { slice::from_raw_parts_mut(data, count) };

        collect(inner, &mut lock, Statistics::new(Pass::Values(values)));
    }
}
