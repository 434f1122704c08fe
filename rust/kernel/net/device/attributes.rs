// SPDX-License-Identifier: GPL-2.0

//! The attributes of a device that its memory may depend on.

use super::{
    Device,
    Feature,
    Features,
    Rtnl, //
};

/// The attributes that rings may be made for, other than their number and lengths.
#[derive(Clone, Copy)]
pub(super) struct Attributes {
    pub(super) mtu: u32,
    pub(super) features: Features,
}

impl Attributes {
    /// Those of a device.
    pub(super) fn of(dev: &Device) -> Self {
        Self {
            mtu: dev.mtu(),
            features: dev.features(),
        }
    }

    /// Gives them to a device: one that is down, as poll functions read them.
    pub(super) fn apply(self, dev: &Device, rtnl: &mut Rtnl) {
        dev.set_mtu(self.mtu, rtnl);
        dev.set_features(self.features, rtnl);
    }
}

impl Features {
    /// The set for a device whose features the core is about to change from `old` to `self`: it
    /// acts upon a change of the filter for VLANs, which it must find.
    pub(super) const fn before_core(self, old: Self) -> Self {
        if old.contains(Feature::VlanFilter) {
            self.with(Feature::VlanFilter)
        } else {
            self.without(Feature::VlanFilter)
        }
    }
}

#[macros::kunit_tests(rust_net_attributes)]
mod tests {
    use super::*;

    #[test]
    fn the_core_finds_the_old_filter() {
        let none = Features::NONE;
        let (filter, hash) = (none.with(Feature::VlanFilter), none.with(Feature::RxHash));

        assert_eq!(hash.before_core(filter), hash.with(Feature::VlanFilter));
        assert_eq!(filter.before_core(hash), none);
        assert_eq!(filter.before_core(filter), filter);
    }
}
