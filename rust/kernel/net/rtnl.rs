// SPDX-License-Identifier: GPL-2.0

//! RTNL, the lock under which network devices are configured.
//!
//! C header: [`include/linux/rtnetlink.h`](srctree/include/linux/rtnetlink.h)
//!
//! There is one RTNL, so its token [`Rtnl`] gives access to any value that it protects: a
//! [`RtnlCell`] is a value without a lock of its own.

use crate::{
    bindings,
    types::NotThreadSafe, //
};

use core::cell::UnsafeCell;

/// The proof that the current task holds RTNL.
///
/// Callbacks that the core calls with RTNL held get a mutable reference. They may be called while
/// another such callback runs, by the same task. That one has then lent its own reference to the
/// function that called the core, and cannot use values that it has borrowed with it.
///
/// # Invariants
///
/// The current task holds RTNL for as long as the token exists. No other token of it is used during
/// the lifetime of a reference to this one.
pub struct Rtnl(NotThreadSafe);

impl Rtnl {
    /// Creates a token, for a callback of the core.
    ///
    /// # Safety
    ///
    /// The current task must hold RTNL, and must not release it while the result exists. If there
    /// is another token, the caller must have a mutable reference to it, or must have been called
    /// by code that has, and that does not use it meanwhile.
    #[inline]
    pub(super) unsafe fn assume_held() -> Self {
        // SAFETY: This has no requirements. It is true without lockdep.
        crate::warn_on!(!unsafe { bindings::lockdep_rtnl_is_held() });
        // INVARIANT: By the safety requirements.
        Self(NotThreadSafe)
    }

    /// Waits for RTNL, and runs `f` with it held. Process context.
    ///
    /// Not for drivers: RTNL is held while their callbacks are waited for.
    pub(super) fn with<R>(f: impl FnOnce(&mut Self) -> R) -> R {
        // SAFETY: This has no requirements. If the task holds RTNL already, it never returns.
        unsafe { bindings::rtnl_lock() };
        // SAFETY: Locked above, so there was no token, and unlocked when this one is gone.
        let result = f(&mut unsafe { Self::assume_held() });
        // SAFETY: It was locked above, by this task.
        unsafe { bindings::rtnl_unlock() };
        result
    }
}

/// A value that is accessed with RTNL held.
///
/// # Examples
///
/// ```
/// use kernel::net::device::{
///     Rtnl,
///     RtnlCell, //
/// };
///
/// struct Settings {
///     rings: RtnlCell<KVec<u32>>,
/// }
///
/// fn add(settings: &Settings, rtnl: &mut Rtnl) -> Result<usize> {
///     settings.rings.get_mut(rtnl).push(1, GFP_KERNEL)?;
///     Ok(settings.rings.get(rtnl).len())
/// }
/// ```
pub struct RtnlCell<T>(UnsafeCell<T>);

// SAFETY: The value is accessed by the holder of RTNL, which is one task at a time.
unsafe impl<T: Send> Sync for RtnlCell<T> {}

impl<T> RtnlCell<T> {
    /// Creates a cell.
    #[inline]
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Lends the value.
    #[inline]
    pub fn get<'a>(&'a self, _rtnl: &'a Rtnl) -> &'a T {
        // SAFETY: By the invariants of the token, this task holds RTNL. A mutable reference to the
        // value would have borrowed the token.
        unsafe { &*self.0.get() }
    }

    /// Lends the value, to be changed.
    #[inline]
    pub fn get_mut<'a>(&'a self, _rtnl: &'a mut Rtnl) -> &'a mut T {
        // SAFETY: As above; and any reference to the value would have borrowed the token.
        unsafe { &mut *self.0.get() }
    }
}
