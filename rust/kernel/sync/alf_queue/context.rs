// SPDX-License-Identifier: GPL-2.0

//! The contexts in which shared ends of a queue may be used.
//!
//! An operation on a shared end may have to wait for earlier users. If it interrupted one of them
//! on the same CPU, that would deadlock. So no user of a queue may interrupt another: this is a
//! property of the queue, the parameter `C: Context` of its type. Each operation requires the proof
//! that goes with it.

use crate::{
    bindings,
    softirq::Softirq,
    types::NotThreadSafe, //
};
use core::marker::PhantomData;

/// Keeps the current context from being preempted until it is dropped.
///
/// The other users of an end wait for the one that has claimed a run, so that must go on until it
/// has published the run.
pub(super) struct PreemptionOff(NotThreadSafe);

impl PreemptionOff {
    #[inline(always)]
    pub(super) fn new() -> Self {
        // SAFETY: This has no requirements. It is enabled when this is dropped.
        unsafe { bindings::preempt_disable() };
        Self(NotThreadSafe)
    }

    /// As [`Self::new`], for contexts that [`Context`] describes: with `CONFIG_PREEMPT_RT`, those
    /// can be preempted. Otherwise there is nothing to do.
    #[inline(always)]
    pub(super) fn in_context() -> Option<Self> {
        cfg!(CONFIG_PREEMPT_RT).then(Self::new)
    }
}

impl Drop for PreemptionOff {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: It was disabled for this.
        unsafe { bindings::preempt_enable() };
    }
}

mod private {
    pub trait Sealed {}

    impl Sealed for super::BottomHalf {}
    impl Sealed for super::HardInterrupt {}
}

/// A class of contexts that do not interrupt each other on the same CPU.
pub trait Context: private::Sealed + 'static {
    /// The proof of being in such a context during `'a`.
    type Proof<'a>;
}

/// Softirqs, and process context with bottom halves disabled.
pub enum BottomHalf {}

impl Context for BottomHalf {
    type Proof<'a> = Softirq<'a>;
}

/// Anything but NMIs, with interrupts disabled.
///
/// Operations keep interrupts disabled while they wait for users on other CPUs. Use [`BottomHalf`]
/// unless hard interrupt handlers use the queue.
pub enum HardInterrupt {}

impl Context for HardInterrupt {
    type Proof<'a> = InterruptsOff<'a>;
}

/// Proof that interrupts are disabled on this CPU, and that this is not an NMI.
///
/// Unlike [`LocalInterruptDisabled`], which guarantees nothing on kernels without preemption, it
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
/// They are enabled again when the last one of such calls and of guards like
/// [`LocalInterruptDisabled`] has ended, in any order: all of them are counted together. In an NMI,
/// or if there are more of them than can be counted, returns [`None`] without calling `body`.
///
/// [`LocalInterruptDisabled`]: crate::interrupt::LocalInterruptDisabled
#[inline]
pub fn with_interrupts_off<R>(body: impl for<'a> FnOnce(InterruptsOff<'a>) -> R) -> Option<R> {
    // SAFETY: This has no requirements.
    if unsafe { bindings::alf_queue_irqs_stay_on() } {
        return None;
    }
    // SAFETY: This is not an NMI. They are enabled below.
    unsafe { bindings::local_interrupt_disable() };
    // SAFETY: Interrupts were just disabled, and stay so until we enable them, whatever others that
    // `body` ends have disabled: they are counted. The token cannot outlive the call, since `body`
    // accepts any lifetime.
    let result = body(unsafe { InterruptsOff::assume() });
    // SAFETY: They were disabled above.
    unsafe { bindings::local_interrupt_enable() };
    Some(result)
}
