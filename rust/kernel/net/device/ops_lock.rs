// SPDX-License-Identifier: GPL-2.0

//! The lock under which the core calls the operations of a device.
//!
//! C header: [`include/net/netdev_lock.h`](srctree/include/net/netdev_lock.h)
//!
//! For most devices that is RTNL. A driver with [`Driver::OPS_LOCK`](super::Driver::OPS_LOCK) has
//! the core take a lock of the device as well, its instance lock:
//!
//! | callbacks | RTNL | instance lock |
//! | --- | --- | --- |
//! | those of `struct net_device_ops` that configure the device | held | held |
//! | `ethtool`, unless `op_needs_rtnl` has the bit of the command | not held | held |
//! | counters of queues (`netdev_stat_ops`) | not held | held |
//! | queue management | maybe held | held |
//!
//! So a callback of the other kinds must not get an [`Rtnl`]. It gets an [`OpsLocked`], which is
//! right for devices with an instance lock and without. One of the first kind can get both, as
//! [`Locks`].

use super::Device;

pub use crate::net::rtnl::{
    Rtnl,
    RtnlCell, //
};

use crate::{
    bindings,
    types::NotThreadSafe, //
};

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    ops::{
        Deref,
        DerefMut, //
    }, //
};

/// A type that changes if the lifetime does, in either direction.
type Brand<'bound> = PhantomData<fn(&'bound ()) -> &'bound ()>;

/// The proof that the current task holds the lock of the operations of one device: its own if its
/// driver has [`Driver::OPS_LOCK`](super::Driver::OPS_LOCK), else RTNL.
///
/// `'bound` is that of the callback, and stands for the device: a callback is generic in it, so it
/// cannot use the token of one device with an [`OpsCell`] of another.
///
/// # Invariants
///
/// The current task holds that lock for as long as the token exists. No other token for the device
/// is used during the lifetime of a reference to this one.
pub struct OpsLocked<'bound> {
    _bound: Brand<'bound>,
    _not_send: NotThreadSafe,
}

impl<'bound> OpsLocked<'bound> {
    /// Lends the token to a callback that is generic in the lifetime.
    ///
    /// # Safety
    ///
    /// The callback must be one for the device of the token.
    #[inline]
    pub(super) unsafe fn lend<'other>(&mut self) -> &mut OpsLocked<'other> {
        // SAFETY: Only a lifetime changes, in a type without contents.
        unsafe { &mut *core::ptr::from_mut(self).cast::<OpsLocked<'other>>() }
    }
}

impl OpsLocked<'static> {
    /// Creates a token, for a callback of the core.
    ///
    /// In the abstraction, where there is no name for `'bound`, all devices have the same brand.
    ///
    /// # Safety
    ///
    /// The current task must hold the lock of the operations of `dev`, and must not release it
    /// while the result exists, which must be used for that device only. If there is another token
    /// for it, the caller must have a mutable reference to that, or must have been called by code
    /// that has, and that does not use it meanwhile.
    #[inline]
    pub(super) unsafe fn assume_held(dev: &Device) -> Self {
        // SAFETY: The device is valid. This does nothing without lockdep.
        unsafe { bindings::netdev_assert_locked_ops_compat(dev.as_raw()) };
        // INVARIANT: By the safety requirements.
        Self {
            _bound: PhantomData,
            _not_send: NotThreadSafe,
        }
    }
}

/// A value that is accessed with the lock of a device's operations held, see [`OpsLocked`].
///
/// # Examples
///
/// ```
/// use kernel::net::device::{
///     OpsCell,
///     OpsLocked, //
/// };
///
/// struct Data<'bound> {
///     thresholds: OpsCell<'bound, [u32; 4]>,
/// }
///
/// fn double<'bound>(data: &Data<'bound>, lock: &mut OpsLocked<'bound>) -> u32 {
///     data.thresholds.get_mut(lock)[0] *= 2;
///     data.thresholds.get(lock)[0]
/// }
/// ```
pub struct OpsCell<'bound, T> {
    value: UnsafeCell<T>,
    _bound: Brand<'bound>,
}

// SAFETY: The value is accessed by the holder of a lock, which is one task at a time.
unsafe impl<T: Send> Sync for OpsCell<'_, T> {}

impl<'bound, T> OpsCell<'bound, T> {
    /// Creates a cell.
    #[inline]
    pub const fn new(value: T) -> Self {
        Self {
            value: UnsafeCell::new(value),
            _bound: PhantomData,
        }
    }

    /// Lends the value.
    #[inline]
    pub fn get<'a>(&'a self, _lock: &'a OpsLocked<'bound>) -> &'a T {
        // SAFETY: By the invariants of the token, this task holds the lock. A mutable reference to
        // the value would have borrowed the token.
        unsafe { &*self.value.get() }
    }

    /// Lends the value, to be changed.
    #[inline]
    pub fn get_mut<'a>(&'a self, _lock: &'a mut OpsLocked<'bound>) -> &'a mut T {
        // SAFETY: As above; and any reference to the value would have borrowed the token.
        unsafe { &mut *self.value.get() }
    }
}

/// RTNL and the lock of a device's operations, both held, which it takes to configure the device.
///
/// It is a mutable [`Rtnl`] for what needs no more. `'bound` is that of [`OpsLocked`].
pub struct Locks<'bound> {
    rtnl: Rtnl,
    ops: OpsLocked<'bound>,
}

impl<'bound> Locks<'bound> {
    /// The token of the device's lock.
    #[inline]
    pub fn ops(&self) -> &OpsLocked<'bound> {
        &self.ops
    }

    /// The token of the device's lock, for changes.
    #[inline]
    pub fn ops_mut(&mut self) -> &mut OpsLocked<'bound> {
        &mut self.ops
    }
}

impl Locks<'static> {
    /// Creates both tokens, for a callback of the core.
    ///
    /// # Safety
    ///
    /// As for [`Rtnl::assume_held`] and [`OpsLocked::assume_held`].
    #[inline]
    pub(super) unsafe fn assume_held(dev: &Device) -> Self {
        // SAFETY: By the safety requirements.
        unsafe {
            Self {
                rtnl: Rtnl::assume_held(),
                ops: OpsLocked::assume_held(dev),
            }
        }
    }

    /// Waits for both locks, and runs `f` with them held. Process context.
    ///
    /// Not for callbacks: RTNL is held while they are waited for.
    pub(super) fn with<R>(dev: &Device, f: impl FnOnce(&mut Self) -> R) -> R {
        Rtnl::with(|_rtnl| {
            // SAFETY: The device is valid. Nothing is locked if RTNL is all that its operations
            // take.
            unsafe { bindings::netdev_lock_ops(dev.as_raw()) };
            // SAFETY: Both locks were taken, in this order, as the core takes them. They are
            // released when this is gone. The other token of RTNL is not used.
            let result = f(&mut unsafe { Self::assume_held(dev) });
            // SAFETY: The device is valid, and was locked above, by this task. The sort of lock
            // does not change while the device is registered.
            unsafe { bindings::netdev_unlock_ops(dev.as_raw()) };
            result
        })
    }
}

impl Deref for Locks<'_> {
    type Target = Rtnl;

    fn deref(&self) -> &Rtnl {
        &self.rtnl
    }
}

impl DerefMut for Locks<'_> {
    fn deref_mut(&mut self) -> &mut Rtnl {
        &mut self.rtnl
    }
}
