// SPDX-License-Identifier: GPL-2.0

//! Frames that programs see.

use super::fragments::{
    self,
    Fragments, //
};

use crate::{
    bindings,
    net::{
        napi,
        page_pool::{
            fill_new,
            CpuBuffer,
            DeviceBuffer,
            Layout,
            RxFormat, //
        },
        rx_list::{
            Protocol,
            RxList,
            RxOffloads, //
        },
        skbuff::UniqueSkBuff, //
    },
    prelude::*, //
};

use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::{
        self,
        NonNull, //
    }, //
};

/// A received frame before it is a packet of the stack: `struct xdp_buff` in C.
///
/// It exists only within the run of the poll function that received it. If it is dropped, its pages
/// go back to the pool.
///
/// A word of flags stands for the list of its other buffers. In a driver's loop, the fields are in
/// registers: a function that is not inlined gets a frame that was [moved](Self::moved).
///
/// # Invariants
///
/// - `buffer` is of a pool of the layout of `F`. The frame begins with `len` bytes, behind
///   `headroom` bytes of it, the last `metasize` of which, at most 252, are metadata.
/// - There is room for a `struct xdp_frame` in front of that, and for `struct skb_shared_info` at
///   the end of the buffer.
/// - `flags` are those of the `struct xdp_buff`. If they say so, the frame goes on in fragments,
///   which are listed in the buffer, and of the same pool. The references to them are ours.
pub struct XdpBuff<'p, F: RxFormat> {
    pub(super) buffer: DeviceBuffer,
    pub(super) headroom: u32,
    pub(super) len: u32,
    pub(super) metasize: u32,
    pub(super) flags: u32,
    _poll: PhantomData<&'p napi::Poll<'p>>,
    // Invariant, as for `RxRing`.
    _format: PhantomData<fn(F) -> F>,
}

/// That of frames with fragments.
pub(super) const HAS_FRAGMENTS: u32 = bindings::xdp_buff_flags_XDP_FLAGS_HAS_FRAGS;

/// The most headroom that a program expects.
pub(super) const HEADROOM: u16 = bindings::XDP_PACKET_HEADROOM as u16;

impl<'p, F: RxFormat> XdpBuff<'p, F> {
    /// A frame in one buffer, as it was received by a ring of this format.
    #[inline(always)]
    pub(super) fn new(buffer: CpuBuffer<'p>) -> Self {
        // SAFETY: This is where the device has written so many bytes.
        unsafe {
            Self::from_parts(
                F::LAYOUT.headroom().into(),
                buffer.len().into(),
                0,
                0,
                buffer.buffer,
            )
        }
    }

    /// A frame in these buffers.
    ///
    /// # Safety
    ///
    /// The type invariants must be true for them, in a poll function of `'p`.
    #[inline(always)]
    pub(super) unsafe fn from_parts(
        headroom: u32,
        len: u32,
        metasize: u32,
        flags: u32,
        buffer: DeviceBuffer,
    ) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            buffer,
            headroom,
            len,
            metasize,
            flags,
            _poll: PhantomData,
            _format: PhantomData,
        }
    }

    /// Gives the frame up: to the one who gets the first buffer, with the list of the others.
    #[inline(always)]
    pub(super) fn into_buffer(self) -> DeviceBuffer {
        let this = ManuallyDrop::new(self);

        // SAFETY: It is taken once, as `this` is not dropped.
        unsafe { ptr::read(&this.buffer) }
    }

    /// The same, elsewhere: this one need not be in memory for a function that is not inlined.
    #[inline(always)]
    pub fn moved(self) -> Self {
        let (headroom, len) = (self.headroom, self.len);
        let (metasize, flags) = (self.metasize, self.flags);

        // SAFETY: By the type invariants.
        unsafe { Self::from_parts(headroom, len, metasize, flags, self.into_buffer()) }
    }

    /// Whether there are more buffers than the first one.
    #[inline(always)]
    pub(super) fn has_fragments(&self) -> bool {
        self.flags & HAS_FRAGMENTS != 0
    }

    /// The list of the other buffers, if there are any.
    #[inline]
    fn info(&self) -> Option<&bindings::skb_shared_info> {
        self.has_fragments().then(|| {
            // SAFETY: By the type invariants.
            unsafe { &*fragments::info(self.buffer.address(F::LAYOUT), F::LAYOUT) }
        })
    }

    /// The number of bytes.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> u32 {
        self.len + self.info().map_or(0, fragments::len)
    }

    /// The number of bytes in the first buffer.
    #[inline]
    pub fn head_len(&self) -> u16 {
        // CAST: By the type invariants, it is within a page.
        self.len as u16
    }

    /// Drops the frame, in a function of its own: this is for the rare case in a loop.
    #[inline(always)]
    pub fn discard(self) {
        discard(self.moved());
    }

    /// Builds an SKB around the buffers, without copying, for a frame of which more is to be
    /// recorded than [`RxList::push_xdp`] takes. It may have metadata, which is in front of the
    /// Ethernet header.
    ///
    /// Returns [`None`] if there is no memory for it; the pages were returned to the pool.
    #[cold]
    #[inline(never)]
    pub fn into_skb(self) -> Option<UniqueSkBuff> {
        // CAST: It was a `u32`.
        let size = F::LAYOUT.size() as u32;
        // The SKB has other fields there.
        let rest = self
            .info()
            .map(|info| (info.nr_frags, fragments::len(info)));

        // SAFETY: The buffer is ours, has the size given and enough room at its end. This is within
        // a poll, hence in softirq context.
        let skb = unsafe { bindings::napi_build_skb(self.buffer.address(F::LAYOUT), size) };
        let skb = NonNull::new(skb)?;
        // The SKB owns the pages from here on.
        let this = ManuallyDrop::new(self);

        // SAFETY: The SKB is new, and by the type invariants, all of these are in the buffer. We
        // own the only reference to it. The list is where the SKB has its own.
        unsafe {
            fill_new(skb, this.headroom, this.len);
            if this.metasize != 0 {
                // CAST: By the type invariants.
                bindings::skb_metadata_set(skb.as_ptr(), this.metasize as u8);
            }
            if let Some((count, len)) = rest {
                bindings::xdp_update_skb_frags_info(
                    skb.as_ptr(),
                    count,
                    len,
                    u32::from(count) * size,
                    this.flags,
                );
            }
            Some(UniqueSkBuff::from_new(skb))
        }
    }

    /// Gives the buffer up, as a frame for `napi_build_skb_list()`. It must be the only one.
    #[inline(always)]
    pub(in crate::net) fn into_frame(self) -> bindings::napi_build_frame {
        // CAST: By the type invariants, they are within a page.
        let (headroom, len) = (self.headroom as u16, self.len as u16);
        // CAST: As above.
        let metasize = self.metasize as u8;
        let mut frame = self.into_buffer().into_frame(F::LAYOUT, headroom, len);

        frame.metasize = metasize;
        if metasize != 0 {
            // CAST: The flags fit into 8 bits.
            frame.flags |= bindings::NAPI_BUILD_METADATA as u8;
        }
        frame
    }
}

impl<F: RxFormat> Drop for XdpBuff<'_, F> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.has_fragments() {
            // SAFETY: By the type invariants. The buffer is dropped after this.
            unsafe { give_back(self.buffer.address(F::LAYOUT), F::LAYOUT) };
        }
    }
}

/// See [`XdpBuff::discard`].
#[cold]
#[inline(never)]
fn discard<F: RxFormat>(buff: XdpBuff<'_, F>) {
    drop(buff);
}

/// Gives fragments back to their pool.
///
/// # Safety
///
/// As for [`Fragments::take`].
#[cold]
#[inline(never)]
unsafe fn give_back(first: *mut c_void, layout: Layout) {
    // SAFETY: By the safety requirements.
    drop(unsafe { Fragments::take(first, layout) });
}

impl RxList<'_> {
    /// Puts a frame on the list that a program has let pass: where the program has left it, and
    /// with its metadata. See [`Self::push_buffer`].
    #[inline(always)]
    pub fn push_xdp<F: RxFormat>(
        &mut self,
        buff: XdpBuff<'_, F>,
        protocol: Protocol,
        verified: bool,
        offloads: RxOffloads,
    ) {
        if buff.len < bindings::ETH_HLEN {
            return;
        }
        if buff.has_fragments() {
            return self.push_alone_xdp(buff.moved(), None, protocol, verified, offloads);
        }
        // SAFETY: By the type invariants, the frame is in the buffer that it owns, which has room
        // for what an SKB has behind it. Its length was just checked.
        unsafe { self.stage(buff.into_frame(), protocol, verified, offloads) };
    }

    /// As [`Self::push_xdp`], of a frame that was received at that time, in nanoseconds of the
    /// clock of the NIC.
    #[inline]
    pub fn push_xdp_with_time<F: RxFormat>(
        &mut self,
        buff: XdpBuff<'_, F>,
        time: u64,
        protocol: Protocol,
        verified: bool,
        offloads: RxOffloads,
    ) {
        self.push_alone_xdp(buff.moved(), Some(time), protocol, verified, offloads);
    }

    /// Builds the SKB of a frame that is not as most are at once.
    #[cold]
    #[inline(never)]
    fn push_alone_xdp<F: RxFormat>(
        &mut self,
        buff: XdpBuff<'_, F>,
        time: Option<u64>,
        protocol: Protocol,
        verified: bool,
        offloads: RxOffloads,
    ) {
        let len = buff.len();

        match buff.into_skb() {
            Some(mut skb) => {
                if let Some(time) = time {
                    skb.set_timestamp(time);
                }
                self.push_built(skb, protocol, verified, offloads);
            }
            // CAST: `usize` has at least 32 bits wherever the kernel runs.
            None => self.lose_one(len as usize, verified),
        }
    }
}
