// SPDX-License-Identifier: GPL-2.0

//! Frames in several buffers, for programs that can do with them (`xdp.frags`).

use super::{
    flags,
    Fragments,
    Program,
    Verdict,
    XdpBuff,
    XdpFormat,
    XdpPolling,
    XdpReceived, //
};

use crate::{
    bindings,
    net::page_pool::{
        ring::parts::Rest,
        CpuBuffer,
        Received, //
    }, //
};

use core::mem;

impl<'p, F: XdpFormat> XdpPolling<'_, 'p, F> {
    /// Takes the rest of a frame that goes on behind a descriptor, if the NIC is done with it.
    #[cold]
    #[inline(never)]
    pub(super) fn next_of_several(&mut self, first: Received<'p>) -> Option<XdpReceived<'p>> {
        let mut words = [first.info, first.status];
        let whole = match (first.buffer, self.ring.rest()) {
            (Some(buffer), Rest::Missing) => {
                // SAFETY: It was just returned.
                unsafe { self.ring.put_back(buffer) };
                return None;
            }
            (Some(buffer), Rest::There(count)) => self.join(buffer, count, &mut words),
            _ => None,
        };

        Some(XdpReceived {
            info: words[0],
            status: words[1],
            buff: whole,
        })
    }

    /// Takes `count` descriptors, whose buffers belong to a frame, and the words of the last one.
    fn join(
        &mut self,
        buffer: CpuBuffer<'p>,
        count: usize,
        words: &mut [u64; 2],
    ) -> Option<XdpBuff<'p>> {
        let mut is_whole = true;

        self.context.raw.data_hard_start = buffer.address();
        for _ in 0..count {
            let Some(part) = self.ring.next() else {
                // The NIC has changed its mind.
                is_whole = false;
                break;
            };

            *words = [part.info, part.status];
            is_whole &= part.buffer.is_some_and(|part| {
                // SAFETY: The frame is in this buffer, of the pool of this ring as the part is.
                // Nothing else has access to it.
                unsafe { part.append_to(&mut self.context.raw) }
            });
        }
        // SAFETY: These are the fragments, which are dropped before the buffer is.
        let fragments = unsafe { Fragments::take(&mut self.context.raw, F::LAYOUT) };

        if !is_whole {
            drop(fragments);
            return None;
        }
        // INVARIANT: The fragments are those that the buffer lists.
        Some(XdpBuff {
            fragments,
            ..XdpBuff::new(buffer, *words)
        })
    }

    /// As [`Self::run`], of a frame in several buffers that the context describes.
    #[cold]
    #[inline(never)]
    pub(super) fn run_several(
        &mut self,
        program: Program<'p>,
        buffer: CpuBuffer<'p>,
        fragments: Fragments<'p>,
    ) -> Verdict<'p> {
        // One that was longer than the limit when the program was attached, or that the NIC has
        // made up.
        if !program.takes_fragments() {
            self.except(program, bindings::xdp_action_XDP_ABORTED);
            self.recycle_all(buffer, Some(fragments));
            return Verdict::Aborted;
        }
        fragments.lend(&mut self.context.raw);
        // SAFETY: The context describes the frame.
        let action = unsafe { self.act(program) };

        // SAFETY: The program has run for this frame, in this context.
        if action == bindings::xdp_action_XDP_REDIRECT && unsafe { self.redirect(program) } {
            // C has the fragments, too.
            *flags(&mut self.context.raw) = 0;
            mem::forget(buffer);
            return Verdict::Redirected;
        }
        // SAFETY: These are the fragments that the program has left. They are dropped before the
        // buffer is.
        let fragments = unsafe { Fragments::take(&mut self.context.raw, F::LAYOUT) };

        match (action, fragments) {
            (bindings::xdp_action_XDP_PASS, fragments) => {
                Verdict::Pass(self.passed(buffer, fragments))
            }
            (bindings::xdp_action_XDP_DROP, fragments) => {
                self.recycle_all(buffer, fragments);
                Verdict::Dropped
            }
            (bindings::xdp_action_XDP_TX, None) => self.transmit(program, buffer),
            (bindings::xdp_action_XDP_TX, Some(fragments)) => {
                self.transmit_several(program, buffer, fragments)
            }
            (other, fragments) => {
                self.except(program, other);
                self.recycle_all(buffer, fragments);
                Verdict::Aborted
            }
        }
    }

    /// Gives the buffers of a frame back to the ring.
    fn recycle_all(&mut self, buffer: CpuBuffer<'p>, fragments: Option<Fragments<'p>>) {
        // First of all: they are listed in the buffer.
        if let Some(mut fragments) = fragments {
            while let Some(part) = fragments.next() {
                self.recycle(part.buffer);
            }
        }
        self.recycle(buffer);
    }

    /// Sends a frame back, as the program has left it.
    fn transmit_several(
        &mut self,
        program: Program<'p>,
        buffer: CpuBuffer<'p>,
        mut fragments: Fragments<'p>,
    ) -> Verdict<'p> {
        let (headroom, len) = self.ends();
        let total = u32::from(len) + fragments.len();
        let mut left = fragments.count();
        let fits = u32::from(F::MIN_LEN)..=u32::from(F::MAX_LEN);

        // SAFETY: By the type invariants, this is the transmit ring.
        if !fits.contains(&total) || !unsafe { self.ring.can_transmit(self.tx, &buffer, 1 + left) }
        {
            self.except(program, bindings::xdp_action_XDP_TX);
            self.recycle_all(buffer, Some(fragments));
            return Verdict::Aborted;
        }
        // CAST: It is not more than `F::MAX_LEN`.
        let of = total as u16;

        // SAFETY: There is room. The parts are where the program has left them. The first buffer,
        // where the others are listed, stays in the ring until that is completed.
        unsafe {
            self.ring
                .transmit_part(self.tx, buffer, headroom, len, of, false);
            while let Some(part) = fragments.next() {
                left -= 1;
                self.ring
                    .transmit_part(self.tx, part.buffer, part.offset, part.len, of, left == 0);
            }
        }
        Verdict::Transmitted(total)
    }
}
