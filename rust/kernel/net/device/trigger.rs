// SPDX-License-Identifier: GPL-2.0

//! Triggers: interrupts, or none, that have the poll function of a queue vector run.

use crate::{
    bindings,
    error::to_result,
    irq::{
        IrqRequest,
        IrqReturn, //
    },
    net::napi::Napi,
    prelude::*,
    str::CString, //
};

use core::cell::Cell;

/// The reason for the poll function of a queue vector to run.
pub(super) enum Trigger<'up, 'name> {
    /// An interrupt with its name, see [`Opening::add_queue_vector`].
    ///
    /// [`Opening::add_queue_vector`]: super::Opening::add_queue_vector
    Interrupt(IrqRequest<'up>, &'name CStr),
    /// An interrupt for each queue.
    Split {
        /// The one for received packets.
        rx: IrqRequest<'up>,
        /// The one for transmitted packets.
        tx: IrqRequest<'up>,
    },
    /// No interrupt: a [`Scheduler`](crate::net::napi::Scheduler), or nothing.
    Software,
}

/// The interrupt of a queue vector.
pub(super) struct Interrupt {
    irq: u32,
    name: CString,
    requested: Cell<bool>,
}

/// The interrupts of a vector: one, one for each of its queues, or none.
pub(super) type Interrupts = [Option<Interrupt>; 2];

impl Interrupt {
    /// An interrupt that has not been requested.
    pub(super) fn new(irq: u32, name: CString) -> Self {
        Self {
            irq,
            name,
            requested: Cell::new(false),
        }
    }

    /// Its number, for the core.
    pub(super) fn number(&self) -> c_int {
        // CAST: The core's type for the same number.
        self.irq as c_int
    }

    /// Requests the interrupt, which schedules `napi`.
    ///
    /// # Safety
    ///
    /// The instance must have been added to a device, and `self` be freed before it is deleted.
    pub(super) unsafe fn request(&self, napi: *mut bindings::napi_struct) -> Result {
        let cookie = napi.cast::<c_void>();
        let name = self.name.as_char_ptr();

        // SAFETY: The cookie is the one that the handler expects. By the safety requirements, it
        // and the name stay valid until the interrupt is freed.
        to_result(unsafe {
            bindings::request_irq(self.irq, Some(handle_interrupt), 0, name, cookie)
        })?;

        self.requested.set(true);
        Ok(())
    }

    /// Frees the interrupt, if it was requested.
    ///
    /// # Safety
    ///
    /// `napi` must be the one that it was requested for, if it was.
    pub(super) unsafe fn free(&self, napi: *mut bindings::napi_struct) {
        if self.requested.replace(false) {
            // SAFETY: We owned this registration. `free_irq()` waits for handlers that are running.
            unsafe { bindings::free_irq(self.irq, napi.cast::<c_void>()) };
        }
    }
}

/// The interrupt of a queue vector.
///
/// # Safety
///
/// To be called by the core, with a pointer to a [`Napi`] that has been added to a device.
unsafe extern "C" fn handle_interrupt(_irq: c_int, cookie: *mut c_void) -> bindings::irqreturn_t {
    // SAFETY: The cookie is a NAPI instance, which is deleted after the interrupt has been freed.
    unsafe { (*cookie.cast_const().cast::<Napi>()).interrupted() };

    bindings::irqreturn_t(IrqReturn::Handled as c_uint)
}
