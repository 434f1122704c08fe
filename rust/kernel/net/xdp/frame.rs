// SPDX-License-Identifier: GPL-2.0

//! Frames that were redirected, on their way to the device that sends them.
//!
//! Such a frame is C's: it may come from any device, and its memory goes back to where it is from.
//! The description that C has of it lies in its own headroom.

use crate::{
    bindings,
    prelude::*, //
};

use core::{
    mem::{
        ManuallyDrop,
        MaybeUninit, //
    },
    ptr::NonNull, //
};

/// A frame that was redirected: `struct xdp_frame` in C.
///
/// If it is dropped, its memory goes back to where it is from.
///
/// # Invariants
///
/// It points to a valid frame, which is exclusively ours.
pub(in crate::net) struct XdpFrame(NonNull<bindings::xdp_frame>);

// SAFETY: A frame can be returned by any thread.
unsafe impl Send for XdpFrame {}

impl XdpFrame {
    /// Takes over a frame.
    ///
    /// # Safety
    ///
    /// It must be valid, and becomes ours.
    #[inline]
    pub(in crate::net) unsafe fn from_raw(frame: NonNull<bindings::xdp_frame>) -> Self {
        // INVARIANT: By the safety requirements.
        Self(frame)
    }

    /// Gives the frame up.
    #[inline]
    pub(in crate::net) fn into_raw(self) -> NonNull<bindings::xdp_frame> {
        ManuallyDrop::new(self).0
    }

    #[inline]
    fn frame(&self) -> &bindings::xdp_frame {
        // SAFETY: By the type invariants.
        unsafe { self.0.as_ref() }
    }

    #[inline]
    fn has_flag(&self, flag: bindings::xdp_buff_flags) -> bool {
        self.frame().flags & flag != 0
    }

    /// The list of the other buffers, if there are any.
    #[inline]
    fn info(&self) -> Option<&bindings::skb_shared_info> {
        if !self.has_flag(bindings::xdp_buff_flags_XDP_FLAGS_HAS_FRAGS) {
            return None;
        }
        // SAFETY: By the type invariants, and the flag says that there is such a list.
        Some(unsafe { &*bindings::xdp_get_shared_info_from_frame(self.0.as_ptr()) })
    }

    /// Whether the CPU can read all of it.
    #[inline]
    pub(super) fn is_readable(&self) -> bool {
        !self.has_flag(bindings::xdp_buff_flags_XDP_FLAGS_FRAGS_UNREADABLE)
    }

    /// Whether it is in one buffer.
    #[inline]
    pub(super) fn is_in_one_buffer(&self) -> bool {
        !self.has_flag(bindings::xdp_buff_flags_XDP_FLAGS_HAS_FRAGS)
    }

    /// The number of bytes.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        let rest = self.info().map_or(0, |info| {
            // SAFETY: As long as this is no SKB, the field is in use.
            unsafe { info.__bindgen_anon_2.__bindgen_anon_1.xdp_frags_size }
        });

        self.frame().len.saturating_add(rest)
    }

    /// The part in the first buffer: its address, and the number of bytes.
    #[inline]
    pub(super) fn head(&self) -> (*mut c_void, u32) {
        (self.frame().data, self.frame().len)
    }

    /// The other buffers.
    #[inline]
    pub(super) fn fragments(&self) -> &[bindings::skb_frag_t] {
        self.info()
            .and_then(|info| info.frags.get(..usize::from(info.nr_frags)))
            .unwrap_or(&[])
    }

    /// Makes a frame that is shorter than `min` bytes as long as that, with zeroes. Returns whether
    /// it is, as far as this can be done: in the first buffer, where it ends there.
    #[inline]
    pub(super) fn pad_to(&mut self, min: u16) -> bool {
        if self.len() >= min.into() {
            return true;
        }
        self.pad(min.into())
    }

    /// As [`Self::pad_to`], of a frame that is shorter.
    #[cold]
    fn pad(&mut self, min: u32) -> bool {
        if self.info().is_some() {
            return false;
        }
        let frame = self.frame();
        let (data, len) = self.head();
        // CAST: It has a few words.
        let in_front = size_of::<bindings::xdp_frame>() as u32;
        let end = u64::from(in_front) + u64::from(frame.headroom) + u64::from(min);

        if end > frame.frame_sz.into() {
            return false;
        }
        // SAFETY: By the type invariants, the buffer is ours, and has that many bytes. Behind the
        // frame, there is nothing but room for the list of other buffers.
        unsafe {
            data.cast::<u8>()
                .add(len as usize)
                .write_bytes(0, (min - len) as usize);
            (*self.0.as_ptr()).len = min;
        }
        true
    }
}

impl Drop for XdpFrame {
    fn drop(&mut self) {
        // SAFETY: By the type invariants.
        unsafe { bindings::xdp_return_frame(self.0.as_ptr()) };
    }
}

/// Frames whose memory goes back together, as far as it is from the same place.
///
/// # Invariants
///
/// The number is initialized, and so many pages, to which the references are ours.
pub(super) struct FrameBulk(MaybeUninit<bindings::xdp_frame_bulk>);

impl FrameBulk {
    /// None.
    ///
    /// # Safety
    ///
    /// Until it is dropped, bottom halves must be disabled, and interrupts must not be.
    #[inline]
    pub(super) unsafe fn new() -> Self {
        let mut bulk = MaybeUninit::<bindings::xdp_frame_bulk>::uninit();

        // SAFETY: There is room for it.
        unsafe { (&raw mut (*bulk.as_mut_ptr()).count).write(0) };
        // INVARIANT: There are no pages.
        Self(bulk)
    }

    /// Returns a frame.
    #[inline]
    pub(super) fn add(&mut self, frame: XdpFrame) {
        // SAFETY: The frame is ours, and this is a section of RCU readers, as bottom halves are
        // disabled. C reads what is initialized.
        unsafe {
            bindings::xdp_return_frame_bulk(frame.into_raw().as_ptr(), self.0.as_mut_ptr());
        }
    }
}

impl Drop for FrameBulk {
    #[inline]
    fn drop(&mut self) {
        let bulk = self.0.as_mut_ptr();

        // SAFETY: By the type invariants.
        //
        // CAST: It is not negative.
        unsafe {
            let count = (*bulk).count as u32;
            if count != 0 {
                bindings::page_pool_put_netmem_bulk((&raw mut (*bulk).q).cast(), count);
            }
        }
    }
}
