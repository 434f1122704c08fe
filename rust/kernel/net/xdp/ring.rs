// SPDX-License-Identifier: GPL-2.0

//! Receive rings whose frames programs see.

use super::{
    rxq::RxqInfo,
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
            RxStopped, //
        },
        page_pool::{
            ring::recycling::Recycling,
            CpuBuffer,
            Polling,
            RxFormat,
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

/// An [`RxRing`] whose frames are seen by programs, if there is one.
///
/// Its buffers are pages, with the headroom that programs expect.
///
/// # Invariants
///
/// `rxq` points to a description of the queue that belongs to the NAPI instance of `ring`, which
/// keeps it as long as it keeps the memory of `ring`, and is registered with its pool.
pub struct XdpRing<F: RxFormat> {
    ring: RxRing<F>,
    rxq: NonNull<bindings::xdp_rxq_info>,
    /// The number of buffers that were given back to the ring, and that the NIC was not told of.
    recycled: usize,
}

// SAFETY: The handle is not tied to a thread; what it refers to is `Send`.
unsafe impl<F: RxFormat> Send for XdpRing<F> {}

// SAFETY: Nothing can be done with a shared reference but to read numbers.
unsafe impl<F: RxFormat> Sync for XdpRing<F> {}

impl<F: RxFormat> XdpRing<F> {
    /// Makes the ring of `napi`, see [`RxRing::new`].
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
            )
        };
        let ring = RxRing::<F>::new(dev, napi, len, buffers)?;
        let rxq = RxqInfo::attach(napi, ring.page_pool())?;

        // INVARIANT: `napi` owns both, and there is no other handle to `ring`.
        Ok(Self {
            ring,
            rxq,
            recycled: 0,
        })
    }

    /// See [`RxRing::dma_address`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn dma_address(&mut self, napi: &Napi) -> Result<u64> {
        self.ring.dma_address(napi)
    }

    /// See [`RxRing::rewind`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn rewind(&mut self, stopped: RxStopped<'_>) -> Result<u64> {
        let address = self.ring.rewind(stopped)?;

        // The NIC is told of all of them.
        self.recycled = 0;
        Ok(address)
    }

    /// The number of buffers that were given back to the ring, and that the NIC was not told of:
    /// [`Self::refill`] includes them.
    #[inline]
    pub fn recycled(&self) -> usize {
        self.recycled
    }

    /// See [`RxRing::refill`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn refill(&mut self, cx: &Poll<'_>) -> Result<usize> {
        let added = self.ring.refill(cx)? + self.recycled;

        self.recycled = 0;
        Ok(added)
    }

    /// Starts to take what the NIC has received, for a program.
    ///
    /// # Errors
    ///
    /// As [`RxRing::poll`].
    #[inline]
    pub fn poll<'a, 'p>(&'a mut self, cx: &'p Poll<'_>) -> Result<XdpPolling<'a, 'p, F>> {
        let ring = self.ring.poll_recycling(cx)?;
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
            cx,
            raw,
            recycled: &mut self.recycled,
        })
    }

    /// Starts to take what the NIC has received, without a program: see [`RxRing::poll`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn poll_without<'a, 'p>(&'a mut self, cx: &'p Poll<'_>) -> Result<Polling<'a, 'p, F>> {
        self.ring.poll(cx)
    }
}

impl<F: RxFormat> Deref for XdpRing<F> {
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
    /// The frame, or a part of one that takes several buffers; [`None`] if the length was zero or
    /// more than the NIC may write.
    pub buff: Option<XdpBuff<'p>>,
}

/// The decision of a program on a frame, with what is left of that.
#[must_use = "a frame that is to pass would be dropped"]
pub enum Verdict<'p> {
    /// It goes to the stack, see [`RxList::push_xdp`](crate::net::rx_list::RxList::push_xdp).
    Pass(XdpBuff<'p>),
    /// It was dropped.
    Dropped,
    /// It went elsewhere: to another device, CPU or socket.
    Redirected,
    /// It was dropped, as the program has failed, or wants what there is not. Users can trace this
    /// (`xdp:xdp_exception`).
    Aborted,
}

/// A ring that is being polled.
///
/// # Invariants
///
/// The memory that `raw` refers to is the description of the receive queue of `ring`, which is
/// valid.
pub struct XdpPolling<'a, 'p, F: RxFormat> {
    ring: Recycling<'a, 'p, F>,
    cx: &'p Poll<'p>,
    raw: bindings::xdp_buff,
    recycled: &'a mut usize,
}

impl<'p, F: RxFormat> XdpPolling<'_, 'p, F> {
    /// Takes the next descriptor, if the NIC is done with it.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would be borrowed by a `for` loop"
    )]
    #[inline(always)]
    pub fn next(&mut self) -> Option<XdpReceived<'p>> {
        let done = self.ring.next()?;

        Some(XdpReceived {
            info: done.info,
            status: done.status,
            buff: done.buffer.map(XdpBuff::new),
        })
    }

    /// Has a program decide on a frame, and does what it wants.
    ///
    /// The buffer of a dropped frame goes back to the ring: [`XdpRing::refill`] tells of it.
    #[inline(always)]
    pub fn run(&mut self, program: Program<'p>, buff: XdpBuff<'p>) -> Verdict<'p> {
        let XdpBuff {
            buffer,
            headroom,
            len,
            metasize,
        } = buff;
        let start = buffer.address();
        let data = start.wrapping_byte_add(headroom.into());
        let raw = &mut self.raw;

        raw.data_hard_start = start;
        raw.data = data;
        raw.data_end = data.wrapping_byte_add(len.into());
        raw.data_meta = data.wrapping_byte_sub(metasize.into());
        // SAFETY: The program is valid. This is the poll function of an instance, and not netpoll,
        // or there would be no buffer: so bottom halves are disabled, and the core has set the
        // context of programs that redirect. `raw` describes the frame, to which nothing else has
        // access, and which has room in front of it and behind it.
        let action = unsafe { bindings::bpf_prog_run_xdp(program.as_raw(), raw) };

        match action {
            // INVARIANT: C has kept the ends of the frame and its metadata within these bounds.
            //
            // CAST: They are within a page, and there are 252 bytes of metadata at most.
            bindings::xdp_action_XDP_PASS => Verdict::Pass(XdpBuff {
                headroom: raw.data.addr().wrapping_sub(start.addr()) as u16,
                len: raw.data_end.addr().wrapping_sub(raw.data.addr()) as u16,
                metasize: raw.data.addr().wrapping_sub(raw.data_meta.addr()) as u8,
                buffer,
            }),
            bindings::xdp_action_XDP_DROP => {
                *self.recycled += usize::from(self.ring.give_back(buffer));
                Verdict::Dropped
            }
            other => self.run_rarely(program, buffer, other),
        }
    }

    /// As [`Self::run`], of actions that take long in any case.
    fn run_rarely(
        &mut self,
        program: Program<'p>,
        buffer: CpuBuffer<'p>,
        action: bindings::xdp_action,
    ) -> Verdict<'p> {
        // SAFETY: By the type invariants.
        let dev = unsafe { (*self.raw.rxq).dev };

        if action == bindings::xdp_action_XDP_REDIRECT {
            // SAFETY: The program has run for this frame, in this context. If this succeeds, C has
            // the buffer, which goes back to its pool by the registration of that. It may call
            // `ndo_xdp_xmit()` of any device, which has no way to this ring.
            let error = unsafe { bindings::xdp_do_redirect(dev, &mut self.raw, program.as_raw()) };

            if error == 0 {
                mem::forget(buffer);
                self.cx.set_redirected();
                return Verdict::Redirected;
            }
        }
        // SAFETY: The device is valid.
        unsafe { except(dev, program, action) };
        *self.recycled += usize::from(self.ring.give_back(buffer));
        Verdict::Aborted
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
unsafe fn except(dev: *mut bindings::net_device, program: Program<'_>, action: u32) {
    // SAFETY: By the safety requirements, and the program is valid.
    unsafe {
        if action == bindings::xdp_action_XDP_TX || action > bindings::xdp_action_XDP_REDIRECT {
            bindings::bpf_warn_invalid_xdp_action(dev, program.as_raw(), action);
        }
        bindings::trace_xdp_exception(dev, program.as_raw(), action);
    }
}
