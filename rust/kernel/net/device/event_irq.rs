// SPDX-License-Identifier: GPL-2.0

//! The interrupt of a device for events other than packets.

use crate::{
    bindings,
    error::to_result,
    irq::ThreadedIrqReturn,
    prelude::*,
    str::CString, //
};

/// The thread of the interrupt.
pub(super) type Thread = unsafe extern "C" fn(c_int, *mut c_void) -> bindings::irqreturn_t;

/// The interrupt for events other than packets.
///
/// # Invariants
///
/// - `thread` may be called with `cookie` from when the interrupt is requested until it is freed.
/// - If `requested`, we own a registration of `irq` with `cookie`.
pub(super) struct EventIrq {
    irq: u32,
    name: CString,
    thread: Thread,
    cookie: *mut c_void,
    requested: bool,
}

impl EventIrq {
    /// An interrupt that has not been requested.
    ///
    /// # Safety
    ///
    /// It must be allowed to call `thread` with `cookie` from [`Self::request`] until the result is
    /// dropped.
    pub(super) unsafe fn new(irq: u32, name: CString, thread: Thread, cookie: *mut c_void) -> Self {
        // INVARIANT: It is not requested. The rest is by the safety requirements.
        Self {
            irq,
            name,
            thread,
            cookie,
            requested: false,
        }
    }

    pub(super) fn request(&mut self) -> Result {
        // SAFETY: The cookie is for the thread, by the type invariants. The name stays valid until
        // the interrupt is freed, when `self` is dropped.
        to_result(unsafe {
            bindings::request_threaded_irq(
                self.irq,
                Some(event_interrupt),
                Some(self.thread),
                0,
                self.name.as_char_ptr(),
                self.cookie,
            )
        })?;

        // INVARIANT: We own the registration now.
        self.requested = true;
        Ok(())
    }
}

impl Drop for EventIrq {
    fn drop(&mut self) {
        if self.requested {
            // SAFETY: By the type invariants, we own this registration. `free_irq()` waits for
            // handlers and for the thread.
            unsafe { bindings::free_irq(self.irq, self.cookie) };
        }
    }
}

/// # Safety
///
/// To be called by the core.
unsafe extern "C" fn event_interrupt(_irq: c_int, _cookie: *mut c_void) -> bindings::irqreturn_t {
    bindings::irqreturn_t(ThreadedIrqReturn::WakeThread as c_uint)
}
