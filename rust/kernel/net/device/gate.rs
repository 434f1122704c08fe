// SPDX-License-Identifier: GPL-2.0

//! Exclusion of netpoll where the core's does not suffice.
//!
//! - The core lets only one CPU poll an instance, but the poll loop takes the lock that excludes
//!   netpoll only if netpoll has been set up before. If it is set up while the poll function runs,
//!   it calls that a second time, on another CPU or in an interrupt of this one: [`Gate`].
//! - Netpoll transmits if it gets the lock of the queue at once. Without SMP, a spinlock can always
//!   be taken, also by an interrupt of code that holds it: [`TxGate`].

#[cfg(any(CONFIG_NETPOLL, CONFIG_KUNIT))]
#[cfg_attr(not(CONFIG_NETPOLL), allow(dead_code, reason = "for tests"))]
mod closing {
    use crate::{
        ffi::c_int,
        sync::atomic::{
            Acquire,
            Atomic,
            Release, //
        }, //
    };

    /// Lets one caller at a time through.
    pub(in crate::net::device) struct Gate(Atomic<i32>);

    /// The proof of having been let through. Dropping it opens the gate again.
    pub(in crate::net::device) struct Entered<'a>(&'a Atomic<i32>);

    impl Gate {
        pub(in crate::net::device) fn new() -> Self {
            Self(Atomic::new(0))
        }

        /// Lets a caller through. While another one is inside, a caller with a budget waits; one
        /// without, which is netpoll, may have interrupted that other caller, and gets [`None`].
        #[inline]
        pub(in crate::net::device) fn enter(&self, budget: c_int) -> Option<Entered<'_>> {
            // `Acquire` and `Release` order the accesses to what the gate protects.
            while self.0.xchg(1, Acquire) != 0 {
                if budget <= 0 {
                    return None;
                }
                // Netpoll has interrupts off, and only completes transmitted packets.
                core::hint::spin_loop();
            }
            Some(Entered(&self.0))
        }
    }

    impl Drop for Entered<'_> {
        #[inline]
        fn drop(&mut self) {
            self.0.store(0, Release);
        }
    }
}

#[cfg(any(not(CONFIG_NETPOLL), CONFIG_SMP))]
mod open {
    use crate::ffi::c_int;

    use core::marker::PhantomData;

    /// Lets every caller through: there is nothing to exclude.
    pub(in crate::net::device) struct Gate;

    /// The proof of having been let through.
    pub(in crate::net::device) struct Entered<'a>(PhantomData<&'a Gate>);

    impl Gate {
        pub(in crate::net::device) fn new() -> Self {
            Self
        }

        #[inline]
        pub(in crate::net::device) fn enter(&self, _budget: c_int) -> Option<Entered<'_>> {
            Some(Entered(PhantomData))
        }
    }

    impl Drop for Entered<'_> {
        #[inline]
        fn drop(&mut self) {}
    }
}

#[cfg(CONFIG_NETPOLL)]
pub(super) use self::closing::{
    Entered,
    Gate, //
};

#[cfg(not(CONFIG_NETPOLL))]
pub(super) use self::open::{
    Entered,
    Gate, //
};

#[cfg(all(CONFIG_NETPOLL, not(CONFIG_SMP)))]
pub(super) use self::closing::{
    Entered as TxEntered,
    Gate as TxGate, //
};

#[cfg(any(not(CONFIG_NETPOLL), CONFIG_SMP))]
pub(super) use self::open::{
    Entered as TxEntered,
    Gate as TxGate, //
};

#[cfg(CONFIG_KUNIT)]
#[macros::kunit_tests(rust_net_gate)]
mod tests {
    use super::closing::Gate;

    /// Also where the kernel has no use for such a gate.
    #[test]
    fn one_at_a_time_is_let_through() {
        let gate = Gate::new();
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
