// SPDX-License-Identifier: GPL-2.0

//! Receive rings whose frames programs see.

use super::{
    buff::{
        HAS_FRAGMENTS,
        HEADROOM, //
    },
    flags,
    hints::{
        Context,
        Hints, //
    },
    rxq::RxqInfo,
    BpfProgram,
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
            DeviceBuffer,
            Polling,
            Received,
            RxRing, //
        },
        queue::RingSize, //
    },
    prelude::*, //
};

use core::{
    mem,
    ops::Deref, //
};

/// An [`RxRing`] whose frames are seen by programs, if there is one, with a ring of its own for
/// those that programs send back.
///
/// Its buffers are pages, with the headroom that programs expect.
///
/// # Invariants
///
/// `context` describes the queue with memory that belongs to the NAPI instance of `ring`, which
/// keeps it as long as it keeps the memory of `ring`, and is registered with its pool. `tx` was
/// made for `ring`.
pub struct XdpRing<F: XdpFormat> {
    ring: RxRing<F>,
    pub(super) tx: TxRing<F>,
    /// The frame that a program sees.
    pub(super) context: Context,
    /// The number of buffers that were given back to the ring, and that the NIC was not told of.
    pub(super) recycled: usize,
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
                F::LAYOUT.headroom() >= HEADROOM,
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
        let mut raw = bindings::xdp_buff::default();

        // SAFETY: The description is valid.
        unsafe { bindings::xdp_init_buff(&mut raw, size, rxq.as_ptr()) };
        // INVARIANT: `napi` owns all of them, and there is no other handle to the rings.
        Ok(Self {
            ring,
            tx,
            context: Context {
                raw,
                words: [0; 2],
                offered: Hints::default(),
            },
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
        let sync = self.ring.poll_recycling(cx)?;

        // SAFETY: The instance is being polled, and not by netpoll.
        unsafe { self.tx.complete() };
        self.context.offered = Hints::default();
        // INVARIANT: Just checked.
        Ok(XdpPolling {
            ring: self,
            sync,
            cx,
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
pub struct XdpReceived<'p, F: XdpFormat> {
    /// The first word.
    pub info: u64,
    /// The second word.
    pub status: u64,
    /// The frame; [`None`] if a length was zero or more than the NIC may write, or if there were
    /// more buffers than a frame can have. Then the frame may go on behind this descriptor: what is
    /// left of it has to be dropped, as far as [`XdpFormat::is_end`].
    pub buff: Option<XdpBuff<'p, F>>,
}

/// The next frame of a ring, or the way to take it.
pub enum XdpNext<'p, F: XdpFormat> {
    /// A frame in one buffer.
    One(XdpReceived<'p, F>),
    /// The first descriptor of a frame in several buffers, which was not taken: see
    /// [`XdpPolling::next_of_several`].
    Several,
}

/// The decision of a program on a frame, with what is left of that.
#[must_use = "a frame that is to pass would be dropped"]
pub enum Verdict<'p, F: XdpFormat> {
    /// It goes to the stack, see [`RxList::push_xdp`](crate::net::rx_list::RxList::push_xdp).
    Pass(XdpBuff<'p, F>),
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
/// - The instance of `ring` is being polled, longer than `'p`, and not by netpoll. `sync` is what
///   that ring has returned for it.
/// - The frame that the context describes has no flags, except while one with fragments is a
///   program's.
pub struct XdpPolling<'a, 'p, F: XdpFormat> {
    // By one pointer, at which a driver's loop finds all that it needs for a frame.
    pub(super) ring: &'a mut XdpRing<F>,
    sync: bool,
    pub(super) cx: &'p Poll<'p>,
}

impl<'p, F: XdpFormat> XdpPolling<'_, 'p, F> {
    /// The receive ring, and the transmit ring.
    #[inline(always)]
    pub(super) fn rings(&mut self) -> (Recycling<'_, 'p, F>, &mut TxRing<F>) {
        let XdpRing { ring, tx, .. } = &mut *self.ring;

        // SAFETY: By the type invariants.
        (unsafe { ring.recycling(self.sync) }, tx)
    }

    /// The receive ring alone.
    #[inline(always)]
    pub(super) fn rx(&mut self) -> Recycling<'_, 'p, F> {
        self.rings().0
    }

    /// Completes a descriptor of the transmit ring, as the NIC does, for tests.
    #[cfg(CONFIG_KUNIT)]
    pub(in crate::net) fn write_back_tx(&self, index: usize, status: u64) {
        // SAFETY: The instance is being polled.
        unsafe { self.ring.tx.write_back(index, status) };
    }

    /// Lets programs have these hints. Without this, they have none.
    #[inline]
    pub fn offer(&mut self, hints: Hints) {
        self.ring.context.offered = hints;
    }

    /// Takes the next frame, if the NIC is done with all of its descriptors. The words are those of
    /// the last one.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would be borrowed by a `for` loop"
    )]
    #[inline]
    pub fn next(&mut self) -> Option<XdpReceived<'p, F>> {
        match self.next_of_one()? {
            XdpNext::One(received) => Some(received),
            XdpNext::Several => self.next_of_several(),
        }
    }

    /// As [`Self::next`], but a frame in several buffers is left to [`Self::next_of_several`]: a
    /// driver's loop for the others is shorter then.
    #[inline(always)]
    pub fn next_of_one(&mut self) -> Option<XdpNext<'p, F>> {
        let mut rx = self.rx();
        let status = rx.next_status()?;

        if !F::is_end(status) {
            return Some(XdpNext::Several);
        }
        // SAFETY: It was just returned.
        let Received {
            info,
            status,
            buffer,
        } = unsafe { rx.next_with(status) }?;
        Some(XdpNext::One(XdpReceived {
            info,
            status,
            buff: buffer.map(XdpBuff::new),
        }))
    }

    /// As [`Self::run`], by a program.
    #[inline(always)]
    pub(super) fn run_program(
        &mut self,
        program: BpfProgram<'p>,
        buff: XdpBuff<'p, F>,
        words: [u64; 2],
    ) -> Verdict<'p, F> {
        let program = program.program();
        let start = buff.buffer.address(F::LAYOUT);
        // CAST: `usize` has at least 32 bits wherever the kernel runs; in this function, too.
        let data = start.wrapping_byte_add(buff.headroom as usize);
        let Context { raw, .. } = &mut self.ring.context;

        raw.data_hard_start = start;
        raw.data = data;
        raw.data_end = data.wrapping_byte_add(buff.len as usize);
        raw.data_meta = data.wrapping_byte_sub(buff.metasize as usize);
        self.ring.context.words = words;
        let has_fragments = buff.has_fragments();
        if has_fragments {
            *self.flags() = buff.flags;
        }
        // One that has fragments was longer than the limit when the program was attached, or the
        // NIC has made it up.
        let action = if !has_fragments || program.takes_fragments() {
            // SAFETY: The context describes the frame.
            unsafe { self.act(program) }
        } else {
            bindings::xdp_action_XDP_ABORTED
        };
        let buffer = buff.into_buffer();

        let verdict = match action {
            bindings::xdp_action_XDP_PASS => Verdict::Pass(self.passed(buffer, has_fragments)),
            bindings::xdp_action_XDP_DROP => {
                self.recycle(buffer, has_fragments);
                Verdict::Dropped
            }
            bindings::xdp_action_XDP_TX => match self.transmit(buffer, has_fragments) {
                Ok(sent) => Verdict::Transmitted(sent),
                Err(buffer) => {
                    self.abort(program, buffer, action);
                    Verdict::Aborted
                }
            },
            // SAFETY: The program has run for this frame, in this context.
            bindings::xdp_action_XDP_REDIRECT if unsafe { self.redirect(program) } => {
                mem::forget(buffer);
                Verdict::Redirected
            }
            _ => {
                self.abort(program, buffer, action);
                Verdict::Aborted
            }
        };
        if has_fragments {
            *self.flags() = 0;
        }
        verdict
    }

    /// Runs a program with the frame that the context describes.
    ///
    /// # Safety
    ///
    /// Nothing else must have access to the frame, which must be that of an [`XdpBuff`].
    #[inline(always)]
    pub(super) unsafe fn act(&mut self, program: Program<'p>) -> bindings::xdp_action {
        // The functions for hints read what is behind it.
        let context = (&raw mut self.ring.context).cast::<bindings::xdp_buff>();

        // SAFETY: The program is valid. This is the poll function of an instance, and not netpoll,
        // or there would be no buffer: so bottom halves are disabled, and the core has set the
        // context of programs that redirect. By the safety requirements, `context` describes the
        // frame, which has room in front of it and behind it.
        unsafe { bindings::bpf_prog_run_xdp(program.as_raw(), context) }
    }

    /// The flags of the frame that the context describes.
    #[inline(always)]
    pub(super) fn flags(&mut self) -> &mut u32 {
        flags(&mut self.ring.context.raw)
    }

    /// The frame as a program has left it, in that buffer.
    #[inline(always)]
    fn passed(&mut self, buffer: DeviceBuffer, has_fragments: bool) -> XdpBuff<'p, F> {
        let flags = if has_fragments { *self.flags() } else { 0 };
        let (headroom, len) = self.ends();
        let raw = &self.ring.context.raw;
        // CAST: C has kept the metadata within the buffer.
        let metasize = raw.data.addr().wrapping_sub(raw.data_meta.addr()) as u32;

        // SAFETY: C has kept the ends of the frame and its metadata within these bounds. What it
        // has left of the fragments is listed in the buffer.
        unsafe { XdpBuff::from_parts(headroom, len, metasize, flags, buffer) }
    }

    /// The number of bytes in front of the frame that a program has left, and in its first buffer.
    #[inline(always)]
    pub(super) fn ends(&self) -> (u32, u32) {
        let raw = &self.ring.context.raw;

        // CAST: C has kept the ends of the frame within the buffer.
        (
            raw.data.addr().wrapping_sub(raw.data_hard_start.addr()) as u32,
            raw.data_end.addr().wrapping_sub(raw.data.addr()) as u32,
        )
    }

    /// Gives the buffers of the frame that the context describes back to the ring, or to the pool
    /// if there is no room. `buffer` is the first one; the program may have freed the others.
    #[inline(always)]
    pub(super) fn recycle(&mut self, buffer: DeviceBuffer, has_fragments: bool) {
        if has_fragments && *self.flags() & HAS_FRAGMENTS != 0 {
            self.recycle_fragments();
        }
        self.give_back(buffer);
    }

    /// Gives a buffer back to the ring, or to the pool if there is no room.
    #[inline(always)]
    pub(super) fn give_back(&mut self, buffer: DeviceBuffer) {
        self.ring.recycled += usize::from(self.rx().give_back(buffer));
    }

    /// Sends a frame back, as the program has left it. Returns the number of bytes, or the buffer
    /// if it cannot be sent.
    #[inline(always)]
    fn transmit(&mut self, buffer: DeviceBuffer, has_fragments: bool) -> Result<u32, DeviceBuffer> {
        if has_fragments && *self.flags() & HAS_FRAGMENTS != 0 {
            return self.transmit_several(buffer);
        }
        let (headroom, len) = self.ends();
        let (mut rx, tx) = self.rings();

        // SAFETY: By the type invariants, this is the transmit ring. C leaves the room for a
        // `struct skb_shared_info` behind the frame.
        //
        // CAST: As there.
        unsafe { rx.transmit(tx, buffer, headroom as u16, len as u16) }.map(u32::from)
    }

    /// Drops a frame on which a program has failed, or wants what there is not.
    #[cold]
    #[inline(never)]
    fn abort(&mut self, program: Program<'p>, buffer: DeviceBuffer, action: bindings::xdp_action) {
        // SAFETY: By the type invariants, the device is valid.
        unsafe { except((*self.ring.context.raw.rxq).dev, program, action) };
        self.recycle(buffer, true);
    }

    /// Redirects a frame. If the result is true, C has it.
    ///
    /// # Safety
    ///
    /// The program must have run for the frame that the context describes, in this poll function,
    /// and nothing else must have access to it.
    pub(super) unsafe fn redirect(&mut self, program: Program<'p>) -> bool {
        let raw = &mut self.ring.context.raw;

        // SAFETY: By the safety requirements and the type invariants. If this succeeds, C has the
        // buffers, which go back to their pool by the registration of that. It may call
        // `ndo_xdp_xmit()` of any device, which has no way to this ring.
        let error = unsafe { bindings::xdp_do_redirect((*raw.rxq).dev, raw, program.as_raw()) };

        // Also if it has failed: some copies of a frame for several devices may be on their way.
        self.cx.set_redirected();
        error == 0
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
