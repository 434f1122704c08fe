// SPDX-License-Identifier: GPL-2.0

//! Queue vectors: an interrupt, the NAPI instance that it schedules, and the state of its poll
//! function.
//!
//! A vector goes in process context, with RTNL and the lock of the device's operations held, while
//! its instance is disabled. When, and what is dropped:
//!
//! - The NIC was stopped, or has been reset since: the vector is dropped. In this order go the
//!   interrupts, which waits for their handlers; the poller, or `closed()` gets it; the objects of
//!   the instance; the instance. Objects to which the driver has handles that need no instance
//!   stay, see `napi::Orphans`.
//! - The NIC did not stop: [`Vector::detach`]. The interrupts go, objects that are no DMA memory,
//!   and the instance, for the core. The poller and the other objects stay.
//! - The device goes away, and there was no reset: as before, then the poller, which may borrow
//!   from the device. The objects are leaked.
//! - Vectors for other rings of a device that stays up could not all be made: as in the first
//!   case, but `closed()` gets nothing, as the poller never ran.
//! - A queue gets other memory: the objects of the old memory go, with NAPI disabled, RTNL maybe
//!   not held. The vector stays.

use super::{
    early::Early,
    gate::{
        Entered,
        Gate, //
    },
    interrupt::{
        Interrupt,
        Interrupts, //
    },
    ops_lock::Locks,
    Device, //
};

use crate::{
    bindings,
    net::napi::{
        Napi, //
        Orphans,
    },
    prelude::*,
    sync::Arc, //
};

use core::{
    cell::{
        Cell,
        UnsafeCell, //
    },
    marker::PhantomPinned,
    ptr::NonNull, //
};

/// The poll function of a vector, which the core calls with its NAPI instance.
pub(super) type PollFn = unsafe extern "C" fn(*mut bindings::napi_struct, c_int) -> c_int;

/// A queue vector, with a poller of type `P`.
///
/// It may be dropped when NAPI is disabled and the NIC is quiet, or was reset since. It goes away
/// in this order: the interrupt is freed, so nothing schedules NAPI any more; the poller is
/// dropped, and with it rings and buffers; the other objects that belong to the NAPI instance are
/// dropped; the NAPI instance is deleted, which waits for readers that may still look at it; then
/// the memory is freed.
///
/// # Invariants
///
/// - `napi` has been added to `dev`, which outlives `self`.
/// - `poller` is accessed by the poll function of `napi` only, while NAPI is enabled, and by the
///   owner of `self` only, while it is not. `has_run`, `paused` and `rx_lost` are for the latter.
/// - Those of `interrupts` that are requested are so with `self` as their cookie.
/// - The device has a queue of each kind of number `index`, which belong to no other vector in
///   which NAPI is enabled at the same time.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub(super) struct Vector<P> {
    // First, so that a pointer to the instance is a pointer to the vector.
    #[pin]
    napi: Napi,
    dev: NonNull<bindings::net_device>,
    /// The number of the vector, and of its queues.
    pub(super) index: u16,
    gate: Gate,
    /// NAPI has been enabled at some time, so the driver may have polled.
    has_run: Cell<bool>,
    /// Until it is over, the poll function of the driver is not called.
    pub(super) early: Early,
    poller: UnsafeCell<Option<P>>,
    /// NAPI is disabled for a while, with the lock of the device's operations held.
    paused: Cell<bool>,
    /// The NIC may access memory of the receive queue other than that in the poller.
    pub(super) rx_lost: Cell<bool>,
    interrupts: Interrupts,
    #[pin]
    _pin: PhantomPinned,
}

impl<P> Vector<P> {
    /// Runs `f` with the device's instance lock held, which functions of NAPI need, whichever lock
    /// its operations have.
    ///
    /// # Safety
    ///
    /// The lock of the device's operations must be held.
    unsafe fn with_instance_lock<R>(dev: *mut bindings::net_device, f: impl FnOnce() -> R) -> R {
        // SAFETY: By the safety requirements.
        unsafe { bindings::netdev_lock_ops_to_full(dev) };
        let result = f();
        // SAFETY: Locked above, unless it was held.
        unsafe { bindings::netdev_unlock_full_to_ops(dev) };
        result
    }

    /// Creates a vector, whose NAPI instance is disabled and whose interrupt is not requested.
    ///
    /// # Safety
    ///
    /// `dev` must outlive the vector. It must have queues of number `index`, and no other vector
    /// with one of them in which NAPI is enabled at the same time. `poll` must be for vectors with
    /// such a poller of such a device.
    pub(super) unsafe fn new(
        dev: &Device,
        orphans: Arc<Orphans>,
        poll: PollFn,
        index: u16,
        interrupts: Interrupts,
        _locks: &mut Locks<'static>,
    ) -> Result<Pin<KBox<Self>>> {
        let dev = NonNull::from(dev).cast::<bindings::net_device>();

        KBox::pin_init(
            try_pin_init!(Self {
                napi <- Napi::new(orphans),
                dev,
                index,
                gate: Gate::new(),
                has_run: Cell::new(false),
                early: Early::new(),
                poller: UnsafeCell::new(None),
                paused: Cell::new(false),
                rx_lost: Cell::new(false),
                interrupts,
                _pin: PhantomPinned,
                _: {
                    let (dev, napi) = (dev.as_ptr(), napi.as_ref().get_ref().as_raw());

                    // SAFETY: The device is valid, and has queues of this number. The instance is
                    // pinned, and deleted when the vector is dropped. If that happens before there
                    // is a poller, it is not called: the instance is disabled. The lock of the
                    // device's operations is held.
                    unsafe {
                        Self::with_instance_lock(dev, || {
                            bindings::netif_napi_add_config_locked(
                                dev,
                                napi,
                                Some(poll),
                                c_int::from(*index),
                            )
                        })
                    };
                },
            }? Error),
            GFP_KERNEL,
        )
    }

    pub(super) fn napi(&self) -> &Napi {
        &self.napi
    }

    /// Gives the vector its poller.
    ///
    /// # Safety
    ///
    /// NAPI must not have been enabled.
    pub(super) unsafe fn set_poller(&self, poller: P) {
        // SAFETY: By the type invariants, this is the only access to `poller`, since NAPI is not
        // enabled.
        unsafe { *self.poller.get() = Some(poller) };
    }

    /// The device.
    pub(super) fn dev(&self) -> *mut bindings::net_device {
        self.dev.as_ptr()
    }

    /// Its interrupt, or the first one of them.
    pub(super) fn interrupt(&self) -> Option<&Interrupt> {
        self.interrupts.iter().flatten().next()
    }

    /// Frees the interrupts, if there are any. They must not be requested again.
    pub(super) fn free_irq(&self) {
        if self.interrupt().is_none() {
            return;
        }

        // SAFETY: `napi` has been added to a device, the lock of whose operations is held: vectors
        // are dropped when the device goes down.
        unsafe {
            Self::with_instance_lock(self.dev(), || {
                bindings::netif_napi_set_irq_locked(self.napi.as_raw(), -1)
            })
        };
        for interrupt in self.interrupts.iter().flatten() {
            // SAFETY: By the type invariants.
            unsafe { interrupt.free(self.napi.as_raw().cast()) };
        }
    }

    /// Takes a vector away from its device, but frees nothing that the NIC may access: neither
    /// the poller nor the objects and mappings of the NAPI instance. That is done when it is
    /// dropped.
    ///
    /// # Safety
    ///
    /// NAPI must not be enabled any more.
    pub(super) unsafe fn detach(&self, _locks: &mut Locks<'static>) {
        self.free_irq();
        // A scheduler of the instance can be bound to the next one.
        self.napi.drop_if(|_of, object| !object.is_dma_memory());
        // SAFETY: The instance was added by `new()`. Its memory stays, as its objects use it.
        unsafe { self.call_napi(bindings::netif_napi_del_locked) };
    }

    /// Calls a function of the NAPI instance with the instance lock held.
    ///
    /// # Safety
    ///
    /// The lock of the device's operations must be held, and the instance be as `f` needs it.
    unsafe fn call_napi(&self, f: unsafe extern "C" fn(*mut bindings::napi_struct)) {
        // SAFETY: By the type invariants, the instance has been added. The rest as above.
        unsafe { Self::with_instance_lock(self.dev(), || f(self.napi.as_raw())) };
    }

    /// Enables NAPI.
    ///
    /// # Safety
    ///
    /// To be called at most once, and to be followed by [`Self::disable`] before the vector is
    /// dropped.
    pub(super) unsafe fn enable(&self, _locks: &mut Locks<'static>) {
        let napi = self.napi.as_raw();

        self.has_run.set(true);
        // SAFETY: The instance is valid and has not been enabled. The lock of the device's
        // operations is held.
        unsafe {
            self.link(napi);
            self.call_napi(bindings::napi_enable_locked);
        }
    }

    /// Disables NAPI: waits until it is not being polled, and it will not be.
    ///
    /// # Safety
    ///
    /// NAPI must have been enabled, and this must be called once.
    pub(super) unsafe fn disable(&self, _locks: &mut Locks<'static>) {
        // SAFETY: The instance is valid and enabled, unless it is paused. The lock of the device's
        // operations is held.
        unsafe {
            if !self.paused.replace(false) {
                self.call_napi(bindings::napi_disable_locked);
            }
            self.link(core::ptr::null_mut());
        }
    }

    /// Disables NAPI for a while, and lends the poller: until [`Self::resume`], the poll function
    /// does not use it. The queues stay linked to the instance.
    ///
    /// # Safety
    ///
    /// NAPI must have been enabled, or have been paused before. The lock of the device's operations
    /// must be held, and there must be no reference to the poller.
    pub(super) unsafe fn pause(&self) -> Option<NonNull<P>> {
        if !self.paused.replace(true) {
            // SAFETY: The instance is valid and enabled. The lock of the device's operations is
            // held.
            unsafe { self.call_napi(bindings::napi_disable_locked) };
        }

        // SAFETY: NAPI is disabled, and we are the owner of the vector. By the safety requirements,
        // this is the only reference, and it ends here.
        unsafe { (*self.poller.get()).as_mut() }.map(NonNull::from)
    }

    /// Enables NAPI again after [`Self::pause`], and has the driver poll: interrupts that came
    /// meanwhile were not handled, and are off.
    ///
    /// # Safety
    ///
    /// The lock of the device's operations must be held, and the poller not be used any more.
    pub(super) unsafe fn resume(&self) {
        if !self.paused.replace(false) {
            return;
        }

        // SAFETY: The instance is valid, and was enabled before.
        unsafe {
            self.call_napi(bindings::napi_enable_locked);
            self.schedule();
        }
    }

    /// Has the instance polled. Process context: enabling bottom halves does.
    ///
    /// # Safety
    ///
    /// The instance must be enabled.
    unsafe fn schedule(&self) {
        // SAFETY: By the safety requirements.
        unsafe {
            bindings::local_bh_disable();
            bindings::napi_schedule(self.napi.as_raw());
            bindings::local_bh_enable();
        }
    }

    /// Tells the core which instance serves the queues of the vector.
    ///
    /// # Safety
    ///
    /// The lock of the device's operations must be held.
    unsafe fn link(&self, napi: *mut bindings::napi_struct) {
        let dev = self.dev();
        let rx = bindings::netdev_queue_type_NETDEV_QUEUE_TYPE_RX;
        let tx = bindings::netdev_queue_type_NETDEV_QUEUE_TYPE_TX;

        for kind in [rx, tx] {
            // SAFETY: By the type invariants and the safety requirements.
            unsafe { bindings::netif_queue_set_napi(dev, self.index.into(), kind, napi) };
        }
    }

    /// Lets the poll function of the driver be called: its NIC has been started.
    ///
    /// # Safety
    ///
    /// NAPI must be enabled.
    pub(super) unsafe fn started(&self) {
        if self.early.end() {
            // SAFETY: The instance is valid and enabled. If it is still being completed, it is
            // polled once more.
            unsafe { self.schedule() };
        }
    }

    /// Requests the interrupts, if there are any, and tells the core of the first one.
    pub(super) fn request_irqs(self: Pin<&Self>, _locks: &mut Locks<'static>) -> Result {
        for interrupt in self.interrupts.iter().flatten() {
            // SAFETY: It is ours, and freed when the vector is dropped.
            unsafe { interrupt.request(self.napi.as_raw())? };
        }

        // The core watches and restores the affinity of an interrupt that it knows of. There is one
        // watcher for each interrupt, and none may be left when that is freed. So this is for an
        // interrupt that nobody else has, which is certain now.
        if let Some(interrupt) = self.interrupt() {
            // SAFETY: The instance is valid, and the lock of the device's operations is held. The
            // link to the interrupt is cut before that is freed, in `free_irq()`.
            unsafe {
                Self::with_instance_lock(self.dev(), || self.set_irq(interrupt.irq));
            }
        }
        Ok(())
    }

    /// Tells the core of an interrupt, and restores its affinity: the core does so when an instance
    /// is enabled, but the interrupt has been requested after that.
    ///
    /// # Safety
    ///
    /// The instance lock must be held, and the interrupt be requested.
    unsafe fn set_irq(&self, irq: u32) {
        let (dev, napi) = (self.dev(), self.napi.as_raw());

        // SAFETY: By the safety requirements and the type invariants. An instance with a notifier
        // has a configuration.
        unsafe {
            // CAST: The core's type for the same number.
            bindings::netif_napi_set_irq_locked(napi, irq as c_int);
            let state = (&raw const (*napi).state).read_volatile();
            let is_watched = state & 1 << bindings::NAPI_STATE_HAS_NOTIFIER != 0;
            if (*dev).irq_affinity_auto && is_watched {
                let mask = &raw const (*(*napi).config).affinity_mask;
                let _ = bindings::irq_set_affinity(irq, mask);
            }
        }
    }

    /// Lets the poll function through, unless it runs already: then this is netpoll, and gets
    /// [`None`]. It has the poller as long as it keeps the first result.
    ///
    /// # Safety
    ///
    /// To be called by the poll function of `self`, which the core called with `budget`. The poller
    /// must not be used after the first result is dropped.
    #[inline]
    #[expect(clippy::mut_from_ref)]
    pub(super) unsafe fn enter(&self, budget: c_int) -> Option<(Entered<'_>, &mut Option<P>)> {
        let entered = self.gate.enter(budget)?;

        // SAFETY: This is the poll function, and the only one: the core does not call it on two
        // CPUs, and the gate stops a second call by netpoll. NAPI is enabled, or it would not have
        // been called.
        Some((entered, unsafe { &mut *self.poller.get() }))
    }

    /// Takes the poller out.
    ///
    /// # Safety
    ///
    /// NAPI must not be enabled, and not be again.
    pub(super) unsafe fn take_poller(&self) -> Option<P> {
        // SAFETY: By the type invariants and the safety requirements, this is the only access to
        // the poller, which is not pinned.
        unsafe { (*self.poller.get()).take() }
    }

    /// As [`Self::take_poller`], of a vector that has been enabled at some time: the driver may
    /// have polled.
    ///
    /// # Safety
    ///
    /// As there.
    pub(super) unsafe fn take_used_poller(&self) -> Option<P> {
        if !self.has_run.get() {
            return None;
        }
        // SAFETY: By the safety requirements.
        unsafe { self.take_poller() }
    }

    /// Completes the NAPI instance without a call of the driver. Returns the work done.
    #[cold]
    pub(super) fn complete_early(&self, budget: c_int) -> c_int {
        if budget > 0 {
            // SAFETY: `napi` is being polled by us. [`Self::started`] has it polled again.
            unsafe { bindings::napi_complete_done(self.napi.as_raw(), 0) };
        }
        0
    }
}

#[pinned_drop]
impl<P> PinnedDrop for Vector<P> {
    fn drop(self: Pin<&mut Self>) {
        self.free_irq();

        // SAFETY: NAPI is not enabled any more.
        drop(unsafe { self.take_poller() });
        self.napi.drop_if(|_of, _object| true);

        // SAFETY: `napi` is disabled, and is dropped with the lock of the device's operations held.
        // This waits until it has no users. After `detach()` it is not listed any more: then this
        // does nothing else.
        unsafe { self.call_napi(bindings::netif_napi_del_locked) };
    }
}
