// SPDX-License-Identifier: GPL-2.0

//! Frames that pass: copies in memory of the kernel, for the stack.

use super::{
    parts::{
        Several,
        FRAGMENTS, //
    },
    XskFrame, //
};

use crate::{
    bindings,
    net::{
        napi::Poll,
        rx_list::{
            Protocol,
            RxList,
            RxOffloads, //
        },
        skbuff::UniqueSkBuff, //
    },
    page::PAGE_SIZE,
    prelude::*, //
};

use core::ptr::NonNull;

/// The most metadata of a frame.
const MAX_METADATA: usize = 252;

/// A copy of a frame in several buffers, for the stack: see [`RxList::push_xsk_copy`].
pub struct XskCopy {
    /// There is none if there was no memory for it.
    skb: Option<UniqueSkBuff>,
    /// The number of bytes that were received.
    len: usize,
}

impl XskCopy {
    /// Copies a frame. It goes back to its pool.
    pub(super) fn of(mut several: Several<'_>, cx: &Poll<'_>) -> Self {
        // CAST: `usize` has at least 32 bits wherever the kernel runs.
        let len = several.len() as usize;

        Self {
            skb: copy(&mut several, cx),
            len,
        }
    }
}

#[cfg(CONFIG_KUNIT)]
impl XskCopy {
    /// The copy, for tests.
    pub(in crate::net) fn skb(&self) -> Option<&UniqueSkBuff> {
        self.skb.as_ref()
    }
}

impl XskFrame<'_> {
    /// Copies it into an SKB, with metadata in front of the Ethernet header, if there is any.
    ///
    /// Returns [`None`] if there is no memory for that.
    pub(in crate::net) fn into_skb(self, cx: &Poll<'_>) -> Option<UniqueSkBuff> {
        let (meta, len) = self.lens();

        // SAFETY: They are within the frame.
        unsafe { self.copy(meta, len, cx) }
    }

    /// Copies so many bytes, behind metadata, into a new SKB.
    ///
    /// # Safety
    ///
    /// They must be within the memory of the frame.
    unsafe fn copy(&self, meta: usize, len: usize, cx: &Poll<'_>) -> Option<UniqueSkBuff> {
        // CAST: They are within a frame.
        let (meta, total) = (meta as c_uint, (meta + len) as c_uint);
        // SAFETY: `cx` proves that this is the poll function of the instance.
        let skb = unsafe { bindings::napi_alloc_skb(cx.napi().as_raw(), total) };
        let skb = NonNull::new(skb)?;
        let raw = skb.as_ptr();

        // SAFETY: The SKB is new and ours alone, with room for so many bytes. By the safety
        // requirements, they are there, and C copies them as they are by now.
        unsafe {
            bindings::skb_put(raw, total);
            bindings::skb_store_bits(raw, 0, (*self.as_raw()).data_meta, total as c_int);
            if meta != 0 {
                // CAST: There are 252 bytes of metadata at most.
                bindings::skb_metadata_set(raw, meta as u8);
                bindings::skb_pull(raw, meta);
            }
            Some(UniqueSkBuff::from_new(skb))
        }
    }
}

/// Copies a frame in several buffers into an SKB, with pages for those behind the first one, which
/// are taken from the frame.
///
/// Returns [`None`] if there is no memory for that, or if its ends are not in its memory any more.
fn copy(several: &mut Several<'_>, cx: &Poll<'_>) -> Option<UniqueSkBuff> {
    let (head, raw) = (several.head(), several.head().as_raw());
    // SAFETY: The description is valid.
    let (meta, data) = unsafe { ((*raw).data_meta, (*raw).data) };
    let len = head.len_from(data)?;
    let meta = head.len_from(meta)?.checked_sub(len)?;

    if meta > MAX_METADATA {
        return None;
    }
    // SAFETY: Just checked.
    let skb = unsafe { head.copy(meta, len, cx)? };
    let mut at = len;
    let mut number = 0;

    while let Some(part) = several.take_part() {
        // SAFETY: The description is valid.
        let data = unsafe { (*part.as_raw()).data };
        let end = part.len_from(data)?;
        let mut done = 0;

        while done != end {
            if number == FRAGMENTS {
                return None;
            }
            let len = PAGE_SIZE.min(end - done);
            // SAFETY: There are no requirements.
            let page = unsafe { bindings::alloc_pages(GFP_ATOMIC.as_raw(), 0) };
            let page = NonNull::new(page)?;

            // CAST: They are within the memory of a frame.
            let (place, count) = (at as c_int, len as c_int);
            // SAFETY: The page is ours, and becomes the SKB's, which is ours alone and has room for
            // it. The bytes are in the memory of the frame, and C copies them as they are by now.
            unsafe {
                bindings::skb_add_rx_frag(
                    skb.as_raw(),
                    number as c_int,
                    page.as_ptr(),
                    0,
                    count,
                    PAGE_SIZE as c_uint,
                );
                bindings::skb_store_bits(skb.as_raw(), place, data.wrapping_byte_add(done), count);
            }
            at += len;
            done += len;
            number += 1;
        }
    }
    Some(skb)
}

impl RxList<'_> {
    /// Puts a copy of a frame on the list that a program has let pass, with the time of the NIC's
    /// clock at which it was received, in nanoseconds, if it has one. See [`Self::push_buffer`].
    pub fn push_xsk(
        &mut self,
        frame: XskFrame<'_>,
        time: Option<u64>,
        protocol: Protocol,
        verified: bool,
        offloads: RxOffloads,
    ) {
        let (_, len) = frame.lens();
        let skb = frame.into_skb(self.poll());

        self.push_xsk_copy(XskCopy { skb, len }, time, protocol, verified, offloads);
    }

    /// As [`Self::push_xsk`], of a frame that was copied.
    pub fn push_xsk_copy(
        &mut self,
        copy: XskCopy,
        time: Option<u64>,
        protocol: Protocol,
        verified: bool,
        offloads: RxOffloads,
    ) {
        match copy.skb {
            Some(mut skb) => {
                if let Some(time) = time {
                    skb.set_timestamp(time);
                }
                self.push_built(skb, protocol, verified, offloads);
            }
            None => self.lose_one(copy.len, verified),
        }
    }
}
