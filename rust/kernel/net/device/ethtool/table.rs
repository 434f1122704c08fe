// SPDX-License-Identifier: GPL-2.0

//! The `ethtool` operations of a device: those that every device has, and the optional ones of its
//! driver.
//!
//! The core takes the name of the driver, its version and the bus address from the parent device.

use super::{
    super::prelude::*,
    strings::{
        StringSet,
        StringSets, //
    }, //
};

use core::marker::PhantomData;

// `bindgen` does not see through `BIT()`. The helpers in C check the values.
const NEEDS_RTNL_SCHANNELS: u32 = 1 << 3;
const NEEDS_RTNL_GLINK: u32 = 1 << 8;

/// The callbacks of `struct ethtool_ops`.
pub(in super::super) struct Ethtool<T>(PhantomData<T>);

impl<T: Driver> Ethtool<T> {
    const VTABLE: bindings::ethtool_ops = {
        let mut ops = T::OPS.ethtool;

        ops.get_link = Some(bindings::ethtool_op_get_link);
        ops.get_channels = Some(Self::get_channels);
        ops.set_channels = Some(Self::set_channels);
        ops.op_needs_rtnl = if T::OPS_LOCK {
            ops.op_needs_rtnl | NEEDS_RTNL_SCHANNELS | NEEDS_RTNL_GLINK
        } else {
            0
        };
        if !matches!(Self::STRINGS, [None, None]) {
            ops.get_sset_count = Some(Self::get_sset_count);
            ops.get_strings = Some(Self::get_strings);
        }
        ops
    };

    const STRINGS: StringSets = T::OPS.strings;

    pub(in super::super) const fn vtable() -> &'static bindings::ethtool_ops {
        &Self::VTABLE
    }

    fn strings(set: u32) -> Option<StringSet> {
        *Self::STRINGS.get(usize::try_from(set).ok()?)?
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`.
    unsafe extern "C" fn get_sset_count(dev: *mut bindings::net_device, set: c_int) -> c_int {
        match u32::try_from(set).ok().and_then(Self::strings) {
            // SAFETY: The core calls us for a registered device, and holds its lock.
            Some(set) => unsafe { (set.count)(dev) },
            None => EOPNOTSUPP.to_errno(),
        }
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`. `data` must have room for as
    /// many names as `get_sset_count()` returns for `set`.
    unsafe extern "C" fn get_strings(dev: *mut bindings::net_device, set: u32, data: *mut u8) {
        if let Some(set) = Self::strings(set) {
            // SAFETY: The core calls us for a registered device, and holds its lock. It has
            // allocated `data` for that many names, zeroed.
            unsafe { (set.names)(dev, data) };
        }
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with valid `channels`.
    unsafe extern "C" fn get_channels(
        dev: *mut bindings::net_device,
        channels: *mut bindings::ethtool_channels,
    ) {
        // SAFETY: The core calls us for a registered device, and holds its lock.
        let (inner, lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: The core gives us `channels` to fill in.
        let channels = unsafe { &mut *channels };

        // CAST: The number of queues is a `u16`.
        channels.max_combined = inner.queues() as u32;
        channels.combined_count = inner.config.get(&lock).channels.into();
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
        // SAFETY: The core calls us for a registered device. It holds the lock of its
        // operations, and RTNL: if the lock is another one, `op_needs_rtnl` asks for that.
        let (inner, mut locks) = unsafe { ops::locked_rtnl::<T>(dev) };
        // SAFETY: `channels` are valid.
        let channels = unsafe { &*channels };

        inner.if_reachable(|| {
            let count = u16::try_from(channels.combined_count)?;
            if channels.other_count != u32::from(T::HAS_EVENT) {
                return Err(inner
                    .dev()
                    .refuse(EINVAL, "channels: the number of others cannot be changed"));
            }
            if count == 0 || usize::from(count) > inner.queues() {
                return Err(EINVAL);
            }
            inner.reconfigure(|config| config.channels = count, &mut locks)
        })
    }
}
