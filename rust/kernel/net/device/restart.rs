// SPDX-License-Identifier: GPL-2.0

//! The restart of a device in the background.

use super::{
    inner::inner,
    ops_lock::Locks,
    shared::Shared,
    Driver, //
};

use crate::{
    bindings,
    prelude::*,
    sync::atomic::Relaxed,
    types::Opaque, //
};

/// The name of a lock class, at one address for all drivers: lockdep compares names by address.
static RESTART: &CStr = c"net::device::Restart";

impl<T: Driver> Shared<T> {
    /// The work that restarts a device that failed to transmit.
    pub(super) fn init_restart() -> impl PinInit<Opaque<bindings::work_struct>> {
        Opaque::ffi_init(|work: *mut bindings::work_struct| {
            // SAFETY: `work` is valid for writing, and pinned. The key and the name are static.
            unsafe {
                bindings::init_work_with_key(
                    work,
                    Some(Self::run_restart),
                    false,
                    RESTART.as_char_ptr(),
                    crate::static_lock_class!().as_ptr(),
                )
            };
        })
    }

    /// # Safety
    ///
    /// `work` must be that of a `Shared<T>`.
    unsafe extern "C" fn run_restart(work: *mut bindings::work_struct) {
        let work = Opaque::cast_from(work);

        // SAFETY: The work is part of a `Shared<T>`, which is not dropped before we return.
        let shared = unsafe { &*crate::container_of!(work, Shared<T>, restart) };
        // SAFETY: The device is one of driver `T`. Before it is unregistered for good, the work is
        // cancelled.
        let inner = unsafe { inner::<T>(shared.dev().as_raw()) };

        Locks::with(inner.dev(), |locks| {
            // With RTNL held, the device is registered and running, or not. One that is suspended
            // starts afresh anyway, and so has one that has gone down since.
            if inner.wants_restart.load(Relaxed)
                && inner.dev().is_running()
                && inner.check_reachable().is_ok()
            {
                // If this fails, it is logged.
                let _ = inner.restart_or_close(locks);
            }
        });
    }
}
