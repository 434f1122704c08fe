// SPDX-License-Identifier: GPL-2.0

//! Registered devices of drivers without hardware.

use super::{
    super::{
        registration::Registration,
        Driver, //
    },
    fixture, //
};

use crate::{
    bindings,
    device::{
        self,
        Bound, //
    },
    error::to_result,
    faux,
    prelude::*,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// A registered device, with its bus device.
pub(super) struct Registered<T: Driver<Bus = device::Device<Bound>>> {
    pub(super) registration: Option<Registration<T>>,
    _parent: faux::Registration,
}

impl<T: Driver<Bus = device::Device<Bound>>> Registered<T> {
    /// Registers a device, whose bus device has such a name.
    pub(super) fn new(name: &str, setup: T::Setup) -> Result<Self> {
        let parent = faux::Registration::new(&fixture::own_name(name)?, None)?;

        // SAFETY: The parent exists until the registration has been dropped.
        let bus =
            unsafe { &*core::ptr::from_ref::<device::Device<Bound>>(parent.as_ref().as_ref()) };
        // SAFETY: The parent is valid, and has no mappings yet. The mask is part of it.
        to_result(unsafe {
            let raw = bus.as_raw();
            (*raw).dma_mask = &raw mut (*raw).coherent_dma_mask;
            bindings::dma_set_mask_and_coherent(raw, u64::MAX)
        })?;
        let (info, data) = T::probe(bus, setup)?;
        let mut registration = Registration::<T>::new(bus, &info, data)?;
        // IPv6 would send packets of its own.
        let no_addrconf = bindings::netdev_priv_flags_IFF_NO_ADDRCONF;
        // SAFETY: The device is valid, and not registered yet.
        unsafe { bindings::netdev_add_priv_flags(registration.0.as_raw(), no_addrconf) };
        registration.register(&info)?;

        Ok(Self {
            registration: Some(registration),
            _parent: parent,
        })
    }

    pub(super) fn dev(&self) -> *mut bindings::net_device {
        match &self.registration {
            Some(registration) => registration.0.as_raw(),
            None => core::ptr::null_mut(),
        }
    }

    /// Runs `f` with RTNL held.
    pub(super) fn with_rtnl<R>(&self, f: impl FnOnce(*mut bindings::net_device) -> R) -> R {
        // SAFETY: Tests run in process context.
        unsafe { bindings::rtnl_lock() };
        let result = f(self.dev());
        // SAFETY: Locked above.
        unsafe { bindings::rtnl_unlock() };
        result
    }

    pub(super) fn up(&self) -> Result {
        // SAFETY: The device is registered and RTNL is held.
        self.with_rtnl(|dev| to_result(unsafe { bindings::dev_open(dev, core::ptr::null_mut()) }))
    }

    pub(super) fn down(&self) {
        // SAFETY: As in `up()`.
        self.with_rtnl(|dev| unsafe { bindings::dev_close(dev) });
    }

    pub(super) fn set_mtu(&self, mtu: c_int) -> Result {
        // SAFETY: The device is registered and RTNL is held.
        self.with_rtnl(|dev| to_result(unsafe { bindings::dev_set_mtu(dev, mtu) }))
    }

    /// Restarts a receive queue, as the core does.
    pub(super) fn restart_rx(&self, queue: u32) -> Result {
        let dev = self.dev();

        // SAFETY: The device is registered, and has the queue. Tests run in process context.
        unsafe {
            bindings::netdev_lock(dev);
            let result = bindings::netdev_rx_queue_restart(dev, queue);
            bindings::netdev_unlock(dev);
            to_result(result)
        }
    }

    /// Waits until poll functions that were scheduled have run.
    pub(super) fn wait_for_polls(&self) {
        fsleep(Delta::from_millis(20));
        // SAFETY: Tests run in process context.
        unsafe { bindings::synchronize_net() };
    }
}
