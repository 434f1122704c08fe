// SPDX-License-Identifier: GPL-2.0

//! The poll function of queue vectors, and the end of their pollers.

use super::{
    driver::DmaStopped,
    shared::{
        self,
        Shared, //
    },
    vector::Vector,
    Doorbell,
    Driver, //
};

use crate::{
    bindings,
    net::napi::{
        Poll,
        Polled,
        RxClosed, //
    },
    prelude::*, //
};

/// A vector of a device of driver `T`.
pub(super) type VectorOf<T> = Vector<<T as Driver>::Poller<'static>>;

/// The poll function of vectors of driver `T`.
///
/// # Safety
///
/// To be called by the core for a `napi` that is part of a [`VectorOf<T>`], of a device of that
/// driver.
pub(super) unsafe extern "C" fn poll_callback<T: Driver>(
    napi: *mut bindings::napi_struct,
    budget: c_int,
) -> c_int {
    // SAFETY: `napi` is the first member of `Napi`, which is the first member of a vector. It is
    // not freed before NAPI is disabled, and, since we are in an RCU read side critical section,
    // not before we return.
    let vector = unsafe { &*napi.cast_const().cast::<VectorOf<T>>() };
    // SAFETY: By the safety requirements. The device outlives the vector.
    let shared = unsafe { shared::of::<T>(vector.dev()) };

    if !vector.early.is_over() {
        return vector.complete_early(budget);
    }
    // SAFETY: This is the poll function, and by the safety requirements.
    match unsafe { poll(vector, shared, budget) } {
        Some(polled) => complete(vector, shared, polled, budget),
        None => 0,
    }
}

/// Lets the driver poll, unless it does so already: then this is netpoll, and returns [`None`].
///
/// # Safety
///
/// To be called by the poll function of `vector`, which the core called with `budget`. `shared`
/// must be that of its device.
#[inline]
unsafe fn poll<T: Driver>(
    vector: &VectorOf<T>,
    shared: &Shared<T>,
    budget: c_int,
) -> Option<Polled> {
    // SAFETY: By the safety requirements. The poller is not used after this function.
    let (_entered, poller) = unsafe { vector.enter(budget) }?;
    // SAFETY: We are the poll function of the instance, which the core called with `budget`. The
    // number is that of this vector.
    let cx = unsafe { Poll::new(vector.napi(), budget, vector.index) };

    // SAFETY: Where there is a token, the core has called us without the lock of a queue, and the
    // driver's poll function has given back those that it took.
    let _doorbells = unsafe { T::Doorbell::begin(cx.softirq()) };

    if let Some(complete) = T::OPS.complete_xdp {
        if !cx.is_netpoll() {
            if let Some(target) = shared.targets.get(vector.index) {
                // SAFETY: This is the poll function of the vector, whose ring this is.
                unsafe { complete(shared.dev(), vector.index, target) };
            }
        }
    }
    let polled = match poller {
        Some(poller) => T::poll(shared.data(), poller, &cx),
        None => Polled::Idle { received: 0 },
    };
    cx.flush_redirected();
    Some(polled)
}

/// Completes the NAPI instance if the driver is idle. Returns the work done, for the core.
#[inline]
fn complete<T: Driver>(
    vector: &VectorOf<T>,
    shared: &Shared<T>,
    polled: Polled,
    budget: c_int,
) -> c_int {
    match polled {
        Polled::Busy => budget,
        // From netpoll: the owner of the instance completes it.
        Polled::Idle { .. } if budget <= 0 => 0,
        Polled::Idle { received } => {
            // A full budget means that the instance stays scheduled; a driver that says it is idle
            // has received less, whatever it claims.
            let done = c_int::try_from(received).map_or(budget - 1, |n| n.min(budget - 1));

            // SAFETY: The instance is being polled by us. From here on another CPU may poll it: the
            // poller must not be used any more.
            if unsafe { bindings::napi_complete_done(vector.napi().as_raw(), done) } {
                T::rearm(shared.data(), vector.index);
            }
            done
        }
    }
}

/// Drops a vector, and gives its poller back to the driver if that may have used it.
///
/// # Safety
///
/// NAPI must not be enabled. The NIC must have been stopped or reset.
pub(super) unsafe fn close<T: Driver>(vector: Pin<KBox<VectorOf<T>>>, shared: &Shared<T>) {
    if !T::HAS_CLOSED {
        return;
    }
    vector.free_irq();
    // SAFETY: By the safety requirements; the vector is dropped after this.
    if let Some(poller) = unsafe { vector.take_used_poller() } {
        // SAFETY: By the safety requirements; the memory goes with the vector.
        let stopped = unsafe { DmaStopped::new(shared.dev(), RxClosed::new(vector.napi().id())) };

        T::closed(shared.data(), poller, &stopped);
    }
}
