// SPDX-License-Identifier: GPL-2.0

//! The periodic check-up of a device that is up.

use super::{
    driver::{
        CheckUp,
        Driver, //
    },
    shared::Shared, //
};

use crate::{
    bindings,
    prelude::*,
    time::msecs_to_jiffies,
    types::Opaque, //
};

use core::{
    ffi::c_int,
    ptr, //
};

/// The names of lock classes, at one address for all drivers: lockdep compares names by address.
static CHECK_UPS: &CStr = c"net::device::CheckUps";
static CHECK_UPS_TIMER: &CStr = c"net::device::CheckUps_timer";

/// Milliseconds between two check-ups.
const PERIOD_MS: u32 = 1_000;

/// The check-ups of a device, from creation until this is dropped, which waits for the last one.
///
/// # Invariants
///
/// `shared` is valid, and its device is up.
#[pin_data(PinnedDrop)]
pub(super) struct CheckUps<T: Driver> {
    #[pin]
    work: Opaque<bindings::delayed_work>,
    shared: *const Shared<T>,
}

impl<T: Driver> CheckUps<T> {
    /// Starts check-ups of `shared`.
    ///
    /// # Safety
    ///
    /// The result must be dropped before the device goes down.
    pub(super) unsafe fn start(shared: &Shared<T>) -> Result<Pin<KBox<Self>>> {
        // INVARIANT: By the safety requirements.
        let this = KBox::pin_init(
            pin_init!(Self {
                work <- Opaque::ffi_init(|work: *mut bindings::delayed_work| {
                    // SAFETY: `work` is valid for writing, and pinned. The keys and names are
                    // static.
                    unsafe {
                        bindings::init_work_with_key(
                            &raw mut (*work).work,
                            Some(Self::run),
                            false,
                            CHECK_UPS.as_char_ptr(),
                            crate::static_lock_class!().as_ptr(),
                        );
                        bindings::timer_init_key(
                            &raw mut (*work).timer,
                            Some(bindings::delayed_work_timer_fn),
                            bindings::TIMER_IRQSAFE,
                            CHECK_UPS_TIMER.as_char_ptr(),
                            crate::static_lock_class!().as_ptr(),
                        );
                    }
                }),
                shared: ptr::from_ref(shared),
            }),
            GFP_KERNEL,
        )?;

        this.queue();
        Ok(this)
    }

    fn queue(&self) {
        // SAFETY: The work is initialized, and is cancelled before it goes away.
        unsafe {
            bindings::queue_delayed_work_on(
                bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int,
                bindings::system_dfl_wq,
                self.work.get(),
                msecs_to_jiffies(PERIOD_MS),
            )
        };
    }

    /// # Safety
    ///
    /// `work` must be that of a [`CheckUps`].
    unsafe extern "C" fn run(work: *mut bindings::work_struct) {
        // SAFETY: By the safety requirements.
        let work = unsafe { crate::container_of!(work, bindings::delayed_work, work) };
        let work = Opaque::cast_from(work);
        // SAFETY: As above; dropping it waits for us.
        let this = unsafe { &*crate::container_of!(work, Self, work) };
        // SAFETY: By the type invariants.
        let shared = unsafe { &*this.shared };

        if T::HAS_CHECK_UP && T::check_up(shared.data(), shared.dev()) == CheckUp::Restart {
            shared.schedule_restart();
            // The restart starts new ones. If it has to wait for RTNL, another one would ask for a
            // second restart, of a device that is well by then.
            return;
        }
        this.queue();
    }
}

#[pinned_drop]
impl<T: Driver> PinnedDrop for CheckUps<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The work is initialized. This keeps it from being queued again by itself.
        unsafe { bindings::cancel_delayed_work_sync(self.work.get()) };
    }
}
