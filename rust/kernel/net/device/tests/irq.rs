// SPDX-License-Identifier: GPL-2.0

//! Interrupts without hardware.

use crate::{
    bindings,
    prelude::*, //
};

/// An interrupt without hardware, which tests raise.
pub(in crate::net::device) struct Irq(pub(in crate::net::device) u32);

impl Irq {
    pub(in crate::net::device) fn new() -> Result<Self> {
        // SAFETY: Any interrupt number will do, on any node.
        let irq = unsafe {
            bindings::__irq_alloc_descs(-1, 1, 1, -1, core::ptr::null_mut(), core::ptr::null())
        };
        let irq = Self(u32::try_from(irq).map_err(|_| Error::from_errno(irq))?);

        // SAFETY: We own the interrupt, which has not been requested yet.
        unsafe {
            bindings::irq_set_chip_and_handler_name(
                irq.0,
                &raw const bindings::dummy_irq_chip,
                Some(bindings::handle_simple_irq),
                core::ptr::null(),
            );
            bindings::irq_modify_status(
                irq.0,
                (bindings::IRQ_NOREQUEST | bindings::IRQ_NOPROBE) as usize,
                // Real-time kernels would run handlers in threads, after `raise()`.
                bindings::IRQ_NOTHREAD as usize,
            );
        }
        Ok(irq)
    }

    /// Raises the interrupt. Softirqs have to be let run after that.
    pub(in crate::net::device) fn raise(&self) {
        // SAFETY: The interrupt is valid.
        unsafe { bindings::generic_handle_irq_safe(self.0) };
    }
}

impl Irq {
    /// Waits for handlers and threads.
    pub(in crate::net::device) fn synchronize(&self) {
        // SAFETY: The interrupt is valid, and this is process context.
        unsafe { bindings::synchronize_irq(self.0) };
    }
}

impl Drop for Irq {
    fn drop(&mut self) {
        // SAFETY: We own the interrupt; tests free their handlers before.
        unsafe { bindings::irq_free_descs(self.0, 1) };
    }
}
