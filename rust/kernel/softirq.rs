// SPDX-License-Identifier: GPL-2.0

//! Bottom halves: proof that the current context cannot be interrupted by a softirq.
//!
//! What belongs to a CPU and is used by softirqs, needs no lock and no atomic operation as long as
//! nobody else can run on that CPU in between. [`Softirq`] is the proof: a token of no size that
//! exists only where bottom halves are disabled on the current CPU and where this is not a hard
//! interrupt. It comes from whoever made it so:
//!
//! - a [`BhGuard`], with which process context disables bottom halves,
//! - the poll function of a NAPI instance, see [`Poll::softirq`].
//!
//! A softirq on the same CPU waits for the holder, and the holder does not move to another CPU.
//! Two holders on one CPU are therefore one below the other in the same call chain; what must not
//! be entered twice, must not call code that it does not know while it is half-way.
//!
//! With `CONFIG_PREEMPT_RT`, disabling bottom halves excludes others on the CPU only together with
//! `CONFIG_PREEMPT_RT_NEEDS_BH_LOCK`; without it, no token can be had.
//!
//! C header: [`include/linux/bottom_half.h`](srctree/include/linux/bottom_half.h)
//!
//! [`Poll::softirq`]: crate::net::napi::Poll::softirq

use crate::{
    bindings,
    prelude::*,
    types::NotThreadSafe, //
};
use core::marker::PhantomData;

/// Proof that bottom halves are disabled on this CPU, and that this is not a hard interrupt.
///
/// # Invariants
///
/// During `'a`, bottom halves are disabled on the current CPU, the current context does not move to
/// another CPU, and is neither a hard interrupt nor an NMI.
#[derive(Clone, Copy)]
pub struct Softirq<'a> {
    _not_send: NotThreadSafe,
    _context: PhantomData<&'a ()>,
}

impl Softirq<'_> {
    /// Claims to be in such a context.
    ///
    /// # Safety
    ///
    /// For all of the lifetime, bottom halves must be disabled on the current CPU, and this must
    /// be neither a hard interrupt nor an NMI. With `CONFIG_PREEMPT_RT`, nobody else on the CPU
    /// may disable bottom halves at the same time.
    #[inline(always)]
    pub unsafe fn assume() -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            _not_send: NotThreadSafe,
            _context: PhantomData,
        }
    }
}

/// Keeps bottom halves disabled on this CPU until it is dropped.
///
/// Guards nest, in any order. Forgetting one leaves bottom halves disabled, which the scheduler
/// complains about.
///
/// # Invariants
///
/// Bottom halves were disabled for this guard, in a context that is neither a hard interrupt nor
/// an NMI.
///
/// # Examples
///
/// ```
/// use kernel::softirq::BhGuard;
///
/// let guard = BhGuard::new().ok_or(EINVAL)?;
/// let softirq = guard.softirq();
/// // Nobody else runs on this CPU here, but for hard interrupts.
/// # let _ = softirq;
/// # Ok::<(), Error>(())
/// ```
pub struct BhGuard(NotThreadSafe);

impl BhGuard {
    /// Disables bottom halves on this CPU.
    ///
    /// Returns [`None`] in a hard interrupt or an NMI, and where interrupts are disabled: enabling
    /// bottom halves again may run them, which is not possible there. Does not sleep.
    #[inline]
    pub fn new() -> Option<Self> {
        // SAFETY: These have no requirements.
        if unsafe { bindings::softirq_guard_impossible() } {
            return None;
        }
        // SAFETY: This is neither a hard interrupt nor an NMI. The guard enables them again.
        unsafe { bindings::local_bh_disable() };
        // INVARIANT: They were just disabled.
        Some(Self(NotThreadSafe))
    }

    /// Returns the proof.
    #[inline(always)]
    pub fn softirq(&self) -> Softirq<'_> {
        // SAFETY: By the type invariants, bottom halves are disabled on this CPU until the guard is
        // dropped, which the lifetime rules out; the guard is not sent to another context.
        unsafe { Softirq::assume() }
    }
}

impl Drop for BhGuard {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariants, they were disabled for this guard.
        unsafe { bindings::local_bh_enable() };
    }
}

#[kunit_tests(rust_softirq)]
mod tests {
    use super::*;
    use crate::interrupt::local_interrupt_disable;

    fn softirqs_wait() -> bool {
        // SAFETY: This only looks.
        unsafe { bindings::softirqs_wait() }
    }

    #[test]
    fn softirqs_wait_for_all_guards() -> Result {
        let before = softirqs_wait();
        let one = BhGuard::new().ok_or(EINVAL)?;
        let while_one = softirqs_wait();
        let two = BhGuard::new().ok_or(EINVAL)?;
        drop(one);
        let while_two = softirqs_wait();
        drop(two);
        let after = softirqs_wait();

        assert_eq!((before, after), (false, false));
        assert_eq!((while_one, while_two), (true, true));
        Ok(())
    }

    #[test]
    fn there_is_no_guard_with_interrupts_disabled() {
        let irq = local_interrupt_disable();
        let none = BhGuard::new().is_none();
        let waits = softirqs_wait();
        drop(irq);

        assert!(none);
        assert!(!waits);
        assert!(BhGuard::new().is_some());
    }

    #[test]
    fn a_guard_stays_when_interrupts_are_disabled_later() -> Result {
        let guard = BhGuard::new().ok_or(EINVAL)?;
        let irq = local_interrupt_disable();
        // This one would have to enable bottom halves where that is not allowed.
        let none = BhGuard::new().is_none();
        let waits = softirqs_wait();
        drop(irq);
        drop(guard);

        assert!(none);
        assert!(waits);
        assert!(!softirqs_wait());
        Ok(())
    }
}
