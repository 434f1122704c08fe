// SPDX-License-Identifier: GPL-2.0

//! Receive rings whose frames programs see.

use super::{
    hints::{
        Context,
        Hints, //
    },
    rxq::RxqInfo,
    Fragments,
    Program,
    XdpBuff, //
};

use crate::{
    bindings,
    device::{
        self,
        Bound, //
    },
    net::{
        napi::{
            Napi,
            Poll,
            RxClosed,
            RxStopped, //
        },
        page_pool::{
            ring::{
                recycling::Recycling,
                transmit::{
                    TxRing,
                    XdpFormat, //
                }, //
            },
            AnyRxRing,
            CpuBuffer,
            Polling,
            RxRing, //
        },
        queue::RingSize, //
    },
    prelude::*, //
};

use core::{
    mem,
    ops::Deref,
    ptr::NonNull, //
};

/// An [`RxRing`] whose frames are seen by programs, if there is one, with a ring of its own for
/// those that programs send back.
///
/// Its buffers are pages, with the headroom that programs expect.
///
/// # Invariants
///
/// `rxq` points to a description of the queue that belongs to the NAPI instance of `ring`, which
/// keeps it as long as it keeps the memory of `ring`, and is registered with its pool. `tx` was
/// made for `ring`.
pub struct XdpRing<F: XdpFormat> {
    ring: RxRing<F>,
    tx: TxRing<F>,
    rxq: NonNull<bindings::xdp_rxq_info>,
    /// The number of buffers that were given back to the ring, and that the NIC was not told of.
    recycled: usize,
}

// SAFETY: The handle is not tied to a thread; what it refers to is `Send`.
unsafe impl<F: XdpFormat> Send for XdpRing<F> {}

// SAFETY: Nothing can be done with a shared reference but to read numbers.
unsafe impl<F: XdpFormat> Sync for XdpRing<F> {}

impl<F: XdpFormat> XdpRing<F> {
    /// Makes the rings of `napi`, see [`RxRing::new`], with `len` descriptors each.
    ///
    /// Context: process context, while `napi` is being set up, or while its receive queue gets
    /// other memory.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn new(
        dev: &device::Device<Bound>,
        napi: &Napi,
        len: RingSize,
        buffers: u32,
    ) -> Result<Self> {
        const {
            assert!(
                F::LAYOUT.headroom() >= XdpBuff::HEADROOM,
                "programs expect 256 bytes of headroom"
            );
            assert!(
                F::MIN_LEN as usize <= size_of::<bindings::skb_shared_info>(),
                "there is no room to pad a frame"
            );
        };
        // In front of the pool, to which its buffers return.
        let tx = TxRing::new(dev, napi, len)?;
        let ring = RxRing::<F>::new_bidirectional(dev, napi, len, buffers)?;
        // CAST: It was a `u32`.
        let size = F::LAYOUT.size() as u32;
        let rxq = RxqInfo::attach(napi, Some(ring.page_pool()), size)?;

        // INVARIANT: `napi` owns all of them, and there is no other handle to the rings.
        Ok(Self {
            ring,
            tx,
            rxq,
            recycled: 0,
        })
    }

    /// As [`RxRing::dma_address`], of the transmit ring. It has as many descriptors.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn tx_dma_address(&mut self, napi: &Napi) -> Result<u64> {
        self.tx.dma_address(&self.ring, napi)
    }

    /// Lets the NIC begin with the first descriptor of the transmit ring again, which has no frames
    /// then: those that were not sent are lost. Returns its address, and their number.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the queue that has stopped is not the one that the rings were made for;
    /// [`EBUSY`] if interrupts are disabled: buffers return to their pool.
    pub fn rewind_tx(&mut self, stopped: &RxStopped<'_>) -> Result<(u64, usize)> {
        // SAFETY: By the type invariants.
        unsafe { self.tx.rewind(&self.ring, stopped) }
    }

    /// Number of frames that programs have sent back and that the NIC has not sent, when the rings
    /// are not in use any more. Then they are lost. None if `closed` is about other rings.
    pub fn unsent(&self, closed: &RxClosed<'_>) -> usize {
        self.tx.unsent(&self.ring, closed)
    }

    /// The descriptor behind the last frame that programs have sent back, for the NIC's tail
    /// register, if there are frames that the NIC was not told of.
    #[inline]
    pub fn take_tx_tail(&mut self) -> Option<usize> {
        self.tx.take_tail()
    }

    /// Number of frames in the transmit ring.
    #[inline]
    pub fn tx_in_use(&self) -> usize {
        self.tx.in_use()
    }

    /// The transmit ring, for tests.
    #[cfg(CONFIG_KUNIT)]
    pub(in crate::net) fn tx(&self) -> &TxRing<F> {
        &self.tx
    }

    /// Starts to take what the NIC has received, for a program. Takes back what it has sent.
    ///
    /// # Errors
    ///
    /// As [`RxRing::poll`].
    #[inline]
    pub fn poll<'a, 'p>(&'a mut self, cx: &'p Poll<'_>) -> Result<XdpPolling<'a, 'p, F>> {
        let ring = self.ring.poll_recycling(cx)?;
        // SAFETY: The instance is being polled, and not by netpoll.
        unsafe { self.tx.complete() };
        let mut raw = bindings::xdp_buff::default();

        // SAFETY: By the type invariants, the description is valid, since the instance is being
        // polled.
        //
        // CAST: It was a `u32`.
        unsafe {
            bindings::xdp_init_buff(&mut raw, F::LAYOUT.size() as u32, self.rxq.as_ptr());
        }
        // INVARIANT: By the type invariants.
        Ok(XdpPolling {
            ring,
            tx: &mut self.tx,
            cx,
            context: Context {
                raw,
                words: [0; 2],
                offered: Hints::default(),
            },
            recycled: &mut self.recycled,
        })
    }

    /// Starts to take what the NIC has received, without a program: see [`RxRing::poll`]. Takes
    /// back what it has sent for an earlier one.
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn poll_without<'a, 'p>(&'a mut self, cx: &'p Poll<'_>) -> Result<Polling<'a, 'p, F>> {
        let ring = self.ring.poll(cx)?;

        // SAFETY: As in `poll()`.
        unsafe { self.tx.complete() };
        Ok(ring)
    }
}

impl<F: XdpFormat> AnyRxRing for XdpRing<F> {
    type Format = F;

    #[inline]
    fn as_rx_ring(&self) -> &RxRing<F> {
        &self.ring
    }

    fn dma_address(&mut self, napi: &Napi) -> Result<u64> {
        self.ring.dma_address(napi)
    }

    fn rewind(&mut self, stopped: RxStopped<'_>) -> Result<u64> {
        let address = self.ring.rewind(stopped)?;

        // The NIC is told of all of them.
        self.recycled = 0;
        Ok(address)
    }

    #[inline]
    fn recycled(&self) -> usize {
        self.recycled
    }

    #[inline]
    fn refill(&mut self, cx: &Poll<'_>) -> Result<usize> {
        let added = self.ring.refill(cx)? + self.recycled;

        self.recycled = 0;
        Ok(added)
    }
}

impl<F: XdpFormat> Deref for XdpRing<F> {
    type Target = RxRing<F>;

    #[inline]
    fn deref(&self) -> &RxRing<F> {
        &self.ring
    }
}

/// A descriptor that the NIC has completed.
pub struct XdpReceived<'p> {
    /// The first word.
    pub info: u64,
    /// The second word.
    pub status: u64,
    /// The frame; [`None`] if a length was zero or more than the NIC may write, or if there were
    /// more buffers than a frame can have. Then the frame may go on behind this descriptor: what is
    /// left of it has to be dropped, as far as [`XdpFormat::is_end`].
    pub buff: Option<XdpBuff<'p>>,
}

/// The decision of a program on a frame, with what is left of that.
#[must_use = "a frame that is to pass would be dropped"]
pub enum Verdict<'p> {
    /// It goes to the stack, see [`RxList::push_xdp`](crate::net::rx_list::RxList::push_xdp).
    Pass(XdpBuff<'p>),
    /// It was dropped.
    Dropped,
    /// It leaves by the device that has received it, with so many bytes. The NIC has to be told:
    /// [`XdpRing::take_tx_tail`].
    Transmitted(u32),
    /// It went elsewhere: to another device, CPU or socket.
    Redirected,
    /// It was dropped, as the program has failed, or wants what there is no room for. Users can
    /// trace this (`xdp:xdp_exception`).
    Aborted,
}

/// A ring that is being polled.
///
/// # Invariants
///
/// The memory that `context.raw` refers to is the description of the receive queue of `ring`, which
/// is valid. No flag is set in it, except while a frame in several buffers is a program's. `tx` was
/// made for the ring.
pub struct XdpPolling<'a, 'p, F: XdpFormat> {
    pub(super) ring: Recycling<'a, 'p, F>,
    pub(super) tx: &'a mut TxRing<F>,
    cx: &'p Poll<'p>,
    pub(super) context: Context,
    recycled: &'a mut usize,
}

impl<'p, F: XdpFormat> XdpPolling<'_, 'p, F> {
    /// Completes a descriptor of the transmit ring, as the NIC does, for tests.
    #[cfg(CONFIG_KUNIT)]
    pub(in crate::net) fn write_back_tx(&self, index: usize, status: u64) {
        // SAFETY: The instance is being polled.
        unsafe { self.tx.write_back(index, status) };
    }

    /// Lets programs have these hints. Without this, they have none.
    #[inline]
    pub fn offer(&mut self, hints: Hints) {
        self.context.offered = hints;
    }

    /// Takes the next frame, if the NIC is done with all of its descriptors. The words are those of
    /// the last one.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would be borrowed by a `for` loop"
    )]
    #[inline(always)]
    pub fn next(&mut self) -> Option<XdpReceived<'p>> {
        let done = self.ring.next()?;

        if !F::is_end(done.status) {
            return self.next_of_several(done);
        }
        Some(XdpReceived {
            info: done.info,
            status: done.status,
            buff: done
                .buffer
                .map(|buffer| XdpBuff::new(buffer, [done.info, done.status])),
        })
    }

    /// Has a program decide on a frame, and does what it wants.
    ///
    /// The buffers of a dropped frame go back to the ring: [`XdpRing::refill`] tells of them.
    #[inline(always)]
    pub fn run(&mut self, program: Program<'p>, buff: XdpBuff<'p>) -> Verdict<'p> {
        let XdpBuff {
            fragments,
            buffer,
            headroom,
            len,
            metasize,
            words,
        } = buff;
        let start = buffer.address_of_page(F::LAYOUT);
        let data = start.wrapping_byte_add(headroom.into());
        let raw = &mut self.context.raw;

        self.context.words = words;
        raw.data_hard_start = start;
        raw.data = data;
        raw.data_end = data.wrapping_byte_add(len.into());
        raw.data_meta = data.wrapping_byte_sub(metasize.into());
        if let Some(fragments) = fragments {
            return self.run_several(program, buffer, fragments);
        }
        // SAFETY: The context describes the frame.
        match unsafe { self.act(program) } {
            bindings::xdp_action_XDP_PASS => Verdict::Pass(self.passed(buffer, None)),
            bindings::xdp_action_XDP_DROP => {
                self.recycle(buffer);
                Verdict::Dropped
            }
            bindings::xdp_action_XDP_TX => self.transmit(program, buffer),
            other => self.run_rarely(program, buffer, other),
        }
    }

    /// Runs a program with the frame that the context describes.
    ///
    /// # Safety
    ///
    /// Nothing else must have access to the frame, which must be that of an [`XdpBuff`].
    #[inline(always)]
    pub(super) unsafe fn act(&mut self, program: Program<'p>) -> bindings::xdp_action {
        // The functions for hints read what is behind it.
        let context = (&raw mut self.context).cast::<bindings::xdp_buff>();

        // SAFETY: The program is valid. This is the poll function of an instance, and not netpoll,
        // or there would be no buffer: so bottom halves are disabled, and the core has set the
        // context of programs that redirect. By the safety requirements, `context` describes the
        // frame, which has room in front of it and behind it.
        unsafe { bindings::bpf_prog_run_xdp(program.as_raw(), context) }
    }

    /// The frame as a program has left it.
    #[inline(always)]
    pub(super) fn passed(
        &self,
        buffer: CpuBuffer<'p>,
        fragments: Option<Fragments<'p>>,
    ) -> XdpBuff<'p> {
        let (headroom, len) = self.ends();
        let raw = &self.context.raw;

        // INVARIANT: C has kept the ends of the frame and its metadata within these bounds.
        XdpBuff {
            headroom,
            len,
            // CAST: There are 252 bytes of metadata at most.
            metasize: raw.data.addr().wrapping_sub(raw.data_meta.addr()) as u8,
            words: self.context.words,
            fragments,
            buffer,
        }
    }

    /// The number of bytes in front of the frame that a program has left, and in its first buffer.
    #[inline(always)]
    pub(super) fn ends(&self) -> (u16, u16) {
        let raw = &self.context.raw;

        // CAST: C has kept the ends of the frame within the buffer.
        (
            raw.data.addr().wrapping_sub(raw.data_hard_start.addr()) as u16,
            raw.data_end.addr().wrapping_sub(raw.data.addr()) as u16,
        )
    }

    /// Gives a buffer back to the ring, or to its pool if there is no room.
    #[inline(always)]
    pub(super) fn recycle(&mut self, buffer: CpuBuffer<'p>) {
        *self.recycled += usize::from(self.ring.give_back(buffer));
    }

    /// Sends a frame back, as the program has left it.
    #[inline(always)]
    pub(super) fn transmit(&mut self, program: Program<'p>, buffer: CpuBuffer<'p>) -> Verdict<'p> {
        let (headroom, len) = self.ends();

        // SAFETY: By the type invariants, this is the transmit ring. C leaves the room for a
        // `struct skb_shared_info` behind the frame.
        match unsafe { self.ring.transmit(self.tx, buffer, headroom, len) } {
            Ok(sent) => Verdict::Transmitted(sent.into()),
            Err(buffer) => self.run_rarely(program, buffer, bindings::xdp_action_XDP_TX),
        }
    }

    /// As [`Self::run`], of actions that take long in any case.
    pub(super) fn run_rarely(
        &mut self,
        program: Program<'p>,
        buffer: CpuBuffer<'p>,
        action: bindings::xdp_action,
    ) -> Verdict<'p> {
        // SAFETY: The program has run for this frame, in this context.
        if action == bindings::xdp_action_XDP_REDIRECT && unsafe { self.redirect(program) } {
            mem::forget(buffer);
            return Verdict::Redirected;
        }
        self.except(program, action);
        self.recycle(buffer);
        Verdict::Aborted
    }

    /// Redirects a frame. If the result is true, C has it.
    ///
    /// # Safety
    ///
    /// The program must have run for the frame that the context describes, in this poll function,
    /// and nothing else must have access to it.
    pub(super) unsafe fn redirect(&mut self, program: Program<'p>) -> bool {
        let raw = &mut self.context.raw;

        // SAFETY: By the safety requirements and the type invariants. If this succeeds, C has the
        // buffers, which go back to their pool by the registration of that. It may call
        // `ndo_xdp_xmit()` of any device, which has no way to this ring.
        let error = unsafe { bindings::xdp_do_redirect((*raw.rxq).dev, raw, program.as_raw()) };

        // Also if it has failed: some copies of a frame for several devices may be on their way.
        self.cx.set_redirected();
        error == 0
    }

    /// Reports that a program has failed, or wants what there is not.
    #[cold]
    pub(super) fn except(&self, program: Program<'p>, action: bindings::xdp_action) {
        // SAFETY: By the type invariants, the device is valid.
        unsafe { except((*self.context.raw.rxq).dev, program, action) };
    }
}

/// Reports that a program has failed, or wants what there is not.
///
/// Not generic, so that this is not part of a driver's module.
///
/// # Safety
///
/// `dev` must be valid.
#[cold]
#[inline(never)]
pub(super) unsafe fn except(dev: *mut bindings::net_device, program: Program<'_>, action: u32) {
    // SAFETY: By the safety requirements, and the program is valid.
    unsafe {
        if action > bindings::xdp_action_XDP_REDIRECT {
            bindings::bpf_warn_invalid_xdp_action(dev, program.as_raw(), action);
        }
        bindings::trace_xdp_exception(dev, program.as_raw(), action);
    }
}
