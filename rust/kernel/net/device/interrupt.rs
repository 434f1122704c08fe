// SPDX-License-Identifier: GPL-2.0

//! Interrupts of a device: of queue vectors, which have its poll function run, and for events.

use crate::{
    bindings,
    error::to_result,
    irq::{
        IrqReturn,
        ThreadedIrqReturn, //
    },
    net::napi::Napi,
    prelude::*,
    str::CString, //
};

use core::cell::Cell;

/// A handler of an interrupt, or its thread.
pub(super) type Handler = unsafe extern "C" fn(c_int, *mut c_void) -> bindings::irqreturn_t;

/// The interrupt of a queue vector, or for events other than packets.
pub(super) struct Interrupt {
    pub(super) irq: u32,
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

    /// Requests the interrupt, which schedules `napi`.
    ///
    /// # Safety
    ///
    /// The instance must have been added to a device, and `self` be freed before it is deleted.
    pub(super) unsafe fn request(&self, napi: *mut bindings::napi_struct) -> Result {
        // As `request_irq()`.
        //
        // CAST: C's type for the same flag.
        let flags = bindings::IRQF_COND_ONESHOT as c_ulong;

        // SAFETY: By the safety requirements. The cookie is the one that the handler expects.
        unsafe { self.request_with(handle_interrupt, None, flags, napi.cast()) }
    }

    /// Requests the interrupt, whose thread `thread` is.
    ///
    /// # Safety
    ///
    /// It must be allowed to call `thread` with `cookie` until `self` is freed, before it is
    /// dropped.
    pub(super) unsafe fn request_thread(&self, thread: Handler, cookie: *mut c_void) -> Result {
        // SAFETY: By the safety requirements.
        unsafe { self.request_with(wake_thread, Some(thread), 0, cookie) }
    }

    /// # Safety
    ///
    /// Both functions must be for `cookie`, until `self` is freed, before it is dropped.
    unsafe fn request_with(
        &self,
        handler: Handler,
        thread: Option<Handler>,
        flags: c_ulong,
        cookie: *mut c_void,
    ) -> Result {
        let name = self.name.as_char_ptr();

        // SAFETY: By the safety requirements. The name stays valid until the interrupt is freed.
        to_result(unsafe {
            bindings::request_threaded_irq(self.irq, Some(handler), thread, flags, name, cookie)
        })?;
        self.requested.set(true);
        Ok(())
    }

    /// Frees the interrupt, if it was requested: waits for its handler, and its thread.
    ///
    /// # Safety
    ///
    /// `cookie` must be that for which it was requested, if it was.
    pub(super) unsafe fn free(&self, cookie: *mut c_void) {
        if self.requested.replace(false) {
            // SAFETY: We owned this registration.
            unsafe { bindings::free_irq(self.irq, cookie) };
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

extern "C" fn wake_thread(_irq: c_int, _cookie: *mut c_void) -> bindings::irqreturn_t {
    bindings::irqreturn_t(ThreadedIrqReturn::WakeThread as c_uint)
}
