// SPDX-License-Identifier: GPL-2.0

//! The private part of a network device: going up and down.

use super::{
    bus::Parent,
    ops_lock::{
        Locks,
        OpsCell,
        OpsLocked, //
    },
    poll::VectorOf,
    shared::Shared,
    up::{
        BusIo,
        Outcome,
        SpareVectors,
        Up, //
    },
    wake_packets::WakePackets,
    Driver, //
};

use crate::{
    bindings,
    prelude::*,
    sync::atomic::Relaxed, //
};

use core::{
    ops::Deref,
    ptr::NonNull, //
};

/// The packets by which the NIC of a device is to wake the machine.
pub(super) struct WakeUp {
    /// The kinds that the NIC knows.
    pub(super) can: WakePackets,
    /// Those that users have chosen, or the default of the driver.
    pub(super) wanted: OpsCell<'static, WakePackets>,
}

/// The private part of a network device.
///
/// When this is dropped, `up` is [`None`], since the device has been closed, and so is `kept`. Only
/// the driver's data is left.
#[pin_data]
#[repr(C)]
pub(super) struct Inner<T: Driver> {
    // First, where `shared::of()` finds it.
    #[pin]
    pub(super) shared: Shared<T>,
    pub(super) up: OpsCell<'static, Option<Up<T>>>,
    /// The state that the device had when its NIC did not stop. Until the NIC was reset, it may
    /// access that memory, and the device does not go up.
    pub(super) kept: OpsCell<'static, Option<Up<T>>>,
    /// The number of statistics for ethtool, once they have been counted: users of the callbacks
    /// allocate buffers of that size.
    pub(super) statistics: OpsCell<'static, Option<c_int>>,
    /// The packets that wake the machine.
    pub(super) wake_up: WakeUp,
}

impl<T: Driver> Deref for Inner<T> {
    type Target = Shared<T>;

    #[inline]
    fn deref(&self) -> &Shared<T> {
        &self.shared
    }
}

/// The private part of a device.
///
/// # Safety
///
/// `dev` must be a device of driver `T` that has been registered, and not unregistered during `'a`.
#[inline]
pub(super) unsafe fn inner<'a, T: Driver>(dev: *mut bindings::net_device) -> &'a Inner<T> {
    // SAFETY: By the safety requirements, this is the type of the private part, see `register()`.
    unsafe { &*bindings::netdev_priv(dev).cast_const().cast::<Inner<T>>() }
}

/// The private part of a device whose operations' lock is held, and the token of that.
///
/// # Safety
///
/// As for [`inner`], and for [`OpsLocked::assume_held`].
#[inline]
pub(super) unsafe fn locked<'a, T: Driver>(
    dev: *mut bindings::net_device,
) -> (&'a Inner<T>, OpsLocked<'static>) {
    // SAFETY: By the safety requirements.
    let inner = unsafe { inner::<T>(dev) };
    // SAFETY: As above.
    let lock = unsafe { OpsLocked::assume_held(inner.dev()) };

    (inner, lock)
}

/// The private part of a device that can be configured: RTNL and its operations' lock are held.
///
/// # Safety
///
/// As for [`inner`], and for [`Locks::assume_held`].
#[inline]
pub(super) unsafe fn locked_rtnl<'a, T: Driver>(
    dev: *mut bindings::net_device,
) -> (&'a Inner<T>, Locks<'static>) {
    // SAFETY: By the safety requirements.
    let inner = unsafe { inner::<T>(dev) };
    // SAFETY: As above.
    let locks = unsafe { Locks::assume_held(inner.dev()) };

    (inner, locks)
}

impl<T: Driver> Inner<T> {
    /// Takes the device up. If it is up already, nothing happens.
    pub(super) fn go_up(&self, locks: &mut Locks<'static>) -> Result {
        self.go_up_with(None, locks)
    }

    /// As [`Self::go_up`], with vectors that have been made before, if there are any.
    fn go_up_with(&self, spare: Option<SpareVectors<T>>, locks: &mut Locks<'static>) -> Result {
        self.check_reachable()?;
        if self.is_stuck(locks) {
            crate::netdev_err!(
                self.dev(),
                "NIC was not reset; unbind and rebind the device\n"
            );
            return Err(EIO);
        }
        if self.up.get(locks.ops()).is_none() {
            // Another NIC on this bus device may not have stopped, which has disabled DMA.
            self.bus.allow_dma();
            let up = match spare {
                Some(spare) => spare.take_up(self, locks),
                None => Up::from_down(self, locks),
            };
            match up {
                Outcome::Up(up) => *self.up.get_mut(locks.ops_mut()) = Some(up),
                Outcome::Down(error) => return Err(error),
                Outcome::Stuck(error, kept) => {
                    *self.kept.get_mut(locks.ops_mut()) = Some(kept);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Takes the device down if it is up.
    pub(super) fn go_down(&self, locks: &mut Locks<'static>) {
        self.end_up(BusIo::Normal, locks);
    }

    /// As [`Self::go_down`], without access to the NIC if the bus is frozen.
    pub(super) fn end_up(&self, io: BusIo, locks: &mut Locks<'static>) {
        if let Some(up) = self.up.get_mut(locks.ops_mut()).take() {
            // The device does not go up with it, so there was none.
            *self.kept.get_mut(locks.ops_mut()) = up.end(self, io, locks);
            self.wants_restart.store(false, Relaxed);
        }
    }

    /// Frees what was kept. The NIC was reset, and knows of no memory.
    pub(super) fn free_kept(&self, locks: &mut Locks<'static>) {
        if let Some(up) = self.kept.get_mut(locks.ops_mut()).take() {
            up.free(self);
        }
    }

    /// Has the bus reset a NIC that did not stop, when the device goes away. Frees what is still
    /// kept, or leaks it if there was no reset.
    pub(super) fn end_kept(&self) {
        let kept = Locks::with(self.dev(), |locks| {
            self.kept.get_mut(locks.ops_mut()).take()
        });
        let Some(up) = kept else {
            return;
        };

        // Without the locks, since it may take a while.
        //
        // SAFETY: The device is being unbound.
        let is_reset = unsafe { self.bus.reset() };
        Locks::with(self.dev(), |locks| {
            if is_reset {
                up.free(self);
            } else {
                crate::netdev_err!(self.dev(), "failed to reset the NIC, its rings are lost\n");
                up.leak(self, locks);
            }
        });
    }

    /// Whether the NIC has not been reset since it did not stop.
    pub(super) fn is_stuck(&self, locks: &Locks<'static>) -> bool {
        self.kept.get(locks.ops()).is_some()
    }

    /// Whether the device is up, other than as the core believes.
    pub(super) fn is_up(&self, locks: &Locks<'static>) -> bool {
        self.up.get(locks.ops()).is_some()
    }

    /// The vector that serves a receive queue, if the device is up. It exists as long as the device
    /// stays up, which takes the lock to change.
    pub(super) fn rx_vector(
        &self,
        queue: u16,
        lock: &OpsLocked<'static>,
    ) -> Option<NonNull<VectorOf<T>>> {
        let up = self.up.get(lock).as_ref()?;
        let vector = up.made.vectors.get(usize::from(queue))?;

        Some(NonNull::from(&**vector))
    }

    /// Takes a device that the core believes to be up down, and up again.
    pub(super) fn restart(&self, locks: &mut Locks<'static>) -> Result {
        self.restart_with(None, locks)
    }

    /// As [`Self::restart`], with vectors that have been made before, if there are any.
    pub(super) fn restart_with(
        &self,
        spare: Option<SpareVectors<T>>,
        locks: &mut Locks<'static>,
    ) -> Result {
        self.go_down(locks);
        self.go_up_with(spare, locks)?;
        self.dev().refresh_rx_mode(locks);
        Ok(())
    }

    /// As [`Self::restart`], but if that fails, the device is closed.
    ///
    /// One that has been closed meanwhile stays so.
    pub(super) fn restart_or_close(&self, locks: &mut Locks<'static>) -> Result {
        if !self.dev().is_running() {
            return Err(ENETDOWN);
        }
        self.restart(locks).inspect_err(|error| {
            crate::netdev_err!(self.dev(), "restart failed, closing: {error:?}\n");
            self.dev().close(locks);
        })
    }
}
