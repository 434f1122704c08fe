// SPDX-License-Identifier: GPL-2.0

//! The `ethtool` operations of a device.
//!
//! C header: [`include/linux/ethtool.h`](srctree/include/linux/ethtool.h)
//!
//! The core takes the name of the driver, its version and the bus address from the parent device.

use super::{
    extack::ExtAck,
    inner::Inner,
    ops,
    ops_lock::{
        Configuring,
        OpsLocked, //
    },
    statistics::{
        Pass,
        Statistics,
        NAME_LEN, //
    },
    Driver,
    Flow,
    FlowHash, //
};

use crate::{
    bindings,
    error::{
        code::EOPNOTSUPP,
        from_result, //
    },
    prelude::*, //
};

use core::{
    marker::PhantomData,
    slice, //
};

// `bindgen` does not see through `BIT()`. The helpers in C check the values.
const NEEDS_RTNL_SRINGPARAM: u32 = 1 << 2;
const NEEDS_RTNL_SCHANNELS: u32 = 1 << 3;
const NEEDS_RTNL_GLINK: u32 = 1 << 8;
const NEEDS_RTNL_TEST: u32 = 1 << 9;

/// The callbacks of `struct ethtool_ops`.
pub(super) struct Ethtool<T>(PhantomData<T>);

impl<T: Driver> Ethtool<T> {
    const VTABLE: bindings::ethtool_ops = bindings::ethtool_ops {
        get_link: Some(bindings::ethtool_op_get_link),
        get_ts_info: if T::TX_TIMESTAMPS {
            Some(bindings::ethtool_op_get_ts_info)
        } else {
            None
        },
        get_sset_count: if Self::HAS_NAMES {
            Some(Self::get_sset_count)
        } else {
            None
        },
        get_strings: if Self::HAS_NAMES {
            Some(Self::get_strings)
        } else {
            None
        },
        get_priv_flags: if Self::HAS_FLAGS {
            Some(Self::get_priv_flags)
        } else {
            None
        },
        set_priv_flags: if Self::HAS_FLAGS {
            Some(Self::set_priv_flags)
        } else {
            None
        },
        get_ethtool_stats: if T::HAS_ETHTOOL_STATISTICS {
            Some(Self::get_ethtool_stats)
        } else {
            None
        },
        get_link_ksettings: if T::HAS_LINK_SPEED {
            Some(Self::get_link_ksettings)
        } else {
            T::OPS.ethtool.get_link_ksettings
        },
        op_needs_rtnl: if T::OPS_LOCK {
            NEEDS_RTNL_SRINGPARAM | NEEDS_RTNL_SCHANNELS | NEEDS_RTNL_GLINK | NEEDS_RTNL_TEST
        } else {
            0
        },
        get_channels: Some(Self::get_channels),
        set_channels: Some(Self::set_channels),
        get_rxfh_fields: if T::HAS_FLOW_HASH {
            Some(Self::get_rxfh_fields)
        } else {
            None
        },
        set_rxfh_fields: if T::HAS_SET_FLOW_HASH {
            Some(Self::set_rxfh_fields)
        } else {
            None
        },
        ..T::OPS.ethtool
    };

    const STAT: Option<bindings::netdev_stat_ops> = T::OPS.stat;

    const SELF_TESTS: usize = T::OPS.self_tests;

    /// There is a set of names.
    const HAS_NAMES: bool = T::HAS_ETHTOOL_STATISTICS || Self::HAS_FLAGS || Self::SELF_TESTS != 0;

    /// The names of the private flags: one for each bit of a `u32` at most.
    const FLAGS: &'static [&'static str] = {
        assert!(T::PRIVATE_FLAGS.len() <= u32::BITS as usize);
        T::PRIVATE_FLAGS
    };

    /// Flags without names are none: the core warns of a set of no names.
    const HAS_FLAGS: bool = !Self::FLAGS.is_empty();

    pub(super) const fn vtable() -> &'static bindings::ethtool_ops {
        &Self::VTABLE
    }

    /// The callbacks for the counters of queues, or null.
    pub(super) const fn stat_ops() -> *const bindings::netdev_stat_ops {
        match &Self::STAT {
            Some(ops) => ops,
            None => core::ptr::null(),
        }
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`.
    unsafe extern "C" fn get_priv_flags(dev: *mut bindings::net_device) -> u32 {
        // SAFETY: The core calls us for a registered device, and holds its lock.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };

        T::private_flags(inner.data(), &mut lock)
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`.
    unsafe extern "C" fn set_priv_flags(dev: *mut bindings::net_device, flags: u32) -> c_int {
        // The number of flags is at most that of the bits.
        if u64::from(flags) >> Self::FLAGS.len() != 0 {
            return EINVAL.to_errno();
        }
        from_result(|| {
            // SAFETY: The core calls us for a registered device, and holds its lock.
            let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };

            inner.check_reachable()?;
            T::set_private_flags(inner.data(), flags, &mut lock)?;
            Ok(0)
        })
    }

    /// Asks the driver for its statistics. Returns how many it has added.
    fn collect(inner: &Inner<T>, lock: &mut OpsLocked<'static>, pass: Pass<'_>) -> usize {
        let mut statistics = Statistics::new(pass);

        T::ethtool_statistics(inner.data(), inner.dev(), &mut statistics, lock);
        statistics.count()
    }

    /// The number of statistics, or an error if there are none.
    ///
    /// They are counted when they are first asked for. Before a device is registered, the driver
    /// must not get a reference to it: there are no references to its `struct device` to count.
    ///
    /// As long as there are none, they are counted again: the core has not allocated anything for
    /// an error. It warns of zero. But DSA takes over these operations, has its own statistics
    /// behind ours, and cannot add to an error.
    fn count_statistics(inner: &Inner<T>, lock: &mut OpsLocked<'static>) -> c_int {
        if let Some(count) = *inner.statistics.get(lock) {
            return count;
        }
        let count = c_int::try_from(Self::collect(inner, lock, Pass::Count)).unwrap_or(0);

        // SAFETY: The device is valid, and this only looks at a pointer, which changes under RTNL.
        if count == 0 && unsafe { !bindings::netdev_is_dsa_conduit(inner.dev().as_raw()) } {
            return EOPNOTSUPP.to_errno();
        }
        *inner.statistics.get_mut(lock) = Some(count);
        count
    }

    /// The number of statistics for which users of the callbacks have room. Not negative.
    fn counted_statistics(inner: &Inner<T>, lock: &OpsLocked<'static>) -> usize {
        // CAST: They have been counted, from zero on.
        inner.statistics.get(lock).map_or(0, |count| count as usize)
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`.
    unsafe extern "C" fn get_sset_count(dev: *mut bindings::net_device, set: c_int) -> c_int {
        match u32::try_from(set) {
            Ok(bindings::ethtool_stringset_ETH_SS_PRIV_FLAGS) if Self::HAS_FLAGS => {
                c_int::try_from(Self::FLAGS.len()).unwrap_or(0)
            }
            Ok(bindings::ethtool_stringset_ETH_SS_TEST) if Self::SELF_TESTS != 0 => {
                c_int::try_from(Self::SELF_TESTS).unwrap_or(0)
            }
            Ok(bindings::ethtool_stringset_ETH_SS_STATS) if T::HAS_ETHTOOL_STATISTICS => {
                // SAFETY: The core calls us for a registered device, and holds its lock.
                let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };

                Self::count_statistics(inner, &mut lock)
            }
            _ => EOPNOTSUPP.to_errno(),
        }
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`. `data` must have room for as
    /// many names as `get_sset_count()` returns for `set`.
    unsafe extern "C" fn get_strings(dev: *mut bindings::net_device, set: u32, data: *mut u8) {
        let fixed = match set {
            bindings::ethtool_stringset_ETH_SS_PRIV_FLAGS => Self::FLAGS.len(),
            bindings::ethtool_stringset_ETH_SS_TEST => Self::SELF_TESTS,
            _ => 0,
        };
        if fixed != 0 {
            // SAFETY: The core has allocated `data` for that many names, zeroed.
            let names = unsafe { slice::from_raw_parts_mut(data.cast::<[u8; NAME_LEN]>(), fixed) };
            let mut statistics = Statistics::new(Pass::Names(names));
            if set == bindings::ethtool_stringset_ETH_SS_PRIV_FLAGS {
                for name in Self::FLAGS {
                    statistics.add(fmt!("{}", *name), 0);
                }
            } else {
                (T::OPS.name_self_tests)(&mut statistics);
            }
            return;
        }
        if set != bindings::ethtool_stringset_ETH_SS_STATS || !T::HAS_ETHTOOL_STATISTICS {
            return;
        }

        // SAFETY: The core calls us for a registered device, and holds its lock.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        let count = Self::counted_statistics(inner, &lock);
        if count == 0 {
            return;
        }
        // SAFETY: `get_sset_count()` has never returned another number that is not zero. The core
        // has allocated `data` for that many names, zeroed.
        let names = unsafe { slice::from_raw_parts_mut(data.cast::<[u8; NAME_LEN]>(), count) };

        Self::collect(inner, &mut lock, Pass::Names(names));
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
        let count = Self::counted_statistics(inner, &lock).min(room);
        if count == 0 {
            return;
        }
        // SAFETY: The core has allocated `data` for `n_stats` values, zeroed.
        let values = unsafe { slice::from_raw_parts_mut(data, count) };

        Self::collect(inner, &mut lock, Pass::Values(values));
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `settings`.
    unsafe extern "C" fn get_link_ksettings(
        dev: *mut bindings::net_device,
        settings: *mut bindings::ethtool_link_ksettings,
    ) -> c_int {
        // SAFETY: The core calls us for a registered device, and holds its lock.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        if let Err(error) = inner.check_reachable() {
            return error.to_errno();
        }
        let speed = T::link_speed(inner.data(), inner.dev(), &mut lock);

        // SAFETY: The core gives us `settings` to fill in.
        let base = unsafe { &mut (*settings).base };
        match speed {
            Some(speed) => {
                base.speed = speed;
                base.duplex = bindings::DUPLEX_FULL as u8;
            }
            // CAST: The constants are -1 and 255.
            None => {
                base.speed = u32::MAX;
                base.duplex = bindings::DUPLEX_UNKNOWN as u8;
            }
        }
        base.port = bindings::PORT_OTHER as u8;
        0
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with valid `channels`.
    unsafe extern "C" fn get_channels(
        dev: *mut bindings::net_device,
        channels: *mut bindings::ethtool_channels,
    ) {
        // SAFETY: The core calls us for a registered device, and gives us `channels` to fill in.
        let (inner, channels) = unsafe { (ops::inner::<T>(dev), &mut *channels) };

        // SAFETY: The lock of the device's operations is held.
        let lock = unsafe { OpsLocked::assume_held(inner.dev()) };

        // CAST: The number of queues is a `u16`.
        channels.max_combined = inner.queues() as u32;
        channels.combined_count = inner.channels(&lock).into();
        channels.max_other = u32::from(T::HAS_EVENT);
        channels.other_count = u32::from(T::HAS_EVENT);
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with valid `channels`.
    unsafe extern "C" fn set_channels(
        dev: *mut bindings::net_device,
        channels: *mut bindings::ethtool_channels,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The core calls us for a registered device, with valid `channels`.
            let (inner, channels) = unsafe { (ops::inner::<T>(dev), &*channels) };
            // SAFETY: The core holds the lock of the device's operations, and RTNL: if the lock is
            // another one, `op_needs_rtnl` asks for that.
            let mut locks = unsafe { Configuring::assume_held(inner.dev()) };

            if channels.other_count != u32::from(T::HAS_EVENT) {
                return Err(EINVAL);
            }
            inner.check_reachable()?;
            let count = u16::try_from(channels.combined_count)?;
            inner.set_channels(count, &mut locks)?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with valid `fields`.
    unsafe extern "C" fn get_rxfh_fields(
        dev: *mut bindings::net_device,
        fields: *mut bindings::ethtool_rxfh_fields,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The core calls us for a registered device, gives us `fields` to fill in, and
            // holds its lock.
            let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
            // SAFETY: As above.
            let fields = unsafe { &mut *fields };
            let flow = Flow::from_raw(fields.flow_type).ok_or(EINVAL)?;

            fields.data = T::flow_hash(inner.data(), flow, &mut lock).to_raw();
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with valid `fields` and an
    /// `extack` that is valid or null.
    unsafe extern "C" fn set_rxfh_fields(
        dev: *mut bindings::net_device,
        fields: *const bindings::ethtool_rxfh_fields,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The core calls us for a registered device, with valid `fields`, and holds
            // its lock. `extack` is valid or null.
            let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
            // SAFETY: As above.
            let (fields, extack) = unsafe { (&*fields, ExtAck::new(extack)) };
            let flow = Flow::from_raw(fields.flow_type)
                .ok_or_else(|| extack.refuse(EINVAL, c"packets of other flows are not hashed"))?;
            let hash = FlowHash::from_raw(fields.data).ok_or_else(|| {
                extack.refuse(
                    EINVAL,
                    c"the hash is over both addresses, or both ports too",
                )
            })?;

            inner.check_reachable()?;
            T::set_flow_hash(inner.data(), inner.dev(), flow, hash, &mut lock, &extack)?;
            Ok(0)
        })
    }
}
