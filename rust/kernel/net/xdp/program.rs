// SPDX-License-Identifier: GPL-2.0

//! The program of a device, or the handler in its place.

use super::handler::Hook;

use crate::{
    bindings,
    net::napi,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed, //
        },
        Arc, //
    }, //
};

use core::{
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    }, //
};

/// The bit that tells a handler from a program, both of which are aligned to more than that.
const HOOK: usize = 1;

const _: () = assert!(align_of::<Hook>() > HOOK);

/// The program of a device, or its handler, which its driver has among its data, see
/// [`XdpOps::attachment`].
///
/// [`XdpOps::attachment`]: crate::net::device::xdp::XdpOps::attachment
///
/// # Invariants
///
/// `program` is null, or points to a program to which `self` owns a reference, or with the bit
/// `HOOK`, to a `Hook`, likewise. One that was taken out is released in a way that waits for RCU
/// readers.
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

    /// Whether there is a program or a handler, or will be one: receive rings are to be made for it
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
        let program = Program {
            program,
            _poll: PhantomData,
        };
        match program.hook() {
            Some(hook) if hook.is_revoked() => None,
            _ => Some(program),
        }
    }

    /// Whether there is a handler, and not a program. With RTNL held, this does not change.
    pub(in crate::net) fn has_hook(&self) -> bool {
        is_hook(self.program.load(Relaxed))
    }

    /// Attaches a handler in place of what there is, or detaches that.
    ///
    /// Context: process context.
    pub(in crate::net) fn set_hook(&self, hook: Option<Arc<Hook>>) {
        let is_for_one_buffer = hook.is_some();
        let program = hook.map_or(ptr::null_mut(), |hook| {
            Arc::into_raw(hook)
                .cast_mut()
                .map_addr(|address| address | HOOK)
                .cast()
        });

        self.is_for_one_buffer.store(is_for_one_buffer, Relaxed);
        // INVARIANT: The reference is `self`'s.
        self.exchange(program);
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
        self.exchange(program);
    }

    /// Puts a program or a handler in place of what there is, and releases that.
    fn exchange(&self, program: *mut bindings::bpf_prog) {
        let old = self.program.xchg(program, Full);

        if is_hook(old) {
            // SAFETY: Handlers are attached and detached in process context. By the type
            // invariants, the reference was ours, and nobody has found the hook since.
            unsafe {
                bindings::synchronize_net();
                drop(Arc::from_raw(hook_of(old)));
            }
        } else if !old.is_null() {
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

/// Whether this is a handler, and not a program.
#[inline(always)]
fn is_hook(program: *mut bindings::bpf_prog) -> bool {
    program.addr() & HOOK != 0
}

/// The hook of a handler.
#[inline(always)]
fn hook_of(program: *mut bindings::bpf_prog) -> *const Hook {
    program.map_addr(|address| address & !HOOK).cast::<Hook>()
}

/// The program of a device, or its handler, during a run of the poll function, see
/// [`Attachment::program`].
///
/// # Invariants
///
/// `program` is valid during `'p`, a run of a poll function. With `HOOK`, it is a `Hook`.
#[derive(Clone, Copy)]
pub struct Program<'p> {
    program: NonNull<bindings::bpf_prog>,
    _poll: PhantomData<&'p napi::Poll<'p>>,
}

impl<'p> Program<'p> {
    /// The handler, if it is one.
    #[inline(always)]
    pub(super) fn hook(self) -> Option<&'p Hook> {
        let program = self.program.as_ptr();

        // SAFETY: By the type invariants.
        is_hook(program).then(|| unsafe { &*hook_of(program) })
    }

    /// The program, if it is one: a handler never sees frames in memory of users.
    #[inline]
    pub fn as_bpf(self) -> Option<BpfProgram<'p>> {
        match self.kind() {
            ProgramKind::Bpf(program) => Some(program),
            ProgramKind::Handler(_) => None,
        }
    }

    /// Which of them it is. A driver's loop for one of them is shorter than one for both.
    #[inline]
    pub fn kind(self) -> ProgramKind<'p> {
        match self.hook() {
            // INVARIANT: There is no hook.
            None => ProgramKind::Bpf(BpfProgram(self)),
            Some(hook) => ProgramKind::Handler(HandlerHook(hook)),
        }
    }

    /// The program. It must not be a handler.
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

/// A [`Program`] that is not a handler.
///
/// # Invariants
///
/// It has no hook.
#[derive(Clone, Copy)]
pub struct BpfProgram<'p>(Program<'p>);

impl<'p> BpfProgram<'p> {
    #[inline(always)]
    pub(super) fn program(self) -> Program<'p> {
        self.0
    }
}

/// The handler of a device, during a run of the poll function.
#[derive(Clone, Copy)]
pub struct HandlerHook<'p>(&'p Hook);

impl<'p> HandlerHook<'p> {
    #[inline(always)]
    pub(super) fn hook(self) -> &'p Hook {
        self.0
    }
}

/// The kinds of a [`Program`].
#[derive(Clone, Copy)]
pub enum ProgramKind<'p> {
    /// A program.
    Bpf(BpfProgram<'p>),
    /// A handler.
    Handler(HandlerHook<'p>),
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
