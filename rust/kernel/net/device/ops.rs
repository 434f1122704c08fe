// SPDX-License-Identifier: GPL-2.0

//! The callbacks of `struct net_device_ops`.

use super::{
    attributes::Attributes,
    segments,
    xmit,
    Device,
    Driver,
    Features,
    MacAddress,
    MtuChange,
    Rtnl,
    RxMode,
    Stats64, //
};

pub(super) use super::inner::{
    inner,
    locked, //
    locked_rtnl,
};

use crate::{
    bindings,
    error::from_result,
    net::skbuff::SkBuff,
    prelude::*,
    sync::rcu, //
};

use core::{
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    }, //
};

/// `Some` of a callback if the driver has it.
macro_rules! if_has {
    ($has:expr, $callback:expr) => {
        if $has {
            Some($callback)
        } else {
            None
        }
    };
}

/// The callbacks of `struct net_device_ops`.
///
/// All of them are called by the core only, for a device of driver `T` between the beginning of its
/// registration and the end of its unregistration.
pub(super) struct Ops<T>(PhantomData<T>);

impl<T: Driver> Ops<T> {
    const VTABLE: bindings::net_device_ops = bindings::net_device_ops {
        ndo_open: Some(Self::open),
        ndo_stop: Some(Self::stop),
        ndo_start_xmit: Some(Self::start_xmit),
        ndo_validate_addr: Some(bindings::eth_validate_addr),
        ndo_tx_timeout: Some(Self::tx_timeout),
        ndo_set_rx_mode_async: if_has!(T::HAS_SET_RX_MODE, Self::set_rx_mode),
        ndo_set_mac_address: if_has!(T::HAS_SET_MAC_ADDRESS, Self::set_mac_address),
        ndo_change_mtu: if_has!(
            T::HAS_CHANGE_MTU || T::OPS.exclusion.is_some(),
            Self::change_mtu
        ),
        ndo_fix_features: match T::OPS.netdev.ndo_fix_features {
            None => Some(Self::fix_features),
            of_driver => of_driver,
        },
        ndo_features_check: match T::OPS.netdev.ndo_features_check {
            None => Some(segments::check_features),
            of_driver => of_driver,
        },
        ndo_get_stats64: if_has!(T::HAS_GET_STATS64, Self::get_stats64),
        ..T::OPS.netdev
    };

    const STAT: Option<bindings::netdev_stat_ops> = T::OPS.stat;

    const QUEUE_MGMT: Option<bindings::netdev_queue_mgmt_ops> = T::OPS.queue_mgmt;

    /// The callbacks for the counters of queues, or null.
    pub(super) fn stat_ops() -> *const bindings::netdev_stat_ops {
        let ops: &'static Option<_> = &Self::STAT;
        ops.as_ref().map_or(ptr::null(), ptr::from_ref)
    }

    /// The callbacks for queue management, or null.
    pub(super) fn queue_mgmt_ops() -> *const bindings::netdev_queue_mgmt_ops {
        let ops: &'static Option<_> = &Self::QUEUE_MGMT;
        ops.as_ref().map_or(ptr::null(), ptr::from_ref)
    }

    pub(super) const fn vtable() -> &'static bindings::net_device_ops {
        &Self::VTABLE
    }

    /// # Safety
    ///
    /// See [`Ops`]. RTNL and the lock of the device's operations are held.
    unsafe extern "C" fn open(dev: *mut bindings::net_device) -> c_int {
        // SAFETY: The device is registered, and both locks are held.
        let (inner, mut locks) = unsafe { locked_rtnl::<T>(dev) };

        from_result(|| inner.go_up(&mut locks).map(|()| 0))
    }

    /// # Safety
    ///
    /// See [`Ops`]. RTNL and the lock of the device's operations are held.
    unsafe extern "C" fn stop(dev: *mut bindings::net_device) -> c_int {
        // SAFETY: The device is registered, and both locks are held.
        let (inner, mut locks) = unsafe { locked_rtnl::<T>(dev) };

        inner.go_down(&mut locks);
        0
    }

    /// # Safety
    ///
    /// See [`Ops`]. `skb` is ours, and bottom halves are disabled.
    unsafe extern "C" fn start_xmit(
        skb: *mut bindings::sk_buff,
        dev: *mut bindings::net_device,
    ) -> bindings::netdev_tx_t {
        // SAFETY: The device is registered.
        let (inner, dev) = unsafe { (inner::<T>(dev), Device::from_raw(dev)) };
        // SAFETY: The core gives us a valid packet, and with it its reference.
        let skb = unsafe { SkBuff::from_raw(NonNull::new_unchecked(skb)) };

        // SAFETY: This is `ndo_start_xmit()` of the device. The core disables bottom halves.
        unsafe { xmit::start_xmit::<T>(inner, dev, skb) }
    }

    /// # Safety
    ///
    /// See [`Ops`]. Called from the watchdog timer.
    unsafe extern "C" fn tx_timeout(dev: *mut bindings::net_device, queue: c_uint) {
        // SAFETY: The device is registered.
        let inner = unsafe { inner::<T>(dev) };

        // The device may be going away.
        if inner.check_reachable().is_err() {
            return;
        }
        if T::HAS_TX_TIMEOUT {
            // CAST: The number of queues is a `u16`.
            T::tx_timeout(inner.data(), inner.dev(), queue as u16);
        }

        inner.schedule_restart();
    }

    /// # Safety
    ///
    /// See [`Ops`]. RTNL is held, and both lists are valid until this returns.
    unsafe extern "C" fn set_rx_mode(
        dev: *mut bindings::net_device,
        unicast: *mut bindings::netdev_hw_addr_list,
        multicast: *mut bindings::netdev_hw_addr_list,
    ) -> c_int {
        // SAFETY: The device is registered. The lists are snapshots that the core made for us.
        // RTNL is held.
        let (inner, mode, mut rtnl) = unsafe {
            (
                inner::<T>(dev),
                RxMode::new((*dev).flags, unicast, multicast),
                Rtnl::assume_held(),
            )
        };

        inner.if_reachable(|| T::set_rx_mode(inner.data(), inner.dev(), &mode, &mut rtnl))
    }

    /// # Safety
    ///
    /// See [`Ops`]. RTNL is held, and `address` points to a `struct sockaddr`.
    unsafe extern "C" fn set_mac_address(
        dev: *mut bindings::net_device,
        address: *mut c_void,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The core gives us a valid `struct sockaddr`, whose data begins with the
            // address.
            let address = MacAddress::from(unsafe {
                (&raw const (*address.cast::<bindings::sockaddr>()).sa_data)
                    .cast::<[u8; MacAddress::LEN]>()
                    .read()
            });
            if !address.is_valid_unicast() {
                return Err(EADDRNOTAVAIL);
            }

            // SAFETY: The device is registered, and RTNL is held.
            let (inner, mut rtnl) = unsafe { (inner::<T>(dev), Rtnl::assume_held()) };
            inner.check_reachable()?;
            T::set_mac_address(inner.data(), inner.dev(), address, &mut rtnl)?;

            // SAFETY: RTNL is held.
            unsafe { bindings::eth_hw_addr_set(dev, address.octets().as_ptr()) };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See [`Ops`]. RTNL and the lock of the device's operations are held.
    unsafe extern "C" fn change_mtu(dev: *mut bindings::net_device, mtu: c_int) -> c_int {
        from_result(|| {
            // SAFETY: The device is registered, and both locks are held.
            let (inner, mut locks) = unsafe { locked_rtnl::<T>(dev) };
            let locks = &mut locks;

            inner.check_reachable()?;
            let old = inner.dev().mtu();
            let mtu = u32::try_from(mtu)?;
            inner.check_mtu(mtu, locks)?;
            let change = if T::HAS_CHANGE_MTU {
                T::change_mtu(inner.data(), inner.dev(), mtu, locks)?
            } else {
                MtuChange::Live
            };

            if change == MtuChange::Live || !inner.dev().is_running() {
                inner.dev().set_mtu(mtu, locks);
                return Ok(0);
            }

            let new = Attributes {
                mtu,
                ..Attributes::of(inner.dev())
            };
            inner.restart_or_undo(new, locks, |locks| {
                let _ = T::change_mtu(inner.data(), inner.dev(), old, locks);
            })?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See [`Ops`].
    unsafe extern "C" fn fix_features(
        dev: *mut bindings::net_device,
        features: bindings::netdev_features_t,
    ) -> bindings::netdev_features_t {
        // SAFETY: The device is registered, or has all that it needs to be.
        let inner = unsafe { inner::<T>(dev) };

        inner
            .without_excluded(Features::from_raw(features))
            .consistent()
            .0
    }

    /// # Safety
    ///
    /// See [`Ops`]. `stats` is valid for writing.
    unsafe extern "C" fn get_stats64(
        dev: *mut bindings::net_device,
        stats: *mut bindings::rtnl_link_stats64,
    ) {
        // SAFETY: The device is registered.
        let inner = unsafe { inner::<T>(dev) };
        // Until this is unlocked, the device is not suspended if it is not by now.
        let _guard = rcu::read_lock();
        let is_reachable = inner.check_reachable().is_ok();

        // SAFETY: The core gives us `stats`, zeroed.
        unsafe {
            Stats64::fill(stats, |stats| {
                T::get_stats64(inner.data(), stats, is_reachable);
            })
        };
    }
}
