// SPDX-License-Identifier: GPL-2.0

//! Registration of network devices.

use super::{
    attributes::Attributes,
    bus::{
        self,
        BusDevice,
        Parent, //
    },
    controls::WakeUp,
    early::Early,
    ethtool::Ethtool,
    info::{
        Counts,
        Feature,
        Info, //
    },
    open::{
        Reach,
        Spare,
        Up, //
    },
    ops::{
        self,
        Ops,
        Restart, //
    },
    ops_lock::{
        Configuring,
        OpsCell,
        OpsLocked, //
    },
    rings::{
        Config,
        RingLens, //
    },
    tx_slot::TxSlot,
    vector::Vector,
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
    sync::{
        atomic::Atomic,
        Arc, //
    },
    types::Opaque, //
};

use core::{
    marker::PhantomData,
    mem,
    ptr::{
        self,
        NonNull, //
    }, //
};

/// The private part of a network device.
///
/// When this is dropped, `up` is [`None`], since the device has been closed, and so is `kept`. Only
/// the driver's data is left.
///
/// # Invariants
///
/// - `dev` is the device that this is part of, and `bus` its parent.
/// - `slots` has one entry per transmit queue of `dev`.
#[pin_data]
pub(super) struct Inner<T: Driver> {
    dev: NonNull<bindings::net_device>,
    bus: &'static T::Bus,
    slots: KVec<TxSlot<T>>,
    /// The queues that the device can have.
    counts: Counts,
    up: OpsCell<'static, Option<Up<T>>>,
    /// The state that the device had when its card did not stop. Until the card was reset, it may
    /// access that memory, and the device does not go up.
    pub(super) kept: OpsCell<'static, Option<Up<T>>>,
    /// The card did not stop when the device went down.
    pub(super) stuck: OpsCell<'static, bool>,
    /// The card knows of memory that was freed, see [`bus::rely_on_no_access`].
    relies: OpsCell<'static, bool>,
    /// Events that came before the card was started.
    pub(super) early_events: Early,
    /// The card must not be accessed: it sleeps, or is being reset. Changes with RTNL held, and is
    /// followed by a grace period of RCU.
    pub(super) suspended: Atomic<bool>,
    /// The settings with which the device goes up next.
    pub(super) config: OpsCell<'static, Config>,
    /// The number of statistics for ethtool, once they have been counted: users of the callbacks
    /// allocate buffers of that size.
    pub(super) statistics: OpsCell<'static, Option<c_int>>,
    /// The packets that wake the machine.
    pub(super) wake_up: WakeUp,
    #[pin]
    pub(super) restart: Opaque<bindings::work_struct>,
    #[pin]
    data: T::Data<'static>,
    /// Objects of vectors that have gone away. Last, since the driver's data has handles to them.
    leftovers: Arc<Leftovers>,
}

impl<T: Driver> Inner<T> {
    #[inline]
    pub(super) fn dev(&self) -> &Device {
        // SAFETY: By the type invariants, `dev` is valid and outlives `self`.
        unsafe { Device::from_raw(self.dev.as_ptr()) }
    }

    pub(super) fn bus(&self) -> &'static T::Bus {
        self.bus
    }

    /// The number of transmit queues that the device can have.
    pub(super) fn queues(&self) -> usize {
        self.slots.len()
    }

    /// The queues that the device can have.
    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// The number of queue vectors with both kinds of queues that the device has when it is up.
    pub(super) fn channels(&self, lock: &OpsLocked<'static>) -> u16 {
        self.config.get(lock).channels
    }

    /// The lengths of the rings that the device has when it is up, for drivers with
    /// [`Driver::RINGS`].
    pub(super) fn rings(&self, lock: &OpsLocked<'static>) -> RingLens {
        self.config.get(lock).rings
    }

    pub(super) fn restart_work(&self) -> *mut bindings::work_struct {
        self.restart.get()
    }

    #[inline]
    pub(super) fn data(&self) -> Pin<&T::Data<'static>> {
        // SAFETY: `self` is part of a `struct net_device` and never moved.
        unsafe { Pin::new_unchecked(&self.data) }
    }

    /// The slot of a transmit queue, if the device has that many.
    #[inline]
    pub(super) fn slot(&self, index: u16) -> Option<&TxSlot<T>> {
        self.slots.get(usize::from(index))
    }

    /// Objects of vectors that have gone away.
    pub(super) fn leftovers(&self) -> &Arc<Leftovers> {
        &self.leftovers
    }

    /// Takes the device up. If it is up already, nothing happens.
    pub(super) fn go_up(&self, locks: &mut Configuring) -> Result {
        self.go_up_with(None, locks)
    }

    /// As [`Self::go_up`], with vectors that have been made before, if there are any.
    fn go_up_with(&self, spare: Option<Spare<T>>, locks: &mut Configuring) -> Result {
        self.check_reachable()?;
        if *self.stuck.get(locks.ops()) || self.kept.get(locks.ops()).is_some() {
            dev_err!(
                self.dev(),
                "the card did not stop; it has to be bound again\n"
            );
            return Err(EIO);
        }
        if bus::is_relied_on(self.bus_address(), locks) {
            dev_err!(
                self.dev(),
                "another card of the bus device did not stop; it has to be bound again\n"
            );
            return Err(EIO);
        }
        if self.up.get(locks.ops()).is_none() {
            let up = match spare {
                Some(spare) => spare.take_up(self, locks)?,
                None => Up::new(self, locks)?,
            };
            *self.up.get_mut(locks.ops_mut()) = Some(up);
        }
        Ok(())
    }

    /// Takes the device down if it is up.
    pub(super) fn go_down(&self, locks: &mut Configuring) {
        self.end_up(Reach::Card, locks);
    }

    /// As [`Self::go_down`], without access to the card if that cannot be reached.
    pub(super) fn end_up(&self, reach: Reach, locks: &mut Configuring) {
        if let Some(up) = self.up.get_mut(locks.ops_mut()).take() {
            up.end(self, reach, locks);
        }
    }

    /// Keeps a card that its driver could not stop from accessing memory. From then on, the device
    /// cannot go up: the addresses that the card holds are stale, and it must not access memory
    /// until it was reset.
    ///
    /// Returns whether it is certain that the card accesses none.
    pub(super) fn isolate(&self, error: Error, locks: &mut Configuring) -> bool {
        *self.stuck.get_mut(locks.ops_mut()) = true;
        let is_certain = self.forbid_dma(locks);

        if is_certain {
            dev_err!(
                self.dev(),
                "the card does not stop ({error:?}); it is kept from accessing memory\n"
            );
        } else {
            dev_err!(
                self.dev(),
                "the card does not stop ({error:?}); its rings are not freed before a reset\n"
            );
        }
        is_certain
    }

    /// Keeps a card from accessing memory that cannot be reached, other than by its configuration
    /// space. It will be reset before it is used again.
    ///
    /// Returns whether it is certain that the card does not.
    pub(super) fn cut_off(&self, locks: &mut Configuring) -> bool {
        let is_certain = self.forbid_dma(locks);

        if !is_certain {
            dev_err!(
                self.dev(),
                "the card cannot be reached; its rings are not freed before a reset\n"
            );
        }
        is_certain
    }

    /// The bus device, as a key.
    fn bus_address(&self) -> usize {
        ptr::from_ref(self.bus).addr()
    }

    /// Keeps a card from accessing memory until it was reset, as its rings and buffers are freed.
    ///
    /// Returns whether it is certain that it does not.
    fn forbid_dma(&self, locks: &mut Configuring) -> bool {
        // All virtual devices have the same parent, which is none.
        if !T::Bus::HAS_CARD {
            return true;
        }
        if !self.bus.forbid_dma() {
            return false;
        }
        if !*self.relies.get(locks.ops()) {
            if bus::rely_on_no_access(self.bus_address(), locks).is_err() {
                return false;
            }
            *self.relies.get_mut(locks.ops_mut()) = true;
        }
        true
    }

    /// Lets the card access memory, of which it knows none.
    ///
    /// The same bus device may have other network devices, with cards or parts of one that have not
    /// been reset yet. Then the last one of them does this.
    pub(super) fn allow_dma(&self, locks: &mut Configuring) {
        self.rely_no_more(locks);
        if !bus::is_relied_on(self.bus_address(), locks) {
            self.bus.allow_dma();
        }
    }

    fn rely_no_more(&self, locks: &mut Configuring) {
        if mem::take(self.relies.get_mut(locks.ops_mut())) {
            bus::rely_no_more(self.bus_address(), locks);
        }
    }

    /// Whether the device is up, other than as the core believes.
    pub(super) fn is_up(&self, locks: &Configuring) -> bool {
        self.up.get(locks.ops()).is_some()
    }

    /// The vector that serves a receive queue, if the device is up. It exists as long as the device
    /// stays up, which takes the lock to change.
    pub(super) fn rx_vector(
        &self,
        queue: u16,
        lock: &OpsLocked<'static>,
    ) -> Option<NonNull<Vector<T>>> {
        let mut vectors = self.up.get(lock).as_ref()?.vectors.iter();
        let vector = vectors.find(|vector| vector.queues().rx == Some(queue))?;

        Some(NonNull::from(&**vector))
    }

    /// Makes vectors for [`Self::restart_with`] and a device that will have these attributes. It
    /// need not be down.
    pub(super) fn make_spare(
        &self,
        attributes: Attributes,
        locks: &mut Configuring,
    ) -> Result<Spare<T>> {
        Spare::new(self, attributes, locks)
    }

    /// Takes a device that the core believes to be up down, and up again.
    pub(super) fn restart(&self, locks: &mut Configuring) -> Result {
        self.restart_with(None, locks)
    }

    /// As [`Self::restart`], with vectors that have been made before, if there are any.
    pub(super) fn restart_with(&self, spare: Option<Spare<T>>, locks: &mut Configuring) -> Result {
        self.go_down(locks);
        self.go_up_with(spare, locks)?;
        self.dev().refresh_rx_mode(locks);
        Ok(())
    }

    /// As [`Self::restart`], but if that fails, the device is closed.
    pub(super) fn restart_or_close(&self, locks: &mut Configuring) -> Result {
        self.restart(locks).inspect_err(|error| {
            dev_err!(
                self.dev(),
                "closed, since it cannot be restarted: {error:?}\n"
            );
            self.dev().close(locks);
        })
    }
}

/// A `struct net_device` with an [`Inner`], registered or about to be.
///
/// Drop order:
///
/// 1. `unregister_netdev()` closes the device, which takes it down as [`Up`] describes, and waits
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
                Up::lose_kept(self.inner(), locks);
            });
            self.inner().end_wake_up();
        }

        // SAFETY: By the type invariants, the private part is a valid `Inner<T>`. There are no
        // callbacks any more, and the work cannot be queued again.
        unsafe {
            let inner = bindings::netdev_priv(dev).cast::<Inner<T>>();

            bindings::cancel_work_sync((*inner).restart_work());
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
        unsafe { ops::inner::<T>(self.dev.as_ptr()) }
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
        // `Ops::features_check()`, which protects identifications, comes with the driver's.
        if info.tunnels.0 != 0 && !T::HAS_FEATURES_CHECK {
            return Err(EINVAL);
        }
        // The core warns of this, as users could not say which VLANs are in use.
        let features = info.features.union(info.features_off).union(info.tunnels);
        if features.contains(Feature::VlanFilter) && !T::HAS_SET_VLAN {
            return Err(EINVAL);
        }
        let counts = Counts::new(info)?;
        let (tx, rx) = (counts.tx(), counts.rx());
        // CAST: Checked above.
        let size = size_of::<Inner<T>>() as c_int;

        // SAFETY: `alloc_etherdev_mqs()` has no requirements.
        let dev = unsafe { bindings::alloc_etherdev_mqs(size, tx.into(), rx.into()) };
        let dev = Allocated(NonNull::new(dev).ok_or(ENOMEM)?);

        // SAFETY: The device is valid.
        let private = unsafe { bindings::netdev_priv(dev.0.as_ptr()) }.cast::<Inner<T>>();
        let mut slots = KVec::with_capacity(usize::from(tx), GFP_KERNEL)?;
        for queue in 0..tx {
            slots.push(TxSlot::new(private, queue), GFP_KERNEL)?;
        }

        let inner = try_pin_init!(Inner {
            dev: dev.0,
            bus,
            slots,
            counts,
            up: OpsCell::new(None),
            kept: OpsCell::new(None),
            stuck: OpsCell::new(false),
            relies: OpsCell::new(false),
            early_events: Early::new(),
            suspended: Atomic::new(false),
            config: OpsCell::new(Config {
                channels: counts.at_first(info),
                rings: RingLens::at_first(T::RINGS),
            }),
            statistics: OpsCell::new(None),
            wake_up: WakeUp::new(info),
            restart <- Restart::<T>::init(),
            data <- data,
            leftovers: Leftovers::new()?,
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
        let (inner, device) = unsafe { (ops::inner::<T>(raw), Device::from_raw(raw)) };

        // SAFETY: As above, and the device is not visible to others yet.
        unsafe {
            let dev = &mut *raw;

            if let Some(parent) = inner.bus.as_device() {
                dev.dev.parent = parent.as_raw();
            }
            dev.stat_ops = Ethtool::<T>::stat_ops();
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
        for queue in 0..inner.counts.tx() {
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
            if bus::is_relied_on(inner.bus_address(), &rtnl) {
                dev_err!(
                    device,
                    "another card of the bus device did not stop; it has to be bound again\n"
                );
                return Err(EIO);
            }
            inner.bus.allow_dma();
        }
        inner.begin_wake_up(info);

        // SAFETY: The device is valid. From here on there may be callbacks; the private part is
        // complete.
        unsafe {
            if inner.counts.are_configured() {
                bindings::netif_set_affinity_auto(raw);
            }
            bindings::netif_carrier_off(raw);
            to_result(bindings::register_netdev(raw)).inspect_err(|_| inner.end_wake_up())?;
        }

        // INVARIANT: The device is registered.
        self.registered = true;

        if inner.queues() > 1 {
            device.spread_tx_queues(0..inner.counts.tx().into());
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
