// SPDX-License-Identifier: GPL-2.0

//! Changes to a device, with its locks held.

use super::{
    ops_lock::Locks,
    Device,
    Feature,
    Features,
    Rtnl, //
};

use crate::bindings;

use core::{
    ops::Range,
    ptr, //
};

/// The attributes of a device that its rings may be made for, other than their number and lengths.
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

impl Device {
    /// Changes the MTU.
    pub(super) fn set_mtu(&self, mtu: u32, _rtnl: &mut Rtnl) {
        // SAFETY: The device is valid. The MTU is read concurrently, see `mtu()`.
        unsafe { ptr::write_volatile(&raw mut (*self.as_raw()).mtu, mtu) };
    }

    /// Changes the set of features.
    pub(super) fn set_features(&self, features: Features, _rtnl: &mut Rtnl) {
        // SAFETY: By the type invariants, the device is valid. The features are read concurrently,
        // see `features()`.
        unsafe {
            ptr::write_volatile(&raw mut (*self.as_raw()).features, features.0);
        };
    }

    /// Assigns each of these transmit queues to a CPU of its own (XPS).
    ///
    /// Not generic, so that this is not part of a driver's module.
    #[inline(never)]
    pub(super) fn spread_tx_queues(&self, queues: Range<u32>) {
        for index in queues {
            // A CPU transmits through the queue whose completions it handles: the order of CPUs is
            // that of `netif_set_affinity_auto()`. If this fails, the queue is found by a hash,
            // which is slower.
            //
            // SAFETY: By the type invariants, the device is valid.
            // CAST: The number of queues is a `u16`.
            unsafe {
                let node = bindings::dev_to_node(&raw mut (*self.as_raw()).dev);
                let cpu = bindings::cpumask_local_spread(index, node);
                let cpus = bindings::cpumask_of(cpu);
                let _ = bindings::netif_set_xps_queue(self.as_raw(), cpus, index as u16);
            }
        }
    }

    /// Closes the device: users have to open it again.
    ///
    /// Not generic, so that this is not part of a driver's module.
    #[inline(never)]
    pub(super) fn close(&self, _locks: &mut Locks<'static>) {
        // SAFETY: By the type invariants, the device is valid. RTNL and the lock of its operations
        // are held, and the tokens lent to callbacks.
        unsafe { bindings::netif_close(self.as_raw()) };
    }

    /// Marks the device as absent: its queues are stopped, and users can neither open nor configure
    /// it.
    ///
    /// Not generic, so that this is not part of a driver's module.
    #[inline(never)]
    pub(super) fn detach(&self, _rtnl: &mut Rtnl) {
        // SAFETY: By the type invariants, the device is valid. RTNL is held.
        unsafe { bindings::netif_device_detach(self.as_raw()) };
    }

    /// Marks the device as present. If it is up, its queues are woken.
    ///
    /// Not generic, so that this is not part of a driver's module.
    #[inline(never)]
    pub(super) fn attach(&self, _rtnl: &mut Rtnl) {
        // SAFETY: By the type invariants, the device is valid. RTNL is held.
        unsafe { bindings::netif_device_attach(self.as_raw()) };
    }

    /// Lets [`Driver::set_rx_mode`](super::Driver::set_rx_mode) be called.
    pub(super) fn refresh_rx_mode(&self, _locks: &mut Locks<'static>) {
        let dev = self.as_raw();

        // The core does this for flags that do not change, too.
        //
        // SAFETY: By the type invariants, the device is valid. RTNL and the lock of its operations
        // are held, and the tokens lent to a callback.
        unsafe {
            bindings::netif_change_flags(dev, bindings::netif_get_flags(dev), ptr::null_mut())
        };
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
