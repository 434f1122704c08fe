// SPDX-License-Identifier: GPL-2.0

//! Scheduling a poll function other than by its interrupt.

use super::{
    Attached,
    Napi, //
};

use crate::{
    bindings,
    prelude::*,
    softirq::BhGuard,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        rcu,
        Arc, //
    }, //
};

use core::ptr;

/// Schedules the poll function of a queue vector, from any context.
///
/// For devices whose packets do not come by interrupts: the sender of one calls [`Self::schedule`].
/// A scheduler is made once, and bound to a vector whenever one is added, with [`Napi::bind`]. When
/// the vector goes away, the scheduler stays, and schedules nothing.
///
/// # Invariants
///
/// `napi` is null, or points to an instance that has been added to a device. It is set to null
/// before the instance is deleted, which waits for a grace period of RCU.
pub struct Scheduler {
    napi: Atomic<*mut bindings::napi_struct>,
}

impl Scheduler {
    /// Returns a scheduler of no vector.
    pub fn new() -> Result<Arc<Self>> {
        // INVARIANT: It is null.
        let scheduler = Self {
            napi: Atomic::new(ptr::null_mut()),
        };
        Ok(Arc::new(scheduler, GFP_KERNEL)?)
    }

    /// Schedules the poll function of the vector, to run once more after this. Returns whether
    /// there is one.
    pub fn schedule(&self) -> bool {
        // Enabling bottom halves runs the poll function, if that is possible here.
        let _bh = BhGuard::new();
        let _rcu = rcu::read_lock();

        let napi = self.napi.load(Acquire);
        if napi.is_null() {
            return false;
        }
        // SAFETY: By the type invariants, the instance is not deleted before the end of this read
        // side critical section. This does nothing if it is not enabled.
        unsafe { bindings::napi_schedule(napi) };
        true
    }
}

/// The part of a scheduler that an instance owns.
struct Binding(Arc<Scheduler>);

impl Attached for Binding {
    fn is_dma_memory(&self) -> bool {
        false
    }
}

impl Drop for Binding {
    fn drop(&mut self) {
        // INVARIANT: The instance still exists.
        self.0.napi.store(ptr::null_mut(), Release);
    }
}

impl Napi {
    /// Lets `scheduler` schedule the poll function of this vector, from when it is enabled until
    /// the vector goes away.
    ///
    /// # Errors
    ///
    /// [`EBUSY`] if `scheduler` is bound to a vector that has not gone away.
    ///
    /// Context: process context, while the instance is being set up.
    pub fn bind(&self, scheduler: &Arc<Scheduler>) -> Result {
        // INVARIANT: The instance has been added, and owns the binding. If that fails, the binding
        // is dropped.
        scheduler
            .napi
            .cmpxchg(ptr::null_mut(), self.as_raw(), Release)
            .map_err(|_| EBUSY)?;
        self.attach(Arc::new(Binding(scheduler.clone()), GFP_KERNEL)?)
    }
}
