// SPDX-License-Identifier: GPL-2.0

//! Modules that see received frames in place of a program.

pub use crate::net::napi::Port;

use crate::{
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

use core::ptr::NonNull;

/// The function of a module for the frames of a device, before these are packets of the stack, see
/// [`Handlers::attach`].
///
/// [`Handlers::attach`]: crate::net::device::xdp::Handlers::attach
pub trait Handler: Send + Sync + 'static {
    /// Decides on a frame: all of its bytes, from the Ethernet header on, without the check
    /// sequence. They are the handler's alone until it returns, to be read and written.
    ///
    /// There is at least an Ethernet header. A frame has one buffer: the MTU is limited while there
    /// is a handler, and what is longer is dropped.
    ///
    /// It runs in the poll function of a receive queue, with bottom halves disabled: of several
    /// queues, on several CPUs, at the same time.
    fn handle<'a>(&'a self, frame: &mut [u8]) -> Action<'a>;
}

/// The decision of a [`Handler`] on a frame.
pub enum Action<'a> {
    /// It goes to the stack, as the handler has left it. If the NIC has verified a checksum, the
    /// stack does not do so again.
    Pass,
    /// It is dropped.
    Drop,
    /// It leaves by the device that has received it.
    SendBack,
    /// It leaves by another one, or this one. Up to 16 of them that follow each other go together.
    Forward(&'a Port),
}

/// A handler of a type that the receive loop does not know.
///
/// Its driver decides how long the device refers to it. So it is made useless before its module is
/// unloaded, wherever it is.
///
/// # Invariants
///
/// Until a grace period of RCU has passed since `is_revoked` was set, `call` may be called with
/// `data`.
pub(in crate::net) struct Hook {
    pub(super) call: unsafe fn(NonNull<c_void>, &mut [u8]) -> Action<'static>,
    pub(super) data: NonNull<c_void>,
    is_revoked: Atomic<bool>,
}

// SAFETY: The handler is both.
unsafe impl Send for Hook {}

// SAFETY: As above.
unsafe impl Sync for Hook {}

impl Hook {
    /// # Safety
    ///
    /// The handler, and the code of its module, must exist until a grace period of RCU has passed
    /// since [`Self::revoke`].
    pub(in crate::net) unsafe fn new<H: Handler>(handler: &H) -> Self {
        // INVARIANT: This is the function for that type; the rest by the safety requirements.
        Self {
            call: call::<H>,
            data: NonNull::from(handler).cast(),
            is_revoked: Atomic::new(false),
        }
    }

    /// No poll finds the handler any more.
    pub(in crate::net) fn revoke(&self) {
        self.is_revoked.store(true, Relaxed);
    }

    /// Whether that was done.
    #[inline(always)]
    pub(super) fn is_revoked(&self) -> bool {
        self.is_revoked.load(Relaxed)
    }
}

/// Has a handler decide.
///
/// # Safety
///
/// `data` must be a handler of type `H`, and exist for as long as the result is used.
unsafe fn call<H: Handler>(data: NonNull<c_void>, frame: &mut [u8]) -> Action<'static> {
    // SAFETY: By the safety requirements.
    let handler: &'static H = unsafe { data.cast().as_ref() };

    handler.handle(frame)
}
