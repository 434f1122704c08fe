// SPDX-License-Identifier: GPL-2.0

//! Waking the machine by received packets.

use super::super::{
    bus::Parent,
    inner::Inner,
    ops_lock::Locks,
    prelude::*,
    Info, //
};

use crate::{
    device::{
        self,
        Bound, //
    },
    error::to_result, //
};

pub use super::super::wake_packets::{
    WakePacket,
    WakePackets, //
};

/// The bus device of a device that can wake the machine, if the bus lets it.
fn waker<T: Driver>(inner: &Inner<T>) -> Option<&'static device::Device<Bound>> {
    T::OPS.arm_wake_up?;
    let parent = inner.bus.as_device()?;

    // SAFETY: The device is valid.
    unsafe { bindings::device_can_wakeup(parent.as_raw()) }.then_some(parent)
}

/// Tells the driver core whether it may.
fn let_wake_up(parent: &device::Device<Bound>, is_wanted: bool) -> Result {
    // SAFETY: The device is valid. Process context.
    match to_result(unsafe { bindings::device_set_wakeup_enable(parent.as_raw(), is_wanted) }) {
        // It may already: users have turned it on in sysfs, or another driver has.
        Err(error) if error == EEXIST => Ok(()),
        result => result,
    }
}

impl<T: Driver> Inner<T> {
    /// Tells the driver core whether the machine is to be woken, as the driver has it at first.
    pub(in super::super) fn begin_wake_up(&self, info: &Info) {
        if let (false, Some(parent)) = (info.wake.is_empty(), waker(self)) {
            // It fails for want of memory. Users see that it is off then, and can turn it on.
            let _ = let_wake_up(parent, !info.default_wake.is_empty());
        }
    }

    /// Tells it that the machine is not to be woken any more.
    pub(in super::super) fn end_wake_up(&self) {
        if let (false, Some(parent)) = (self.wake_up.can.is_empty(), waker(self)) {
            let _ = let_wake_up(parent, false);
        }
    }

    /// Has the NIC wake the machine, if users want that, before the bus takes its power away.
    /// Nothing else accesses it meanwhile. Returns whether it is armed.
    pub(in super::super) fn arm_wake_up(&self, locks: &mut Locks<'static>) -> bool {
        let packets = *self.wake_up.wanted.get(locks.ops());
        let (false, Some(arm), Some(parent)) = (
            packets.is_empty() || self.is_stuck(locks),
            T::OPS.arm_wake_up,
            waker(self),
        ) else {
            return false;
        };
        // Users can turn it off in sysfs as well.
        // SAFETY: The device is valid.
        if unsafe { !bindings::device_may_wakeup(parent.as_raw()) } {
            return false;
        }
        // SAFETY: The device is one of this driver.
        unsafe { arm(self.dev(), packets, locks) };
        true
    }
}

/// A driver of a NIC that can wake the machine, see [`OptionalOps::wol`].
///
/// The choice of users is kept here, and passed on to the driver core, whose sysfs attribute
/// `power/wakeup` turns all of it off.
pub trait WolOps: Driver {
    /// Has the NIC wake the machine by received packets of these kinds, which users have chosen
    /// (`ethtool -s DEV wol`) among [`Info::wake`].
    ///
    /// The machine is about to sleep, or to go off. [`Driver::quiesce`] has been called if the
    /// device was up, and the NIC may not access memory; it needs its link, and its filter of
    /// addresses. The bus lowers its power after this, unless an image of the memory is made for
    /// hibernation. [`Driver::reset`] comes next, or the driver's data is dropped, if anything
    /// happens to it.
    fn arm_wake_up<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        packets: WakePackets,
        locks: &mut Locks<'bound>,
    );
}

impl<T: WolOps> OptionalOps<T> {
    /// Adds the callbacks of [`WolOps`].
    pub const fn wol(mut self) -> Self {
        self.ethtool.get_wol = Some(Self::get_wol);
        self.ethtool.set_wol = Some(Self::set_wol);
        self.arm_wake_up = Some(Self::arm_wake_up);
        self
    }

    /// # Safety
    ///
    /// `dev` must be a device of driver `T`.
    unsafe fn arm_wake_up(dev: &Device, packets: WakePackets, locks: &mut Locks<'static>) {
        // SAFETY: By the safety requirements.
        let inner = unsafe { ops::inner::<T>(dev.as_raw()) };

        T::arm_wake_up(inner.data(), inner.dev(), packets, locks);
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `info`.
    unsafe extern "C" fn get_wol(
        dev: *mut bindings::net_device,
        info: *mut bindings::ethtool_wolinfo,
    ) {
        // SAFETY: The core calls us for a registered device, gives us zeroed `info` to fill in, and
        // holds its lock.
        let (inner, lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let info = unsafe { &mut *info };

        if waker(inner).is_some() {
            info.supported = inner.wake_up.can.0;
            info.wolopts = inner.wake_up.wanted.get(&lock).0;
        }
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `info`.
    unsafe extern "C" fn set_wol(
        dev: *mut bindings::net_device,
        info: *mut bindings::ethtool_wolinfo,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The core calls us for a registered device, with a valid `info`, and holds
            // its lock.
            let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
            // SAFETY: As above.
            let wanted = unsafe { WakePackets((*info).wolopts) };

            if wanted.0 & !inner.wake_up.can.0 != 0 {
                return Err(EINVAL);
            }
            let parent = match waker(inner) {
                Some(parent) => parent,
                None if wanted.is_empty() => return Ok(0),
                None => return Err(EOPNOTSUPP),
            };
            let_wake_up(parent, !wanted.is_empty())?;
            *inner.wake_up.wanted.get_mut(&mut lock) = wanted;
            Ok(0)
        })
    }
}
