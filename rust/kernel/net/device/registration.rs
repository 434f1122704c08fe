// SPDX-License-Identifier: GPL-2.0

//! Registration of network devices.

use super::{
    bus::{
        BusDevice,
        Parent, //
    },
    checkup::CheckUps,
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
    ops_lock::{
        Configuring,
        OpsCell, //
    },
    restart::Restart,
    rings::{
        Config,
        RingLens, //
    },
    shared::Shared,
    slots,
    tx_slot::TxSlot,
    Device,
    Driver,
    Rtnl, //
};

use crate::{
    bindings,
    driver::registrations,
    error::to_result,
    net::napi::Leftovers,
    prelude::*,
    sync::atomic::Atomic, //
};

use core::{
    marker::PhantomData,
    mem,
    ptr::{
        self,
        NonNull, //
    }, //
};

/// A `struct net_device` with an [`Inner`], registered or about to be.
///
/// Drop order:
///
/// 1. `unregister_netdev()` closes the device, which takes it down as `Up` describes, and waits
///    until all references to it are gone: from then on there are no callbacks.
/// 2. The work that restarts the device is cancelled, or waited for.
/// 3. [`Inner`] is dropped, and with it the driver's data: BAR, interrupt vectors. Memory that the
///    card may still access is lost.
/// 4. `free_netdev()`.
///
/// # Invariants
///
/// `dev` is a network device that we own, whose private part is a valid `Inner<T>`. It is
/// registered if `registered`.
pub(super) struct Registration<T: Driver> {
    pub(super) dev: NonNull<bindings::net_device>,
    registered: bool,
    _inner: PhantomData<Inner<T>>,
}

// SAFETY: The driver's state in it is `Send`: `T::Data`, and in `Up`, `T::Poller` and `T::Tx`. The
// rest can be torn down from any task.
unsafe impl<T: Driver> Send for Registration<T> {}

impl<T: Driver> Drop for Registration<T> {
    fn drop(&mut self) {
        let dev = self.dev.as_ptr();

        // One that is not was never up. Nor does it take RTNL: any safe code can drop it.
        if self.registered {
            // SAFETY: By the type invariants, the device is registered.
            unsafe { bindings::unregister_netdev(dev) };
            Configuring::with(self.inner().dev(), |locks| {
                // Before the card can access memory again, a driver resets it.
                self.inner().rely_no_more(locks);
                self.inner().lose_kept(locks);
            });
            self.inner().end_wake_up();
        }

        // SAFETY: By the type invariants, the private part is a valid `Inner<T>`. There are no
        // callbacks any more, and the work cannot be queued again.
        unsafe {
            let inner = bindings::netdev_priv(dev).cast::<Inner<T>>();

            bindings::cancel_work_sync((*inner).shared.restart.get());
            ptr::drop_in_place(inner);
            bindings::free_netdev(dev);
        }
    }
}

/// An allocated network device without a private part.
struct Allocated(NonNull<bindings::net_device>);

impl Drop for Allocated {
    fn drop(&mut self) {
        // SAFETY: We own the device, and it has not been registered.
        unsafe { bindings::free_netdev(self.0.as_ptr()) };
    }
}

impl<T: Driver> Registration<T> {
    /// The private part of the device.
    pub(super) fn inner(&self) -> &Inner<T> {
        // SAFETY: By the type invariants.
        unsafe { inner::<T>(self.dev.as_ptr()) }
    }

    /// Allocates a device, but does not register it.
    pub(super) fn new(
        bus: &'static T::Bus,
        info: &Info,
        data: impl PinInit<T::Data<'static>, Error>,
    ) -> Result<Self> {
        const {
            // C allocates the private part behind a `struct net_device`.
            assert!(align_of::<Inner<T>>() <= align_of::<bindings::net_device>());
            assert!(size_of::<Inner<T>>() <= i32::MAX as usize);
        }

        if info.max_segmented_len < Info::MIN_SEGMENTED_LEN {
            return Err(EINVAL);
        }
        // The callback, which protects identifications, comes with the driver's.
        if info.tunnels.0 != 0 && T::OPS.netdev.ndo_features_check.is_none() {
            return Err(EINVAL);
        }
        // The core warns of this, as users could not say which VLANs are in use.
        let features = info.features.union(info.features_off).union(info.tunnels);
        if features.contains(Feature::VlanFilter) && T::OPS.netdev.ndo_vlan_rx_add_vid.is_none() {
            return Err(EINVAL);
        }
        let queues = info.queues;
        if queues == 0 {
            return Err(EINVAL);
        }
        // CAST: Checked above.
        let size = size_of::<Inner<T>>() as c_int;

        // SAFETY: `alloc_etherdev_mqs()` has no requirements.
        let dev = unsafe { bindings::alloc_etherdev_mqs(size, queues.into(), queues.into()) };
        let dev = Allocated(NonNull::new(dev).ok_or(ENOMEM)?);

        // SAFETY: The device is valid.
        let private = unsafe { bindings::netdev_priv(dev.0.as_ptr()) }.cast::<Inner<T>>();
        let mut slots = KVec::with_capacity(usize::from(queues), GFP_KERNEL)?;
        for queue in 0..queues {
            // SAFETY: The device has that many queues.
            let queue = unsafe { slots::queue::<T>(private.cast::<Shared<T>>(), queue) };
            slots.push(TxSlot::new(queue), GFP_KERNEL)?;
        }

        let shared = try_pin_init!(Shared {
            dev: dev.0,
            bus,
            slots,
            stuck: OpsCell::new(false),
            relies: OpsCell::new(false),
            early_events: Early::new(),
            suspended: Atomic::new(false),
            config: OpsCell::new(Config {
                channels: info.queues_at_first.clamp(1, queues),
                rings: RingLens::at_first(T::OPS.rings),
            }),
            restart <- Restart::<T>::init(),
            check_ups <- CheckUps::<T>::init(),
            data <- data,
            leftovers: Leftovers::new()?,
        }? Error);
        let inner = try_pin_init!(Inner {
            shared <- shared,
            up: OpsCell::new(None),
            kept: OpsCell::new(None),
            statistics: OpsCell::new(None),
            wake_up: WakeUp::new(info.wake, info.wake_at_first),
        }? Error);

        // SAFETY: The private part of a device has room for an `Inner<T>`, at the right alignment,
        // and it is not moved. If this fails, there is nothing to drop.
        unsafe { pin_init::raw_try_init(private, inner)? };

        // INVARIANT: We take over the device, and its private part is valid.
        Ok(Self {
            dev: mem::ManuallyDrop::new(dev).0,
            registered: false,
            _inner: PhantomData,
        })
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

        let raw = self.dev.as_ptr();
        // SAFETY: By the type invariants, the device is valid, as is its private part.
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
            dev.features = features.0;
            dev.hw_features = features.union(info.features_off).0 & !(1 << Feature::HighDma as u32);
            dev.vlan_features = features.without_vlan().0;
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

        {
            let rtnl = Rtnl::lock();

            // The driver has reset the card, so it knows of no memory. That of another network
            // device may.
            inner.check_bus(&rtnl)?;
            inner.bus.allow_dma();
        }
        inner.begin_wake_up(info);

        // SAFETY: The device is valid. From here on there may be callbacks; the private part is
        // complete.
        unsafe {
            if inner.queues() > 1 {
                bindings::netif_set_affinity_auto(raw);
            }
            bindings::netif_carrier_off(raw);
            to_result(bindings::register_netdev(raw)).inspect_err(|_| inner.end_wake_up())?;
        }

        // INVARIANT: The device is registered.
        self.registered = true;

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
    let mut registration = Registration::<T>::new(bound, &info, data)?;
    registration.register(&info)?;
    registrations::add(T::Bus::as_core(bus), registration)
}
