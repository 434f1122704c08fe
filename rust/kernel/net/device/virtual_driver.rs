// SPDX-License-Identifier: GPL-2.0

//! Drivers of virtual devices, and the callbacks of the core.

#[cfg(CONFIG_KUNIT)]
mod tests;

use super::{
    owned::{
        private,
        OwnedDevice, //
    },
    Device,
    Stats64, //
};

use crate::{
    bindings,
    error::{
        from_result,
        VTABLE_DEFAULT_ERROR, //
    },
    net::skbuff::SkBuff,
    prelude::*, //
};

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

/// The driver of a virtual network device.
///
/// A value of the type is the private data of a device. All callbacks share it:
/// any of them may be called while another one runs, on another CPU.
#[vtable]
pub trait VirtualDriver: Send + Sync + Sized + 'static {
    /// The name of a device, where "%d" stands for the first number that is
    /// free.
    const NAME: &'static CStr;

    /// Gets ready to transmit packets: none comes before [`Device::carrier_on`]
    /// was called.
    ///
    /// Process context, RTNL held.
    fn open(&self, _dev: &Device) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Undoes what [`Self::open`] has done. There are no more packets. Process
    /// context, RTNL held.
    fn stop(&self, _dev: &Device) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Transmits a packet. Bottom halves are disabled, or with netpoll,
    /// interrupts.
    fn start_xmit(&self, skb: SkBuff);

    /// Adds to the counters of the device, which are zero before that. Any
    /// context that does not sleep; the device may be up or down.
    fn get_stats64(&self, _stats: &mut Stats64<'_>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

/// A device of driver `T`, registered or about to be.
///
/// # Invariants
///
/// Its callbacks are those of `T`.
pub(super) struct DeviceOf<T: VirtualDriver>(OwnedDevice<T>);

impl<T: VirtualDriver> DeviceOf<T> {
    /// Allocates a device, but does not register it.
    pub(super) fn new(driver: impl PinInit<T, Error>) -> Result<Self> {
        let device = OwnedDevice::new(T::NAME, 1, |dev| {
            let dev = dev.as_ptr();

            // SAFETY: The device is ours, and not registered.
            unsafe {
                (*dev).netdev_ops = Ops::<T>::vtable();
                bindings::eth_hw_addr_random(dev);
                bindings::netif_carrier_off(dev);
            }
            Ok(driver)
        })?;
        // INVARIANT: They were set above.
        Ok(Self(device))
    }

    /// Registers it. Process context, without RTNL.
    pub(super) fn register(&mut self) -> Result {
        // SAFETY: By the type invariants, the callbacks are those of `T`, which
        // is the private part of the device, and only the core calls them.
        unsafe { self.0.register() }
    }
}

/// The callbacks of `struct net_device_ops`.
///
/// All of them are called by the core only, for a device whose private part is
/// a `T`, between the beginning of its registration and the end of its
/// unregistration.
struct Ops<T>(PhantomData<T>);

impl<T: VirtualDriver> Ops<T> {
    const VTABLE: bindings::net_device_ops = bindings::net_device_ops {
        ndo_open: if T::HAS_OPEN { Some(Self::open) } else { None },
        ndo_stop: if T::HAS_STOP { Some(Self::stop) } else { None },
        ndo_start_xmit: Some(Self::start_xmit),
        ndo_validate_addr: Some(bindings::eth_validate_addr),
        ndo_set_mac_address: Some(bindings::eth_mac_addr),
        ndo_get_stats64: if T::HAS_GET_STATS64 {
            Some(Self::get_stats64)
        } else {
            None
        },
        ..pin_init::zeroed()
    };

    const fn vtable() -> &'static bindings::net_device_ops {
        &Self::VTABLE
    }

    /// # Safety
    ///
    /// See [`Ops`].
    unsafe extern "C" fn open(dev: *mut bindings::net_device) -> c_int {
        // SAFETY: The device is registered.
        let driver = unsafe { private::<T>(dev) };
        // SAFETY: As above.
        let dev = unsafe { Device::from_raw(dev) };

        from_result(|| driver.open(dev).map(|()| 0))
    }

    /// # Safety
    ///
    /// See [`Ops`].
    unsafe extern "C" fn stop(dev: *mut bindings::net_device) -> c_int {
        // SAFETY: The device is registered.
        let driver = unsafe { private::<T>(dev) };
        // SAFETY: As above.
        let dev = unsafe { Device::from_raw(dev) };

        driver.stop(dev);
        0
    }

    /// # Safety
    ///
    /// See [`Ops`]. `skb` is ours.
    unsafe extern "C" fn start_xmit(
        skb: *mut bindings::sk_buff,
        dev: *mut bindings::net_device,
    ) -> bindings::netdev_tx_t {
        // SAFETY: The device is registered.
        let driver = unsafe { private::<T>(dev) };
        // SAFETY: The core gives us a valid packet, and with it its reference.
        let skb = unsafe { SkBuff::from_raw(NonNull::new_unchecked(skb)) };

        driver.start_xmit(skb);
        bindings::netdev_tx::NETDEV_TX_OK
    }

    /// # Safety
    ///
    /// See [`Ops`]. `stats` is valid for reading and writing.
    unsafe extern "C" fn get_stats64(
        dev: *mut bindings::net_device,
        stats: *mut bindings::rtnl_link_stats64,
    ) {
        // SAFETY: The device is registered.
        let driver = unsafe { private::<T>(dev) };

        // SAFETY: By the safety requirements.
        unsafe { Stats64::fill(stats, |stats| driver.get_stats64(stats)) };
    }
}
