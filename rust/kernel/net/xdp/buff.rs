// SPDX-License-Identifier: GPL-2.0

//! Frames that programs see.

use super::fragments::Fragments;

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
    mem,
    ptr::NonNull, //
};

/// A received frame before it is a packet of the stack: `struct xdp_buff` in C.
///
/// It exists only within the run of the poll function that received it. If it is dropped, its pages
/// go back to the pool.
///
/// # Invariants
///
/// - The frame begins with `len` bytes, behind `headroom` bytes of `buffer`, the last `metasize` of
///   which are metadata. It goes on in `fragments`, which are listed in `buffer`.
/// - There is room for a `struct xdp_frame` in front of that, and for `struct skb_shared_info` at
///   the end of the buffer.
pub struct XdpBuff<'p> {
    // In front of the buffer, so that it is dropped first.
    pub(super) fragments: Option<Fragments<'p>>,
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
            fragments: None,
            buffer,
        }
    }

    /// The number of bytes.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> u32 {
        let rest = self.fragments.as_ref().map_or(0, Fragments::len);

        u32::from(self.len) + rest
    }

    /// The number of bytes in the first buffer.
    #[inline]
    pub fn head_len(&self) -> u16 {
        self.len
    }

    /// Builds an SKB around the buffers, without copying, for a frame of which more is to be
    /// recorded than [`RxList::push_xdp`] takes. It may have metadata, which is in front of the
    /// Ethernet header.
    ///
    /// Returns [`None`] if there is no memory for it; the pages were returned to the pool.
    #[cold]
    pub fn into_skb(self) -> Option<UniqueSkBuff> {
        let size = self.buffer.layout.size();
        let rest = self
            .fragments
            .as_ref()
            .map_or((0, 0), |rest| (rest.count(), rest.len()));

        // SAFETY: The buffer is ours, has the size given and enough room at its end. This is within
        // a poll, hence in softirq context.
        //
        // CAST: It was a `u32`.
        let skb = unsafe { bindings::napi_build_skb(self.buffer.address(), size as u32) };
        let skb = NonNull::new(skb)?;
        let Self {
            fragments,
            buffer,
            headroom,
            len,
            metasize,
            words: _,
        } = self;

        // The SKB owns the page from here on.
        mem::forget(buffer);
        // SAFETY: The SKB is new, and by the type invariants, all of these are in the buffer. We
        // own the only reference to it.
        unsafe {
            fill_new(skb, headroom.into(), len.into());
            if metasize != 0 {
                bindings::skb_metadata_set(skb.as_ptr(), metasize);
            }
            if let Some(fragments) = fragments {
                fragments.into_skb(skb.as_ptr(), rest.0, rest.1);
            }
            Some(UniqueSkBuff::from_new(skb))
        }
    }

    /// Gives the buffer up, as a frame for `napi_build_skb_list()`. It must be the only one.
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
        if u32::from(buff.len) < bindings::ETH_HLEN {
            return;
        }
        if buff.fragments.is_some() {
            return self.push_alone_xdp(buff, None, protocol, verified, offloads);
        }
        // SAFETY: By the type invariants, the frame is in the buffer that it owns, which has room
        // for what an SKB has behind it. Its length was just checked.
        unsafe { self.stage(buff.into_frame(), protocol, verified, offloads) };
    }

    /// As [`Self::push_xdp`], of a frame that was received at that time, in nanoseconds of the
    /// clock of the NIC.
    #[inline]
    pub fn push_xdp_with_time(
        &mut self,
        buff: XdpBuff<'_>,
        time: u64,
        protocol: Protocol,
        verified: bool,
        offloads: RxOffloads,
    ) {
        self.push_alone_xdp(buff, Some(time), protocol, verified, offloads);
    }

    /// Builds the SKB of a frame that is not as most are at once.
    #[cold]
    fn push_alone_xdp(
        &mut self,
        buff: XdpBuff<'_>,
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
