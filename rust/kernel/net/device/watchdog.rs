// SPDX-License-Identifier: GPL-2.0

//! The watchdog of a device that is up.

use super::{
    driver::{
        Driver, //
        WatchdogAction,
    },
    shared::Shared, //
};

use crate::{
    bindings,
    prelude::*,
    time::msecs_to_jiffies,
    types::Opaque, //
};

/// The names of lock classes, at one address for all drivers: lockdep compares names by address.
static WATCHDOG: &CStr = c"net::device::Watchdog";
static WATCHDOG_TIMER: &CStr = c"net::device::Watchdog_timer";

/// Milliseconds between two runs of the watchdog.
const PERIOD_MS: u32 = 1_000;

impl<T: Driver> Shared<T> {
    /// The work that checks up a device. A device has one, which is queued while it is up.
    pub(super) fn init_watchdog() -> impl PinInit<Opaque<bindings::delayed_work>> {
        Opaque::ffi_init(|work: *mut bindings::delayed_work| {
            // SAFETY: `work` is valid for writing, and pinned. The keys and names are static.
            unsafe {
                bindings::init_work_with_key(
                    &raw mut (*work).work,
                    Some(Self::run_watchdog),
                    false,
                    WATCHDOG.as_char_ptr(),
                    crate::static_lock_class!().as_ptr(),
                );
                bindings::timer_init_key(
                    &raw mut (*work).timer,
                    Some(bindings::delayed_work_timer_fn),
                    bindings::TIMER_IRQSAFE,
                    WATCHDOG_TIMER.as_char_ptr(),
                    crate::static_lock_class!().as_ptr(),
                );
            }
        })
    }

    /// # Safety
    ///
    /// `work` must be that of a `Shared<T>`, which is up.
    unsafe extern "C" fn run_watchdog(work: *mut bindings::work_struct) {
        // SAFETY: By the safety requirements.
        let work = unsafe { crate::container_of!(work, bindings::delayed_work, work) };
        let work = Opaque::cast_from(work);
        // SAFETY: As above; before the device goes down, the work is cancelled.
        let shared = unsafe { &*crate::container_of!(work, Shared<T>, watchdog) };

        if T::HAS_WATCHDOG && T::watchdog(shared.data(), shared.dev()) == WatchdogAction::Restart {
            shared.schedule_restart();
            // The restart starts a new watchdog. If it has to wait for RTNL, this one would ask for
            // a second restart, of a device that has recovered by then.
            return;
        }
        // SAFETY: The work is not cancelled yet, or cannot be queued by itself any more.
        unsafe { shared.queue_check_up() };
    }

    /// Has the device checked up in a while, and again and again.
    ///
    /// # Safety
    ///
    /// To be followed by [`Self::end_check_ups`] before the device goes down.
    pub(super) unsafe fn queue_check_up(&self) {
        // SAFETY: The work is initialized, and is cancelled before it goes away.
        unsafe {
            bindings::queue_delayed_work_on(
                bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int,
                bindings::system_dfl_wq,
                self.watchdog.get(),
                msecs_to_jiffies(PERIOD_MS),
            )
        };
    }

    /// Ends check-ups, and waits for the last one.
    pub(super) fn end_check_ups(&self) {
        // SAFETY: The work is initialized. This keeps it from being queued again by itself.
        unsafe { bindings::cancel_delayed_work_sync(self.watchdog.get()) };
    }
}
