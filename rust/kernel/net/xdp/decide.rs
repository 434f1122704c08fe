// SPDX-License-Identifier: GPL-2.0

//! Those who decide on received frames.

use super::{
    BpfProgram,
    HandlerHook,
    Program,
    ProgramKind,
    Verdict,
    XdpBuff,
    XdpFormat,
    XdpPolling, //
};

use self::private::Sealed;

/// Those who decide on received frames: a [`Program`], whatever it is, or the one of both that it
/// is known to be.
pub trait Decide<'p>: Copy + Sealed {
    /// See [`XdpPolling::run`].
    fn decide<F: XdpFormat>(
        self,
        ring: &mut XdpPolling<'_, 'p, F>,
        buff: XdpBuff<'p, F>,
        words: [u64; 2],
    ) -> Verdict<'p, F>;
}

impl<'p> Decide<'p> for Program<'p> {
    #[inline(always)]
    fn decide<F: XdpFormat>(
        self,
        ring: &mut XdpPolling<'_, 'p, F>,
        buff: XdpBuff<'p, F>,
        words: [u64; 2],
    ) -> Verdict<'p, F> {
        match self.kind() {
            ProgramKind::Bpf(program) => program.decide(ring, buff, words),
            ProgramKind::Handler(handler) => handler.decide(ring, buff, words),
        }
    }
}

impl<'p> Decide<'p> for BpfProgram<'p> {
    #[inline(always)]
    fn decide<F: XdpFormat>(
        self,
        ring: &mut XdpPolling<'_, 'p, F>,
        buff: XdpBuff<'p, F>,
        words: [u64; 2],
    ) -> Verdict<'p, F> {
        ring.run_program(self, buff, words)
    }
}

impl<'p> Decide<'p> for HandlerHook<'p> {
    #[inline(always)]
    fn decide<F: XdpFormat>(
        self,
        ring: &mut XdpPolling<'_, 'p, F>,
        buff: XdpBuff<'p, F>,
        _words: [u64; 2],
    ) -> Verdict<'p, F> {
        ring.handle(self.hook(), buff)
    }
}

impl<'p, F: XdpFormat> XdpPolling<'_, 'p, F> {
    /// Has a program, or a handler, decide on a frame, whose descriptor has these words, and does
    /// what it wants.
    ///
    /// The buffers of a dropped frame go back to the ring: its `refill()` tells of them.
    #[inline(always)]
    pub fn run(
        &mut self,
        by: impl Decide<'p>,
        buff: XdpBuff<'p, F>,
        words: [u64; 2],
    ) -> Verdict<'p, F> {
        by.decide(self, buff, words)
    }
}

mod private {
    use super::{
        BpfProgram,
        HandlerHook,
        Program, //
    };

    pub trait Sealed {}

    impl Sealed for Program<'_> {}
    impl Sealed for BpfProgram<'_> {}
    impl Sealed for HandlerHook<'_> {}
}
