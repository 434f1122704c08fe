// SPDX-License-Identifier: GPL-2.0

//! The part of a device's state that its queues and callbacks share.

use super::{
    early::Early,
    ops_lock::{
        Locks,
        OpsCell, //
    },
    rings::Config,
    targets::Targets,
    tx_slot::TxSlot,
    Device,
    Driver, //
};

use crate::{
    bindings,
    error::from_result,
    net::napi::Orphans,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    types::Opaque, //
};

use core::ptr::NonNull;

/// The state of a device that exists as long as the device, whether it is up or down.
///
/// # Invariants
///
/// - `dev` is the device at the beginning of whose private part this is, and `bus` its parent.
/// - `slots` has one entry per transmit queue of `dev`.
#[pin_data]
pub(super) struct Shared<T: Driver> {
    pub(super) dev: NonNull<bindings::net_device>,
    pub(super) bus: &'static T::Bus,
    pub(super) slots: KVVec<TxSlot<T>>,
    /// The rings for frames that XDP redirects to the device.
    pub(super) targets: Targets,
    /// Events that came before the NIC was started.
    pub(super) early_events: Early,
    /// The NIC must not be accessed: it sleeps, or is being reset. Changes with RTNL held, and is
    /// followed by a grace period of RCU.
    pub(super) suspended: Atomic<bool>,
    /// The settings with which the device goes up next.
    pub(super) config: OpsCell<'static, Config>,
    #[pin]
    pub(super) restart: Opaque<bindings::work_struct>,
    /// The device has not gone down since that work was scheduled.
    pub(super) wants_restart: Atomic<bool>,
    #[pin]
    pub(super) watchdog: Opaque<bindings::delayed_work>,
    #[pin]
    pub(super) data: T::Data<'static>,
    /// Objects of vectors that have gone away. Last, since the driver's data has handles to them.
    pub(super) orphans: Arc<Orphans>,
}

/// The shared part of a device's state.
///
/// # Safety
///
/// `dev` must be a device of driver `T` that has been registered, and not unregistered during `'a`.
#[inline]
pub(super) unsafe fn of<'a, T: Driver>(dev: *mut bindings::net_device) -> &'a Shared<T> {
    // SAFETY: By the safety requirements, this is at the beginning of the private part, see
    // `register()`.
    unsafe { &*bindings::netdev_priv(dev).cast_const().cast::<Shared<T>>() }
}

impl<T: Driver> Shared<T> {
    #[inline]
    pub(super) fn dev(&self) -> &Device {
        // SAFETY: By the type invariants, `dev` is valid and outlives `self`.
        unsafe { Device::from_raw(self.dev.as_ptr()) }
    }

    /// The number of queues of each kind that the device can have.
    pub(super) fn queues(&self) -> usize {
        self.slots.len()
    }

    /// Has the device restarted in the background.
    pub(super) fn schedule_restart(&self) {
        self.wants_restart.store(true, Relaxed);
        // SAFETY: The work is initialized. It is cancelled after the device has gone down for the
        // last time, and whatever calls this has ended with that.
        unsafe { bindings::schedule_work(self.restart.get()) };
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

    /// Fails if the NIC must not be accessed.
    ///
    /// The result remains true while RTNL or the lock of RCU readers is held; in a softirq as well.
    #[inline]
    pub(super) fn check_reachable(&self) -> Result {
        if self.suspended.load(Relaxed) {
            Err(ENODEV)
        } else {
            Ok(())
        }
    }

    /// Runs `f` if the NIC can be accessed. The result is one for C.
    pub(super) fn if_reachable(&self, f: impl FnOnce() -> Result) -> c_int {
        from_result(|| {
            self.check_reachable()?;
            f().map(|()| 0)
        })
    }

    /// Sets whether the device is suspended, and waits for callbacks that have read it before.
    pub(super) fn set_suspended(&self, suspended: bool, _locks: &mut Locks<'static>) {
        self.suspended.store(suspended, Relaxed);
        // SAFETY: We are in process context.
        unsafe { bindings::synchronize_net() };
    }
}
