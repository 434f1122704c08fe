// SPDX-License-Identifier: GPL-2.0

//! The contexts that shared ends of a queue may be used in.
//!
//! An operation on a shared end may have to wait for users that came earlier. If one of them was
//! interrupted on the same CPU by the one that waits, that would be for ever. So all users of a
//! queue must be such that none interrupts another: this is a property of the queue, and the
//! parameter `C: Context` of its type. Each operation asks for the proof that goes with it.

use crate::{
    bindings,
    softirq::Softirq,
    types::NotThreadSafe, //
};
use core::marker::PhantomData;

mod private {
    pub trait Sealed {}

    impl Sealed for super::BottomHalf {}
    impl Sealed for super::HardInterrupt {}
}

/// A class of contexts of which none interrupts another on the same CPU.
pub trait Context: private::Sealed + 'static {
    /// The proof of being in such a context for as long as `'a`.
    type Proof<'a>;
}

/// Softirqs, and process context with bottom halves disabled.
pub enum BottomHalf {}

impl Context for BottomHalf {
    type Proof<'a> = Softirq<'a>;
}

/// Anything but NMIs, with interrupts disabled.
///
/// Operations keep interrupts disabled while they wait for users on other CPUs. Use
/// [`BottomHalf`] if hard interrupt handlers need not use the queue.
pub enum HardInterrupt {}

impl Context for HardInterrupt {
    type Proof<'a> = InterruptsOff<'a>;
}

/// Proof that interrupts are disabled on this CPU, and that this is not an NMI.
///
/// Unlike [`LocalInterruptDisabled`], which makes no promise on kernels that do not preempt, it
/// means the same in all configurations.
///
/// # Invariants
///
/// During `'a`, interrupts are disabled on the current CPU, and this is not an NMI.
///
/// [`LocalInterruptDisabled`]: crate::interrupt::LocalInterruptDisabled
#[derive(Clone, Copy)]
pub struct InterruptsOff<'a> {
    _not_send: NotThreadSafe,
    _context: PhantomData<&'a ()>,
}

impl InterruptsOff<'_> {
    /// Claims to be in such a context.
    ///
    /// # Safety
    ///
    /// For all of the lifetime, interrupts must be disabled on the current CPU, and this must not
    /// be an NMI.
    #[inline(always)]
    pub unsafe fn assume() -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            _not_send: NotThreadSafe,
            _context: PhantomData,
        }
    }
}

/// Calls `body` with interrupts disabled on this CPU.
///
/// Returns [`None`] without calling it in an NMI. It is a call and not a guard, since guards could
/// be dropped in any order, and the interrupts be enabled by the wrong one.
#[inline]
pub fn with_interrupts_off<R>(body: impl for<'a> FnOnce(InterruptsOff<'a>) -> R) -> Option<R> {
    // SAFETY: This has no requirements.
    if unsafe { bindings::alf_queue_in_nmi() } {
        return None;
    }
    // SAFETY: They are restored below, on the same CPU since they stay disabled until then.
    let flags = unsafe { bindings::alf_queue_irq_save() };
    // SAFETY: They were just disabled. The token cannot outlive the call, as `body` accepts any
    // lifetime.
    let result = body(unsafe { InterruptsOff::assume() });
    // SAFETY: These are the flags from above, and all calls in between have ended.
    unsafe { bindings::alf_queue_irq_restore(flags) };
    Some(result)
}
