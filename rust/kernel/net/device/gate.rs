// SPDX-License-Identifier: GPL-2.0

//! Exclusion of netpoll where the core's does not suffice.
//!
//! - The core lets only one CPU poll an instance, but the poll loop takes the lock that excludes
//!   netpoll only if netpoll has been set up before. If it is set up while the poll function runs,
//!   it calls that a second time, on another CPU or in an interrupt of this one: [`Gate`].
//! - Netpoll transmits if it gets the lock of the queue at once. Without SMP, a spinlock can always
//!   be taken, also by an interrupt of code that holds it: [`TxGate`].

use crate::{
    ffi::c_int,
    sync::atomic::{
        Acquire,
        Atomic,
        Release, //
    }, //
};

const NETPOLL: bool = cfg!(CONFIG_NETPOLL);

/// For poll functions.
pub(super) type Gate = GateWords<{ NETPOLL as usize }>;

/// The proof of having passed a [`Gate`].
pub(super) type Entered<'a> = Passed<'a, { NETPOLL as usize }>;

const TX_NETPOLL: bool = NETPOLL && !cfg!(CONFIG_SMP);

/// For transmit queues.
pub(super) type TxGate = GateWords<{ TX_NETPOLL as usize }>;

/// The proof of having passed a [`TxGate`].
pub(super) type TxEntered<'a> = Passed<'a, { TX_NETPOLL as usize }>;

/// Lets one caller at a time through, or with no words every caller: there is nothing to exclude.
pub(super) struct GateWords<const N: usize>([Atomic<i32>; N]);

/// The proof of having been let through. Dropping it opens the gate again.
pub(super) struct Passed<'a, const N: usize>(&'a [Atomic<i32>; N]);

impl<const N: usize> GateWords<N> {
    pub(super) fn new() -> Self {
        Self([const { Atomic::new(0) }; N])
    }

    /// Lets a caller through. While another one is inside, a caller with a budget waits; one
    /// without, which is netpoll, may have interrupted that other caller, and gets [`None`].
    #[inline]
    pub(super) fn enter(&self, budget: c_int) -> Option<Passed<'_, N>> {
        // `Acquire` and `Release` order the accesses to what the gate protects.
        for word in &self.0 {
            while word.xchg(1, Acquire) != 0 {
                if budget <= 0 {
                    return None;
                }
                // Netpoll has interrupts off, and only completes transmitted packets.
                core::hint::spin_loop();
            }
        }
        Some(Passed(&self.0))
    }
}

impl<const N: usize> Drop for Passed<'_, N> {
    #[inline]
    fn drop(&mut self) {
        for word in self.0 {
            word.store(0, Release);
        }
    }
}

#[macros::kunit_tests(rust_net_gate)]
mod tests {
    use super::*;

    /// Also where the kernel has no use for such a gate.
    #[test]
    fn one_at_a_time_is_let_through() {
        let gate = GateWords::<1>::new();
        let entered = gate.enter(64);

        assert!(entered.is_some());
        // Netpoll does not wait: it may have interrupted the one that is inside.
        assert!(gate.enter(0).is_none());
        assert!(gate.enter(-1).is_none());
        drop(entered);
        assert!(gate.enter(0).is_some());
        assert!(gate.enter(64).is_some());
    }
}
