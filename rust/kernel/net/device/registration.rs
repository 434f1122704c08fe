// SPDX-License-Identifier: GPL-2.0

//! Registration of network devices.

use super::{
    bus::{
        BusDevice,
        Parent, //
    },
    early::Early,
    ethtool::table::Ethtool,
    info::{
        Feature,
        Info, //
    },
    inner::{
        inner,
        Inner,
        WakeUp, //
    },
    ops::Ops,
    ops_lock::OpsCell,
    owned::OwnedDevice,
    rings::{
        Config,
        RingSizes, //
    },
    shared::Shared,
    slots,
    targets::Targets,
    tx_slot::TxSlot,
    wake_packets::WakePackets,
    Device,
    Driver,
    Rtnl, //
};

use crate::{
    bindings,
    driver::registrations,
    net::napi::Orphans,
    prelude::*,
    ptp_clock::PtpClock,
    sync::atomic::Atomic, //
};

use core::{
    cell::Cell,
    ptr, //
};

/// A `struct net_device` with an [`Inner`], registered or about to be.
///
/// In this order it ends (1 and 2), and is dropped:
///
/// 1. `unregister_netdev()` closes the device, which takes it down as `Up` describes, and waits
///    until all references to it are gone: from then on there are no callbacks.
/// 2. The work that restarts the device is cancelled, or waited for; the clock of the NIC is
///    unregistered.
/// 3. The bus resets a NIC that did not stop, and its memory is freed. If there is no reset, it is
///    lost. The reset is one of all NICs of the bus device, so they have ended before.
/// 4. [`Inner`] is dropped, and with it the driver's data: BAR, interrupt vectors.
/// 5. `free_netdev()`.
pub(super) struct Registration<T: Driver>(
    pub(super) OwnedDevice<Inner<T>>,
    /// The core was asked to register it, so it may have been up, even if that failed.
    Cell<bool>,
    /// The clock of the NIC, if it is registered.
    Cell<Option<&'static PtpClock>>,
);

// SAFETY: The driver's state in it is `Send`: `T::Data`, and in `Up`, `T::Poller` and `T::Tx`. The
// rest can be torn down from any task.
unsafe impl<T: Driver> Send for Registration<T> {}

impl<T: Driver> Drop for Registration<T> {
    fn drop(&mut self) {
        self.end();
        // Else it was never up, and has no operations to lock.
        if self.1.get() {
            self.inner().end_kept();
        }
    }
}

impl<T: Driver> Registration<T> {
    /// Unregisters the device, if it is registered.
    pub(super) fn end(&self) {
        if self.0.unregister() {
            self.inner().end_wake_up();
        }

        // SAFETY: The work was initialised. There are no callbacks any more, so it cannot be queued
        // again.
        unsafe { bindings::cancel_work_sync(self.inner().shared.restart.get()) };
        if let Some(clock) = self.2.take() {
            clock.unregister(self.0.as_raw().cast());
        }
    }

    /// The private part of the device.
    pub(super) fn inner(&self) -> &Inner<T> {
        // SAFETY: This is the type of the private part.
        unsafe { inner::<T>(self.0.as_raw()) }
    }

    /// Allocates a device, but does not register it.
    pub(super) fn new(
        bus: &'static T::Bus,
        info: &Info,
        data: impl PinInit<T::Data<'static>, Error>,
    ) -> Result<Self> {
        let queues = info.queues;
        let features = info.features.union(info.features_off).union(info.tunnels);
        if queues == 0
            || info.max_segmented_len < Info::MIN_SEGMENTED_LEN
            // The driver has to withdraw what the NIC cannot do with headers of that length.
            || info.tunnels.0 != 0 && T::OPS.netdev.ndo_features_check.is_none()
            // The core warns of this, as users could not say which VLANs are in use.
            || features.contains(Feature::VlanFilter) && T::OPS.netdev.ndo_vlan_rx_add_vid.is_none()
        {
            return Err(EINVAL);
        }

        OwnedDevice::new(c"eth%d", queues, |dev| {
            // SAFETY: The device is valid.
            let private = unsafe { bindings::netdev_priv(dev.as_ptr()) }.cast::<Inner<T>>();
            let mut slots = KVVec::with_capacity(usize::from(queues), GFP_KERNEL)?;

            for queue in 0..queues {
                // SAFETY: The device has that many queues.
                let queue = unsafe { slots::queue::<T>(private.cast::<Shared<T>>(), queue) };
                slots.push(TxSlot::new(queue), GFP_KERNEL)?;
            }

            let shared = try_pin_init!(Shared {
                dev,
                bus,
                slots,
                targets: Targets::new(T::OPS.complete_xdp.map_or(0, |_| queues))?,
                early_events: Early::new(),
                suspended: Atomic::new(false),
                wants_restart: Atomic::new(false),
                config: OpsCell::new(Config {
                    channels: info.default_queues.max(1).min(queues),
                    rings: RingSizes::default(T::OPS.rings),
                }),
                restart <- Shared::<T>::init_restart(),
                watchdog <- Shared::<T>::init_watchdog(),
                data <- data,
                orphans: Orphans::new()?,
            }? Error);
            Ok(try_pin_init!(Inner {
                shared <- shared,
                up: OpsCell::new(None),
                kept: OpsCell::new(None),
                statistics: OpsCell::new(None),
                wake_up: WakeUp {
                    can: info.wake,
                    wanted: OpsCell::new(WakePackets(info.default_wake.0 & info.wake.0)),
                },
            }? Error))
        })
        .map(|device| Self(device, Cell::new(false), Cell::new(None)))
    }

    /// Describes the device to the stack, and registers it.
    pub(super) fn register(&mut self, info: &Info) -> Result {
        let features = info.features.union(info.tunnels.with_partial());
        let mut flags = 0;

        if T::HAS_SET_RX_MODE {
            flags |= bindings::netdev_priv_flags_IFF_UNICAST_FLT;
        }
        if T::HAS_SET_MAC_ADDRESS {
            flags |= bindings::netdev_priv_flags_IFF_LIVE_ADDR_CHANGE;
        }
        if info.sender_fcs {
            flags |= bindings::netdev_priv_flags_IFF_SUPP_NOFCS;
        }

        let raw = self.0.as_raw();
        // SAFETY: The device is valid, as is its private part.
        let (inner, device) = unsafe { (inner::<T>(raw), Device::from_raw(raw)) };

        // SAFETY: As above, and the device is not visible to others yet.
        unsafe {
            let dev = &mut *raw;

            if let Some(parent) = inner.bus.as_device() {
                dev.dev.parent = parent.as_raw();
            }
            dev.stat_ops = Ops::<T>::stat_ops();
            dev.queue_mgmt_ops = Ops::<T>::queue_mgmt_ops();
            dev.netdev_ops = Ops::<T>::vtable();
            dev.ethtool_ops = Ethtool::<T>::vtable();
            dev.request_ops_lock = T::OPS_LOCK;
            dev.xdp_features = T::OPS.xdp_features;
            dev.xsk_tx_metadata_ops = T::OPS.xsk_tx_metadata.map_or(ptr::null(), ptr::from_ref);
            if T::OPS.max_xsk_parts != 0 {
                dev.xdp_zc_max_segs = T::OPS.max_xsk_parts;
            }
            dev.xdp_metadata_ops = T::OPS.xdp_hints.map_or(ptr::null(), ptr::from_ref);
            dev.features = features.0;
            dev.hw_features = features.union(info.features_off).0 & !(1 << Feature::HighDma as u32);
            dev.vlan_features = features.without_vlan().0;
            dev.mpls_features = features
                .for_labels(T::OPS.netdev.ndo_features_check.is_some())
                .0;
            dev.gso_partial_features = info.tunnels.0;
            if info.tunnels.0 != 0 {
                dev.hw_enc_features = dev.vlan_features;
            }
            dev.min_mtu = info.min_mtu;
            dev.max_mtu = info.max_mtu;
            // `msecs_to_jiffies()` takes longer times for none at all.
            c_int::try_from(info.tx_timeout_ms)?;
            dev.watchdog_timeo =
                c_int::try_from(crate::time::msecs_to_jiffies(info.tx_timeout_ms))?;
            bindings::netdev_add_priv_flags(raw, flags);
            bindings::netif_set_tso_max_size(raw, info.max_segmented_len);
        }
        for queue in 0..info.queues {
            // SAFETY: The device has that many transmit queues, and is not visible to others yet.
            unsafe {
                bindings::netdev_queue_set_dql_min_limit(
                    bindings::netdev_get_tx_queue(raw, queue.into()),
                    info.tx_limit_min.into(),
                )
            };
        }

        if info.mac_address.is_valid_unicast() {
            // SAFETY: The device is valid, and the address has `ETH_ALEN` bytes.
            unsafe { bindings::eth_hw_addr_set(raw, info.mac_address.octets().as_ptr()) };
        } else {
            // SAFETY: The device is valid.
            unsafe { bindings::eth_hw_addr_random(raw) };
        }

        // The driver has reset the NIC, so it knows of no memory. Another one of the same function
        // may be going down.
        Rtnl::with(|_| inner.bus.allow_dma());
        inner.begin_wake_up(info);

        // SAFETY: The device is valid.
        unsafe {
            if inner.queues() > 1 {
                bindings::netif_set_affinity_auto(raw);
            }
            bindings::netif_carrier_off(raw);
        }
        // Users find it by the device.
        if let Some(register_clock) = T::OPS.register_clock {
            // SAFETY: The device is one of this driver. `end()` unregisters the clock.
            match unsafe { register_clock(device) } {
                Ok(clock) => self.2.set(Some(clock)),
                Err(error) => {
                    inner.end_wake_up();
                    return Err(error);
                }
            }
        }
        self.1.set(true);
        // SAFETY: The callbacks are for this type of private part, which is complete.
        unsafe { self.0.register() }.inspect_err(|_| inner.end_wake_up())?;

        if let Some(clock) = self.2.get() {
            clock.schedule_worker(0);
        }
        if inner.queues() > 1 {
            device.spread_tx_queues(0..info.queues.into());
        }
        Ok(())
    }
}

/// Registers a network device of driver `T` for `bus`.
///
/// [`Driver::probe`] is called first. If this succeeds, the network device exists until `bus` is
/// unbound from its driver; if it is up then, it is taken down.
///
/// To be called when the driver of `bus` is probed. There, and in other callbacks of the bus, the
/// driver gets `bus` in the context [`Core`], which it cannot keep. When `bus` is unbound, the
/// network device goes away before the bus driver's private data is dropped, and before any
/// resource of the device is released, see [`registrations`].
///
/// [`Core`]: crate::device::Core
pub fn register<T>(bus: &<T::Bus as BusDevice>::Core<'_>, setup: T::Setup) -> Result
where
    T: Driver<Bus: BusDevice>,
{
    let bound: &T::Bus = bus;
    // SAFETY: The device is bound until its registrations have ended. Only the driver's callbacks
    // use the reference, and values that they have stored in parts of `Registration`. From the end
    // of this function on, that is one of these registrations; it is dropped if this function
    // fails.
    //
    // `'bound` of `Driver` stands for this time. Here it is called `'static`, since there is no
    // name for it. The driver cannot tell: its callbacks are generic in it.
    let bound: &'static T::Bus = unsafe { &*ptr::from_ref(bound) };

    let (info, data) = T::probe(bound, setup)?;
    let registration = Registration::<T>::new(bound, &info, data)?;
    registrations::add(T::Bus::as_core(bus), registration, |one| {
        one.register(&info)
    })
}
