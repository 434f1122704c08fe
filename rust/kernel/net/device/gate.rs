// SPDX-License-Identifier: GPL-2.0

//! Exclusion of netpoll from poll functions.
//!
//! The core lets only one CPU poll an instance. The exception is netpoll: the poll loop takes its
//! lock only if netpoll has been set up by then. If that happens while the poll function runs,
//! netpoll on another CPU, or in an interrupt of this one, calls it a second time.

#[cfg(CONFIG_NETPOLL)]
mod imp {
    use crate::sync::atomic::{
        Acquire,
        Atomic,
        Release, //
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
        pub(in crate::net::device) fn enter(
            &self,
            budget: crate::ffi::c_int,
        ) -> Option<Entered<'_>> {
            // `Acquire` and `Release` order the accesses that the gate protects.
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

#[cfg(not(CONFIG_NETPOLL))]
mod imp {
    use core::marker::PhantomData;

    /// Lets every caller through: there is no netpoll.
    pub(in crate::net::device) struct Gate;

    /// The proof of having been let through.
    pub(in crate::net::device) struct Entered<'a>(PhantomData<&'a Gate>);

    impl Gate {
        pub(in crate::net::device) fn new() -> Self {
            Self
        }

        #[inline]
        pub(in crate::net::device) fn enter(
            &self,
            _budget: crate::ffi::c_int,
        ) -> Option<Entered<'_>> {
            Some(Entered(PhantomData))
        }
    }

    impl Drop for Entered<'_> {
        #[inline]
        fn drop(&mut self) {}
    }
}

pub(super) use self::imp::Gate;
