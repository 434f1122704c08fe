// SPDX-License-Identifier: GPL-2.0

//! Settings that a device cannot have because of those who see its frames.

use super::{
    inner::Inner,
    ops_lock::Locks,
    optional_ops::Exclusion,
    Driver,
    Feature,
    Features, //
};

use crate::prelude::*;

impl<T: Driver> Inner<T> {
    fn exclusion(&self) -> Option<Exclusion> {
        let of_driver = T::OPS.exclusion?;

        // SAFETY: This is the device of `self`.
        unsafe { of_driver(self.dev()) }
    }

    /// Refuses an MTU that the device cannot have.
    pub(super) fn check_mtu(&self, mtu: u32, locks: &mut Locks<'static>) -> Result {
        let found = || self.exclusion().filter(|one| mtu > one.max_mtu);

        if found().is_none() {
            return Ok(());
        }
        if let Some(end) = T::OPS.end_exclusions {
            // SAFETY: This is the device of `self`.
            unsafe { end(self.dev(), locks) };
        }
        let Some(Exclusion { by, max_mtu }) = found() else {
            return Ok(());
        };
        crate::netdev_err!(self.dev(), "MTU of {mtu}, above {max_mtu}: there is {by}\n");
        Err(EINVAL)
    }

    /// The features without those that the device cannot have.
    pub(super) fn without_excluded(&self, wanted: Features) -> Features {
        if !wanted.contains(Feature::Lro) {
            return wanted;
        }
        match self.exclusion() {
            Some(Exclusion { by, .. }) => {
                crate::netdev_notice!(self.dev(), "no LRO: there is {by}\n");
                wanted.without(Feature::Lro)
            }
            None => wanted,
        }
    }
}
