// SPDX-License-Identifier: GPL-2.0

//! Flags of the driver's own, for `ethtool --show-priv-flags` and `--set-priv-flags`.

use super::{
    super::{
        ops,
        ops_lock::OpsLocked,
        optional_ops::OptionalOps,
        Driver, //
    },
    strings::{
        Statistics,
        StringSet, //
    }, //
};

use crate::{
    bindings,
    error::from_result,
    prelude::*, //
};

/// A driver with flags of its own, see [`OptionalOps::priv_flags`].
pub trait PrivFlagsOps: Driver {
    /// The names of the flags: at least one, up to 32, of up to 31 characters. The first one is
    /// bit 0.
    const PRIV_FLAGS: &'static [&'static str];

    /// The flags that are set. The device may be suspended.
    fn priv_flags<'bound>(data: Pin<&Self::Data<'bound>>, lock: &mut OpsLocked<'bound>) -> u32;

    /// Sets the flags to `flags`, in which there are only bits that have a name.
    fn set_priv_flags<'bound>(
        data: Pin<&Self::Data<'bound>>,
        flags: u32,
        lock: &mut OpsLocked<'bound>,
    ) -> Result;
}

impl<T: PrivFlagsOps> OptionalOps<T> {
    /// Adds the callbacks of [`PrivFlagsOps`].
    pub const fn priv_flags(mut self) -> Self {
        const {
            // The core warns of a set of no names.
            assert!(!T::PRIV_FLAGS.is_empty() && T::PRIV_FLAGS.len() <= u32::BITS as usize);
        }
        self.ethtool.get_priv_flags = Some(Self::get_priv_flags);
        self.ethtool.set_priv_flags = Some(Self::set_priv_flags);
        self.strings[bindings::ethtool_stringset_ETH_SS_PRIV_FLAGS as usize] = Some(StringSet {
            // CAST: It has just been checked.
            count: |_dev| T::PRIV_FLAGS.len() as c_int,
            names: Self::name_priv_flags,
        });
        self
    }

    /// # Safety
    ///
    /// See [`StringSet`].
    unsafe fn name_priv_flags(_dev: *mut bindings::net_device, data: *mut u8) {
        // SAFETY: By the safety requirements.
        let mut names = unsafe { Statistics::names(data, T::PRIV_FLAGS.len()) };

        for name in T::PRIV_FLAGS {
            names.add(fmt!("{}", *name), 0);
        }
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`.
    unsafe extern "C" fn get_priv_flags(dev: *mut bindings::net_device) -> u32 {
        // SAFETY: The core calls us for a registered device, and holds its lock.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };

        T::priv_flags(inner.data(), &mut lock)
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`.
    unsafe extern "C" fn set_priv_flags(dev: *mut bindings::net_device, flags: u32) -> c_int {
        // The number of flags is at most that of the bits.
        if u64::from(flags) >> T::PRIV_FLAGS.len() != 0 {
            return EINVAL.to_errno();
        }
        from_result(|| {
            // SAFETY: The core calls us for a registered device, and holds its lock.
            let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };

            inner.check_reachable()?;
            T::set_priv_flags(inner.data(), flags, &mut lock)?;
            Ok(0)
        })
    }
}
