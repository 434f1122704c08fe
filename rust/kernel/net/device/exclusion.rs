// SPDX-License-Identifier: GPL-2.0

//! Settings that a device cannot have because of those who see its frames.

use super::{
    inner::Inner,
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
    pub(super) fn check_mtu(&self, mtu: u32) -> Result {
        match self.exclusion() {
            Some(Exclusion { by, max_mtu }) if mtu > max_mtu => {
                crate::netdev_err!(self.dev(), "MTU of {mtu}, above {max_mtu}: there is {by}\n");
                Err(EINVAL)
            }
            _ => Ok(()),
        }
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
