// SPDX-License-Identifier: GPL-2.0

//! Programs that decide on received frames in memory of users.

use super::{
    needs_sync,
    XskFrame,
    XskRing, //
};

use crate::{
    bindings,
    net::{
        napi::Poll,
        queue::{
            Place,
            RingSlots, //
        },
        xdp::{
            frame::XdpFrame,
            hints::Hints,
            ring::except,
            BpfProgram,
            XdpFormat, //
        }, //
    },
    prelude::*,
    sync::barrier, //
};

use core::ptr::{
    self,
    NonNull, //
};

impl<F: XdpFormat> XskRing<F> {
    /// Starts to take what the NIC has received. Takes back what it has sent.
    ///
    /// # Errors
    ///
    /// As for [`Self::refill`].
    #[inline]
    pub fn poll<'a, 'p>(&'a mut self, cx: &'p Poll<'_>) -> Result<XskPolling<'a, 'p, F>> {
        self.complete(cx)?;
        // SAFETY: The pool is there, as this was checked.
        let syncs = unsafe { needs_sync(self.pool.as_raw()) };
        // INVARIANT: As above.
        Ok(XskPolling {
            lens: self.room.whole.saturating_sub(bindings::ETH_HLEN - 1),
            ring: self,
            cx,
            offered: Hints::default(),
            syncs,
        })
    }
}

/// The next frame of a ring, or the way to take it.
pub enum XskNext<'p> {
    /// The descriptor of a frame in one buffer.
    One(XskReceived<'p>),
    /// A frame that is not as most are, which was not taken: see [`XskPolling::take_other`].
    Other,
}

/// A descriptor that the NIC has completed.
pub struct XskReceived<'p> {
    /// The first word.
    pub info: u64,
    /// The second word.
    pub status: u64,
    /// The number of bytes, if there is a frame.
    pub len: u16,
    /// The frame; [`None`] if the length was less than that of an Ethernet header, or more than the
    /// NIC may write.
    pub frame: Option<XskFrame<'p>>,
}

/// The decision of a program on a frame, with what is left of that.
#[must_use = "a frame that is to pass would be dropped"]
pub enum XskVerdict<T> {
    /// It goes to the stack.
    Pass(T),
    /// It was dropped.
    Dropped,
    /// It leaves by the device that has received it, with so many bytes. The NIC has to be told:
    /// [`XskRing::take_tx_tail`].
    Transmitted(u32),
    /// It went to a socket, or, as a copy, to another device or CPU.
    Redirected,
    /// It was dropped, as the program has failed, or wants what there is no room for, as in the
    /// ring of a socket. Users can trace this (`xdp:xdp_exception`).
    Aborted,
}

/// A ring that is being polled.
///
/// # Invariants
///
/// The instance of `ring` is being polled, longer than `'p`, and not by netpoll. `syncs` is that of
/// its pool, and `lens` the number of lengths, from that of a header on, that its frames can have.
pub struct XskPolling<'a, 'p, F: XdpFormat> {
    pub(super) ring: &'a mut XskRing<F>,
    pub(super) cx: &'p Poll<'p>,
    pub(super) offered: Hints,
    pub(super) syncs: bool,
    lens: u32,
}

impl<'p, F: XdpFormat> XskPolling<'_, 'p, F> {
    /// Lets programs have these hints of the frames that are taken from now on. Without this, they
    /// have none.
    #[inline]
    pub fn offer(&mut self, hints: Hints) {
        self.offered = hints;
    }

    /// Takes the next descriptor, if the NIC is done with it. A frame that is not in one buffer, or
    /// that is damaged, is left to [`Self::take_other`].
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would be borrowed by a `for` loop"
    )]
    #[inline(always)]
    pub fn next(&mut self) -> Option<XskNext<'p>> {
        let ring = &*self.ring;
        let place = ring.slots.place(ring.next_done);

        // SAFETY: By the type invariants, the instance has the memory.
        let status = unsafe { ring.slots.second(place) };
        if status & F::DONE == 0 {
            return None;
        }
        if !F::is_ordinary(status) || ring.is_lost {
            return Some(XskNext::Other);
        }
        let (mut frame, info, status) = self.take(place, status)?;
        let len = F::len(status);

        // One comparison: what is less than a header wraps.
        if u32::from(len).wrapping_sub(bindings::ETH_HLEN) >= self.lens {
            refuse(frame);
            return Some(XskNext::One(XskReceived {
                info,
                status,
                len: 0,
                frame: None,
            }));
        }
        // SAFETY: Just checked, and the descriptor is done.
        unsafe { frame.received(len, [info, status], self.offered, self.syncs) };
        Some(XskNext::One(XskReceived {
            info,
            status,
            len,
            frame: Some(frame),
        }))
    }

    /// Takes the frame of the next descriptor, whose second word is `status`, with both words. If
    /// the NIC is not done with it, there is none.
    #[inline(always)]
    pub(super) fn take(&mut self, place: Place, status: u64) -> Option<(XskFrame<'p>, u64, u64)> {
        let ring = &mut *self.ring;

        if status & F::DONE == 0 {
            return None;
        }
        // A descriptor that the NIC does not own has no frame: this is an old done bit.
        //
        // SAFETY: By the type invariants, the instance has the memory.
        let buff = unsafe { ring.held(place) }.take()?;
        // The NIC wrote the first word and the frame before the second word.
        barrier::dma_mb(barrier::Read);
        // Half of this word may be from before the NIC's write.
        //
        // SAFETY: As above.
        #[cfg(not(CONFIG_64BIT))]
        let status = unsafe { ring.slots.second(place) };
        // SAFETY: As above.
        let info = unsafe { ring.slots.first(place) };

        // INVARIANT: It has no frame.
        ring.next_done = ring.next_done.wrapping_add(RingSlots::WORDS);
        // SAFETY: It is of the pool of this ring, which has given it up.
        Some((unsafe { XskFrame::new(buff) }, info, status))
    }

    /// Has a program decide on a frame, and does what it wants.
    #[inline(always)]
    pub fn run(
        &mut self,
        program: BpfProgram<'p>,
        frame: XskFrame<'p>,
    ) -> XskVerdict<XskFrame<'p>> {
        // SAFETY: The program is valid. This is the poll function of an instance, and not netpoll:
        // so bottom halves are disabled, and the core has set the context of programs that
        // redirect. The frame is ours, as far as it is not the user's.
        let action =
            unsafe { bindings::bpf_prog_run_xdp(program.program().as_raw(), frame.as_raw()) };

        // Most frames are for a socket.
        if action == bindings::xdp_action_XDP_REDIRECT {
            self.redirect(program, frame)
        } else {
            self.act(program, frame, action)
        }
    }

    /// Does what a program wants that does not redirect a frame.
    // Not inlined: it would take the registers of those that it redirects.
    #[inline(never)]
    fn act(
        &mut self,
        program: BpfProgram<'p>,
        frame: XskFrame<'p>,
        action: bindings::xdp_action,
    ) -> XskVerdict<XskFrame<'p>> {
        match action {
            bindings::xdp_action_XDP_PASS => XskVerdict::Pass(frame),
            bindings::xdp_action_XDP_DROP => XskVerdict::Dropped,
            bindings::xdp_action_XDP_TX => self.send_back(program, frame),
            other => self.abort(program, other),
        }
    }

    /// Redirects a frame: to a socket, or a copy to another device or CPU.
    #[inline(always)]
    fn redirect(
        &mut self,
        program: BpfProgram<'p>,
        frame: XskFrame<'p>,
    ) -> XskVerdict<XskFrame<'p>> {
        // SAFETY: This is a poll function, with the context of programs that redirect.
        let map = unsafe { (*bindings::bpf_net_ctx_get_ri()).map_type };
        let is_redirected = if map == bindings::bpf_map_type_BPF_MAP_TYPE_XSKMAP {
            self.to_socket(program, frame)
        } else {
            self.copy(program, frame)
        };

        // Also if it has failed: some copies of a frame for several devices may be on their way.
        self.cx.set_redirected();
        if is_redirected {
            XskVerdict::Redirected
        } else {
            self.abort(program, bindings::xdp_action_XDP_REDIRECT)
        }
    }

    /// Gives a frame to the socket that the program wants. Returns whether that has it.
    #[inline(always)]
    fn to_socket(&self, program: BpfProgram<'p>, frame: XskFrame<'p>) -> bool {
        let raw = frame.as_raw();

        // SAFETY: The program has run for this frame, in this poll function, and the frame has the
        // description of this queue.
        let error = unsafe {
            bindings::xdp_do_redirect((*(*raw).rxq).dev, raw, program.program().as_raw())
        };

        if error != 0 {
            // C may have given the frame back. To do so again, as this does, changes nothing.
            return false;
        }
        // C has it.
        let _ = frame.into_raw();
        true
    }

    /// Redirects a copy of a frame. Returns whether it is on its way.
    ///
    /// C would lose the copy that it makes in `xdp_do_redirect()` if that fails.
    #[inline(never)]
    fn copy(&self, program: BpfProgram<'p>, frame: XskFrame<'p>) -> bool {
        let raw = frame.as_raw();
        // Without one, C traces that.
        let copy = frame
            .into_copy()
            .map_or(ptr::null_mut(), |copy| copy.into_raw().as_ptr());

        // SAFETY: The program has run for this frame, in this poll function, and the description is
        // there, with that of this queue. The copy is ours; if this succeeds, C has it. It may call
        // `ndo_xdp_xmit()` of any device, which has no way to this ring.
        let error = unsafe {
            bindings::xdp_do_redirect_frame(
                (*(*raw).rxq).dev,
                raw,
                copy,
                program.program().as_raw(),
            )
        };

        if error != 0 {
            // SAFETY: C has left it to us.
            drop(NonNull::new(copy).map(|copy| unsafe { XdpFrame::from_raw(copy) }));
        }
        error == 0
    }

    /// Sends a frame back, as the program has left it.
    fn send_back(
        &mut self,
        program: BpfProgram<'p>,
        frame: XskFrame<'p>,
    ) -> XskVerdict<XskFrame<'p>> {
        let XskRing { tx, pool, .. } = &mut *self.ring;

        // SAFETY: By the type invariants. The frame is of the pool of a ring that is being polled,
        // of which there is one.
        match unsafe { tx.send_back(pool, frame) } {
            Ok(len) => XskVerdict::Transmitted(len.into()),
            Err(frame) => {
                drop(frame);
                self.abort(program, bindings::xdp_action_XDP_TX)
            }
        }
    }

    /// Reports that a program has failed, or wants what there is not.
    #[cold]
    pub(super) fn abort<T>(
        &self,
        program: BpfProgram<'p>,
        action: bindings::xdp_action,
    ) -> XskVerdict<T> {
        // SAFETY: By the type invariants, the description of the queue is valid, and so is the
        // device.
        unsafe { except((*self.ring.rxq.as_ptr()).dev, program.program(), action) };
        XskVerdict::Aborted
    }
}

/// Gives a frame back that the NIC lies about.
#[cold]
#[inline(never)]
fn refuse(frame: XskFrame<'_>) {
    drop(frame);
}
