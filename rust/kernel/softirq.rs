// SPDX-License-Identifier: GPL-2.0

//! Bottom halves: proof that the current context cannot be interrupted by a softirq.
//!
//! Per-CPU data that softirqs use needs neither a lock nor atomic operations while no other user
//! can run on that CPU. [`Softirq`] is the proof of that: a zero-sized token that exists only where
//! bottom halves are disabled on the current CPU, and not in a hard interrupt. Its sources are:
//!
//! - a [`BhGuard`], with which process context disables bottom halves,
//! - the poll function of a NAPI instance, see [`Poll::softirq`].
//!
//! No softirq runs on the CPU of a token's holder, and the holder does not migrate. So two holders
//! on one CPU are part of the same call chain: code that is not reentrant must not call foreign
//! code half-way.
//!
//! A holder must not sleep, as in any atomic context: the scheduler would enable bottom halves, and
//! report that. No type prevents it.
//!
//! With `CONFIG_PREEMPT_RT`, disabling bottom halves excludes other contexts on the CPU only with
//! `CONFIG_PREEMPT_RT_NEEDS_BH_LOCK`; without it, there are no tokens. With it, bottom halves are a
//! lock: a guard that is dropped with interrupts disabled leaves it taken, with a warning.
//!
//! C header: [`include/linux/bottom_half.h`](srctree/include/linux/bottom_half.h)
//!
//! [`Poll::softirq`]: crate::net::napi::Poll::softirq

use crate::{
    bindings,
    types::NotThreadSafe, //
};
use core::marker::PhantomData;

mod tests;

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
    /// Whether contexts in which bottom halves are disabled exclude each other on a CPU.
    pub(crate) const EXCLUSIVE: bool =
        !cfg!(CONFIG_PREEMPT_RT) || cfg!(CONFIG_PREEMPT_RT_NEEDS_BH_LOCK);

    /// The token of a context in which bottom halves are disabled.
    ///
    /// Returns [`None`] with interrupts disabled, as in a hard interrupt, and in kernels without
    /// tokens.
    ///
    /// # Safety
    ///
    /// For all of the lifetime, bottom halves must be disabled on the current CPU.
    #[inline]
    pub unsafe fn of_bh_disabled() -> Option<Self> {
        // SAFETY: This has no requirements.
        if !Self::EXCLUSIVE || unsafe { bindings::irqs_disabled() } {
            return None;
        }
        // SAFETY: By the safety requirements. Neither a hard interrupt nor an NMI has interrupts
        // enabled, and no other task has disabled bottom halves: contexts are exclusive.
        Some(unsafe { Self::assume() })
    }

    /// Claims to be in such a context.
    ///
    /// # Safety
    ///
    /// For all of the lifetime, bottom halves must be disabled on the current CPU, and this must
    /// be neither a hard interrupt nor an NMI. With `CONFIG_PREEMPT_RT`, no other task on the CPU
    /// may have disabled bottom halves at the same time.
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
/// Guards nest, and can be dropped in any order, also in one that differs from that of other
/// guards: if interrupts are disabled when the last one is dropped, they stay so, and softirqs that
/// have become due in the meantime run later. Forgetting a guard leaves bottom halves disabled,
/// which the scheduler reports as a bug.
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
/// // No other context runs on this CPU here, except hard interrupts.
/// # let _ = softirq;
/// # Ok::<(), Error>(())
/// ```
pub struct BhGuard(NotThreadSafe);

impl BhGuard {
    /// Whether bottom halves can be disabled, and enabled again, with exclusion: the count of that
    /// may reach half of its maximum, and the rest is for C code.
    #[inline]
    fn is_possible() -> bool {
        const MAX: u32 = ((1 << bindings::SOFTIRQ_BITS) - 1) << bindings::SOFTIRQ_SHIFT;
        const RT: bool = cfg!(CONFIG_PREEMPT_RT);
        // With `CONFIG_PREEMPT_RT`, each counts as one of the 48 locks that lockdep can track.
        const LIMIT: u32 = if RT { MAX / 4 } else { MAX / 2 };

        // SAFETY: These have no requirements.
        unsafe {
            let count = bindings::softirq_count();
            // The lock of `CONFIG_PREEMPT_RT` is not taken where that could sleep.
            let would_sleep = RT && count == 0 && !bindings::preemptible();

            Softirq::EXCLUSIVE
                && !would_sleep
                && !bindings::in_nmi()
                && !bindings::in_hardirq()
                && !bindings::irqs_disabled()
                && count <= LIMIT
        }
    }

    /// Disables bottom halves on this CPU.
    ///
    /// Returns [`None`] in a hard interrupt or an NMI, and with interrupts disabled: enabling
    /// bottom halves again may run softirqs, which is not allowed there. Also if bottom halves were
    /// disabled dozens of times already, before the count of that overflows. Sleeps only with
    /// `CONFIG_PREEMPT_RT`, where that is possible.
    #[inline]
    pub fn new() -> Option<Self> {
        if !Self::is_possible() {
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
        // dropped, and the token's lifetime ends before. The guard is not sent to another context.
        unsafe { Softirq::assume() }
    }
}

impl Drop for BhGuard {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: This has no requirements.
        if unsafe { bindings::irqs_disabled() } {
            return enable_with_interrupts_disabled(self);
        }
        // SAFETY: By the type invariants, they were disabled for this guard. Interrupts are
        // enabled.
        unsafe { bindings::local_bh_enable() };
    }
}

/// Enables bottom halves for a guard without running softirqs, which would enable interrupts. Those
/// that are pending run in ksoftirqd, which nothing has woken while bottom halves were disabled.
#[cfg(not(CONFIG_PREEMPT_RT))]
#[cold]
#[inline(never)]
fn enable_with_interrupts_disabled(_guard: &mut BhGuard) {
    // SAFETY: By the type invariants, they were disabled for this guard, which is being dropped.
    // Interrupts are disabled.
    unsafe {
        bindings::_local_bh_enable();
        let pending = bindings::local_softirq_pending();
        if pending != 0 && !bindings::in_interrupt() {
            bindings::raise_softirq_irqoff(pending.trailing_zeros());
        }
    }
}

/// Keeps bottom halves disabled: they are a lock, which is not released with interrupts disabled,
/// and `local_bh_enable()` would forget that it is held.
#[cfg(CONFIG_PREEMPT_RT)]
#[cold]
#[inline(never)]
fn enable_with_interrupts_disabled(_guard: &mut BhGuard) {
    crate::warn_on!(true);
}
