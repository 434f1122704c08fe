// SPDX-License-Identifier: GPL-2.0

//! The filter of VLANs.

use super::{
    prelude::*,
    Rtnl, //
};

/// A driver of a NIC that filters received packets by their VLAN, see
/// [`OptionalOps::vlan_filter`].
pub trait VlanFilterOps: Driver {
    /// Adds a VLAN to those whose packets are received, or removes it.
    ///
    /// Called for devices with [`Feature::VlanFilter`](super::Feature::VlanFilter), also while the
    /// feature is off. The driver has to remember the VLANs: if `live` is set, this takes effect at
    /// once, else [`Driver::start`] applies it. Process context, RTNL held; the device may be up,
    /// down or suspended.
    fn set_vlan<'bound>(
        data: Pin<&Self::Data<'bound>>,
        id: u16,
        member: bool,
        live: bool,
        rtnl: &mut Rtnl,
    ) -> Result;
}

impl<T: VlanFilterOps> OptionalOps<T> {
    /// Adds the callback of [`VlanFilterOps`].
    pub const fn vlan_filter(mut self) -> Self {
        self.netdev.ndo_vlan_rx_add_vid = Some(Self::vlan_rx_add_vid);
        self.netdev.ndo_vlan_rx_kill_vid = Some(Self::vlan_rx_kill_vid);
        self
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`. RTNL must be held.
    unsafe extern "C" fn vlan_rx_add_vid(
        dev: *mut bindings::net_device,
        _protocol: bindings::__be16,
        id: u16,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe { Self::set_vlan(dev, id, true) }
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`. RTNL must be held.
    unsafe extern "C" fn vlan_rx_kill_vid(
        dev: *mut bindings::net_device,
        _protocol: bindings::__be16,
        id: u16,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        unsafe { Self::set_vlan(dev, id, false) }
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`. RTNL must be held.
    unsafe fn set_vlan(dev: *mut bindings::net_device, id: u16, member: bool) -> c_int {
        from_result(|| {
            // SAFETY: The device is registered, and RTNL is held.
            let (inner, mut rtnl) = unsafe { (ops::inner::<T>(dev), Rtnl::assume_held()) };
            let live = inner.dev().is_running() && inner.check_reachable().is_ok();

            T::set_vlan(inner.data(), id, member, live, &mut rtnl)?;
            Ok(0)
        })
    }
}
