// SPDX-License-Identifier: GPL-2.0

//! The program of a device.

use crate::{
    bindings,
    net::napi,
    sync::atomic::{
        Acquire,
        Atomic,
        Full,
        Relaxed, //
    }, //
};

use core::{
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    }, //
};

/// The program of a device, which its driver has among its data, see [`XdpOps::attachment`].
///
/// [`XdpOps::attachment`]: crate::net::device::xdp::XdpOps::attachment
///
/// # Invariants
///
/// `program` is null, or points to a program to which `self` owns a reference. One that was taken
/// out is released in a way that waits for RCU readers.
pub struct Attachment {
    program: Atomic<*mut bindings::bpf_prog>,
    /// There will be a program, and rings are made for it. For the holder of the lock of the
    /// device's operations.
    is_coming: Atomic<bool>,
    /// Its frames have to be in one buffer.
    is_for_one_buffer: Atomic<bool>,
}

impl Attachment {
    /// No program.
    pub const fn new() -> Self {
        // INVARIANT: It is null.
        Self {
            program: Atomic::new(ptr::null_mut()),
            is_coming: Atomic::new(false),
            is_for_one_buffer: Atomic::new(false),
        }
    }

    /// Whether there is a program, or will be one: receive rings are to be made for it
    /// ([`XdpRing`](super::XdpRing)), and what excludes it is to be refused.
    ///
    /// With the lock of the device's operations held, or RTNL, this does not change.
    #[inline]
    pub fn is_in_use(&self) -> bool {
        self.is_coming.load(Relaxed) || !self.program.load(Relaxed).is_null()
    }

    /// Whether there is a program whose frames have to be in one buffer each: others have said that
    /// they can do with several (`xdp.frags`). As [`Self::is_in_use`], this does not change with
    /// one of the locks held.
    pub fn is_for_one_buffer(&self) -> bool {
        self.is_for_one_buffer.load(Relaxed)
    }

    /// The program, for this run of the poll function.
    #[inline]
    pub fn program<'p>(&self, _cx: &'p napi::Poll<'_>) -> Option<Program<'p>> {
        let program = NonNull::new(self.program.load(Acquire))?;

        // INVARIANT: By the type invariants, it is valid until a grace period has passed since it
        // was taken out. Poll functions run with bottom halves or interrupts disabled, which are
        // sections of RCU readers.
        Some(Program {
            program,
            _poll: PhantomData,
        })
    }

    /// Says that there will be a program, or that there will be none after all.
    pub(in crate::net) fn expect(&self, is_coming: bool) {
        self.is_coming.store(is_coming, Relaxed);
    }

    /// Replaces the program by another one, or by none if it is null.
    ///
    /// # Safety
    ///
    /// `program` must be null, or valid, with a reference that becomes ours.
    pub(in crate::net) unsafe fn replace(&self, program: *mut bindings::bpf_prog) {
        // SAFETY: By the safety requirements.
        let takes_fragments = program.is_null() || unsafe { takes_fragments(program) };

        self.is_for_one_buffer.store(!takes_fragments, Relaxed);
        // INVARIANT: By the safety requirements.
        let old = self.program.xchg(program, Full);

        if !old.is_null() {
            // SAFETY: By the type invariants, the reference was ours. C frees programs after a
            // grace period.
            unsafe { bindings::bpf_prog_put(old) };
        }
    }
}

impl Default for Attachment {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        // SAFETY: It is null.
        unsafe { self.replace(ptr::null_mut()) };
    }
}

/// The program of a device during a run of the poll function, see [`Attachment::program`].
///
/// # Invariants
///
/// `program` is valid during `'p`, a run of a poll function.
#[derive(Clone, Copy)]
pub struct Program<'p> {
    program: NonNull<bindings::bpf_prog>,
    _poll: PhantomData<&'p napi::Poll<'p>>,
}

impl Program<'_> {
    #[inline]
    pub(super) fn as_raw(self) -> *mut bindings::bpf_prog {
        self.program.as_ptr()
    }

    /// Whether it can do with frames in several buffers.
    pub(super) fn takes_fragments(self) -> bool {
        // SAFETY: By the type invariants.
        unsafe { takes_fragments(self.as_raw()) }
    }
}

/// Whether a program can do with frames in several buffers.
///
/// # Safety
///
/// It must be valid.
pub(in crate::net) unsafe fn takes_fragments(program: *mut bindings::bpf_prog) -> bool {
    // SAFETY: By the safety requirements.
    unsafe { (*(*program).aux).xdp_has_frags }
}
