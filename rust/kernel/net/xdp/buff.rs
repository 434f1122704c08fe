// SPDX-License-Identifier: GPL-2.0

//! Frames that programs see.

use crate::{
    bindings,
    net::{
        page_pool::{
            fill_new,
            CpuBuffer, //
        },
        rx_list::{
            Protocol,
            RxList,
            RxOffloads, //
        },
        skbuff::UniqueSkBuff, //
    }, //
};

use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};

/// A received frame, in one buffer, before it is a packet of the stack: `struct xdp_buff` in C.
///
/// It exists only within the run of the poll function that received it. If it is dropped, its page
/// goes back to the pool.
///
/// # Invariants
///
/// - The frame has `len` bytes, behind `headroom` bytes of `buffer`, the last `metasize` of which
///   are metadata.
/// - There is room for a `struct xdp_frame` in front of that, and for `struct skb_shared_info` at
///   the end of the buffer.
pub struct XdpBuff<'p> {
    pub(super) buffer: CpuBuffer<'p>,
    pub(super) headroom: u16,
    pub(super) len: u16,
    pub(super) metasize: u8,
    /// Those of the descriptor, for hints.
    pub(super) words: [u64; 2],
}

impl<'p> XdpBuff<'p> {
    /// The most headroom that a program expects.
    pub(super) const HEADROOM: u16 = bindings::XDP_PACKET_HEADROOM as u16;

    /// A frame as it was received, with the words of its descriptor. Its layout must have the
    /// headroom.
    #[inline(always)]
    pub(super) fn new(buffer: CpuBuffer<'p>, words: [u64; 2]) -> Self {
        // INVARIANT: This is where the device has written so many bytes.
        Self {
            headroom: buffer.layout.headroom(),
            len: buffer.len(),
            metasize: 0,
            words,
            buffer,
        }
    }

    /// The number of bytes.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> u16 {
        self.len
    }

    /// Gives the buffer up, as a frame for `napi_build_skb_list()`.
    #[inline]
    pub(in crate::net) fn into_frame(self) -> bindings::napi_build_frame {
        let mut frame = bindings::napi_build_frame {
            len: self.len,
            headroom: self.headroom,
            metasize: self.metasize,
            ..self.buffer.into_frame()
        };

        if self.metasize != 0 {
            // CAST: The flags fit into 8 bits.
            frame.flags |= bindings::NAPI_BUILD_METADATA as u8;
        }
        frame
    }

    /// Builds an SKB around the frame, without copying, for one of which more is to be recorded
    /// than [`RxList::push_xdp`] takes.
    ///
    /// Returns [`None`] if there is no memory for it; the page was returned to the pool.
    pub fn into_skb(self) -> Option<UniqueSkBuff> {
        let size = self.buffer.layout.size();
        // SAFETY: The buffer is ours, has the size given and enough room at its end. This is within
        // a poll, hence in softirq context.
        //
        // CAST: It was a `u32`.
        let skb = unsafe { bindings::napi_build_skb(self.buffer.address(), size as u32) };
        let skb = NonNull::new(skb)?;

        // The SKB owns the page from here on.
        let this = ManuallyDrop::new(self);

        // SAFETY: The SKB is new, and both numbers fit by the type invariants. We own the only
        // reference to it. Metadata is in front of the data, and its length in the shared info.
        unsafe {
            fill_new(skb, this.headroom.into(), this.len.into());
            let skb = UniqueSkBuff::from_new(skb);
            (*skb.shared_info()).meta_len = this.metasize;
            Some(skb)
        }
    }
}

impl RxList<'_> {
    /// Puts a frame on the list that a program has let pass: where the program has left it, and
    /// with its metadata. See [`Self::push_buffer`].
    #[inline]
    pub fn push_xdp(
        &mut self,
        buff: XdpBuff<'_>,
        protocol: Protocol,
        verified: bool,
        offloads: RxOffloads,
    ) {
        if u32::from(buff.len()) < bindings::ETH_HLEN {
            return;
        }
        // SAFETY: By the type invariants, the frame is in the buffer that it owns, which has room
        // for what an SKB has behind it. Its length was just checked.
        unsafe { self.stage(buff.into_frame(), protocol, verified, offloads) };
    }
}
