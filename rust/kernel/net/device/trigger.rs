// SPDX-License-Identifier: GPL-2.0

//! Triggers: interrupts, or none, that have the poll function of a queue vector run.

use super::{
    registration::Inner,
    vector::Vector,
    Driver, //
};

use crate::{
    bindings,
    error::to_result,
    irq::{
        IrqRequest,
        IrqReturn,
        ThreadedIrqReturn, //
    },
    prelude::*,
    str::CString,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

use core::cell::Cell;

/// The reason for the poll function of a queue vector to run, see
/// [`Opening::add_vector`](super::Opening::add_vector).
pub enum Trigger<'up, 'name> {
    /// An interrupt that nothing else raises (MSI-X, MSI). It is named after the device, the string
    /// and the number of the vector.
    Interrupt(IrqRequest<'up>, &'name CStr),
    /// An interrupt that others may raise: the card's events, its other vectors, or other devices
    /// on the same line (INTx). [`Driver::claim`] finds out whether it was the card. The core does
    /// not direct it to a CPU, as it does with the others.
    Shared(IrqRequest<'up>, &'name CStr),
    /// One interrupt that reports received packets, and one for transmitted packets, neither of
    /// which anything else raises. Both have the same poll function run, and [`Driver::rearm`]
    /// turns both on again.
    Split {
        /// The one for received packets.
        rx: IrqRequest<'up>,
        /// The one for transmitted packets.
        tx: IrqRequest<'up>,
    },
    /// No interrupt: a [`Scheduler`](crate::net::napi::Scheduler), or nothing.
    Software,
}

/// The reasons of a card for an interrupt, see [`Driver::claim`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// There is work for the poll function of the vector.
    pub queues: bool,
    /// There is an event for [`Driver::event`].
    pub event: bool,
}

impl Causes {
    /// It was not this card.
    pub const NONE: Self = Self {
        queues: false,
        event: false,
    };
}

/// The causes that a shared interrupt may be asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Phase {
    /// None: the card is quiet, or is not ready to be asked.
    Quiet,
    /// Those of queues: there are no events any more.
    Queues,
    /// All.
    All,
}

/// The interrupt of a queue vector.
pub(super) struct Interrupt {
    irq: u32,
    name: CString,
    is_shared: bool,
    /// For the owner of the vector alone, unlike the rest, which handlers read.
    requested: Cell<bool>,
    /// A [`Phase`].
    phase: Atomic<u32>,
}

/// The interrupts of a vector: one, one for each of its queues, or none.
pub(super) type Interrupts = [Option<Interrupt>; 2];

impl Interrupt {
    /// An interrupt that has not been requested.
    pub(super) fn new(irq: u32, name: CString, is_shared: bool) -> Self {
        Self {
            irq,
            name,
            is_shared,
            requested: Cell::new(false),
            phase: Atomic::new(Phase::Quiet as u32),
        }
    }

    /// Its number, for the core.
    pub(super) fn number(&self) -> c_int {
        // CAST: The core's type for the same number.
        self.irq as c_int
    }

    /// Whether others may request it, too.
    pub(super) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Requests the interrupt of `vector`.
    ///
    /// # Safety
    ///
    /// This must be the interrupt of `vector`, and be freed before that is dropped.
    pub(super) unsafe fn request<T: Driver>(&self, vector: *const Vector<T>) -> Result {
        let cookie = vector.cast_mut().cast::<c_void>();
        let name = self.name.as_char_ptr();

        // SAFETY: The cookie is the one that the handlers expect: a vector, whose first member is
        // its NAPI instance. By the safety requirements, it and the name stay valid until the
        // interrupt is freed.
        to_result(unsafe {
            if self.is_shared {
                let thread: bindings::irq_handler_t = if T::HAS_EVENT {
                    Some(handle_event::<T>)
                } else {
                    None
                };
                bindings::request_threaded_irq(
                    self.irq,
                    Some(handle_shared::<T>),
                    thread,
                    bindings::IRQF_SHARED as usize,
                    name,
                    cookie,
                )
            } else {
                bindings::request_irq(self.irq, Some(handle_interrupt), 0, name, cookie)
            }
        })?;

        self.requested.set(true);
        Ok(())
    }

    /// Changes the causes that the card is asked for. If they become fewer, waits for handlers and
    /// threads that act on others.
    pub(super) fn set_phase(&self, phase: Phase) {
        if !self.is_shared {
            return;
        }
        self.phase.store(phase as u32, Relaxed);
        if phase != Phase::All && self.requested.get() {
            // SAFETY: We own a registration, so the interrupt exists. Process context.
            unsafe { bindings::synchronize_irq(self.irq) };
        }
    }

    /// Frees the interrupt, if it was requested.
    ///
    /// # Safety
    ///
    /// `vector` must be the one that it was requested for, if it was.
    pub(super) unsafe fn free<T: Driver>(&self, vector: *const Vector<T>) {
        if self.requested.replace(false) {
            // SAFETY: We owned this registration. `free_irq()` waits for handlers that are running.
            unsafe { bindings::free_irq(self.irq, vector.cast_mut().cast::<c_void>()) };
        }
    }

    /// The part of `causes` that may be acted on.
    fn admitted<T: Driver>(&self, causes: Causes) -> Causes {
        let phase = self.phase.load(Relaxed);

        Causes {
            queues: causes.queues,
            event: T::HAS_EVENT && causes.event && phase == Phase::All as u32,
        }
    }

    fn is_quiet(&self) -> bool {
        self.phase.load(Relaxed) == Phase::Quiet as u32
    }
}

/// The interrupt of a queue vector.
///
/// # Safety
///
/// To be called by the core, with a pointer to a NAPI instance that has been added to a device.
unsafe extern "C" fn handle_interrupt(_irq: c_int, cookie: *mut c_void) -> bindings::irqreturn_t {
    // SAFETY: The cookie is a NAPI instance, which is deleted after the interrupt has been freed.
    // Interrupts are disabled here; with `CONFIG_PREEMPT_RT` the function disables them itself.
    unsafe { bindings::napi_schedule_irqoff(cookie.cast::<bindings::napi_struct>()) };

    bindings::irqreturn_t(IrqReturn::Handled as c_uint)
}

/// A shared interrupt. It may come at any time after it was requested.
///
/// # Safety
///
/// To be called by the core, with a pointer to a vector of a device of driver `T`.
unsafe extern "C" fn handle_shared<T: Driver>(
    _irq: c_int,
    cookie: *mut c_void,
) -> bindings::irqreturn_t {
    // SAFETY: The cookie is a vector, which is dropped after the interrupt has been freed.
    let vector = unsafe { &*cookie.cast_const().cast::<Vector<T>>() };
    let inner = vector.inner();
    let mut result = IrqReturn::None as c_uint;

    let Some(interrupt) = vector.interrupt() else {
        return bindings::irqreturn_t(result);
    };
    // Others raise it when the card is quiet, not there yet, or asleep.
    if interrupt.is_quiet() || inner.check_reachable().is_err() || !T::HAS_CLAIM {
        return bindings::irqreturn_t(result);
    }

    let claimed = T::claim(inner.data(), vector.index());
    let causes = interrupt.admitted::<T>(claimed);
    if claimed != Causes::NONE {
        result = IrqReturn::Handled as c_uint;
    }
    if causes.queues {
        // SAFETY: The instance is valid, as above. If it is disabled, nothing happens. Interrupts
        // are disabled here; with `CONFIG_PREEMPT_RT` the function disables them itself.
        unsafe { bindings::napi_schedule_irqoff(vector.napi().as_raw()) };
    }
    if causes.event {
        result = ThreadedIrqReturn::WakeThread as c_uint;
    }
    bindings::irqreturn_t(result)
}

/// The thread of a shared interrupt.
///
/// # Safety
///
/// As for [`handle_shared`].
unsafe extern "C" fn handle_event<T: Driver>(
    _irq: c_int,
    cookie: *mut c_void,
) -> bindings::irqreturn_t {
    // SAFETY: As above.
    let vector = unsafe { &*cookie.cast_const().cast::<Vector<T>>() };
    let inner: &Inner<T> = vector.inner();

    // `free_irq()` and `synchronize_irq()` wait for us.
    if T::HAS_EVENT && inner.early_events.is_over() {
        T::event(inner.data(), inner.dev());
    }
    bindings::irqreturn_t(IrqReturn::Handled as c_uint)
}
