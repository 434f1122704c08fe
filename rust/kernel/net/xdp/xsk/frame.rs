// SPDX-License-Identifier: GPL-2.0

//! Received frames in memory of users.

use crate::{
    bindings,
    net::{
        napi,
        xdp::{
            frame::XdpFrame,
            hints::{
                Context,
                Hints, //
            }, //
        }, //
    },
    prelude::*, //
};

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

#[cfg(CONFIG_XDP_SOCKETS)]
use core::mem::offset_of;

/// The part of a [`Context`] behind the frame, which the functions for hints read.
#[repr(C)]
struct Behind {
    words: [u64; 2],
    offered: Hints,
}

/// A frame as C has it, with room for drivers.
#[cfg(CONFIG_XDP_SOCKETS)]
type Chunk = bindings::xdp_buff_xsk;

/// In place of it: kernels without such sockets have no frames.
#[cfg(not(CONFIG_XDP_SOCKETS))]
#[repr(C)]
struct Chunk {
    _xdp: bindings::xdp_buff,
    cb: Behind,
}

#[cfg(CONFIG_XDP_SOCKETS)]
const _: () = {
    const PRIVATE: usize = offset_of!(Chunk, cb);

    assert!(offset_of!(Chunk, xdp) == 0);
    // It is where they look for it, and fits.
    assert!(offset_of!(Context, words) == PRIVATE);
    assert!(offset_of!(Context, offered) == PRIVATE + offset_of!(Behind, offered));
    assert!(size_of::<Behind>() <= bindings::XSK_PRIV_MAX as usize);
};

/// A received frame in memory of a user.
///
/// It exists only within the run of the poll function that received it. If it is dropped, it goes
/// back to its pool.
///
/// There is no way to its bytes but a copy: the user may write to them at any time.
///
/// # Invariants
///
/// `buff` describes a frame of a pool that is there during `'p`, and that nothing but this poll
/// function uses. Others of this type may be of the same frame, if the user has given it twice.
pub struct XskFrame<'p> {
    buff: NonNull<bindings::xdp_buff>,
    _poll: PhantomData<&'p napi::Poll<'p>>,
}

impl<'p> XskFrame<'p> {
    /// A frame that goes back to its pool when this is dropped.
    ///
    /// # Safety
    ///
    /// `buff` must be a frame of a pool, with an exclusive right to give it back, during a poll of
    /// `'p` of the instance whose ring has the pool.
    #[inline(always)]
    pub(super) unsafe fn new(buff: NonNull<bindings::xdp_buff>) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            buff,
            _poll: PhantomData,
        }
    }

    /// The NIC has received `len` bytes, with these words in its descriptor.
    ///
    /// # Safety
    ///
    /// They must be within the frame, and the NIC be done with it. `syncs` must be
    /// [`needs_sync`](super::needs_sync) of its pool.
    #[inline(always)]
    pub(super) unsafe fn received(
        &mut self,
        len: u16,
        words: [u64; 2],
        offered: Hints,
        syncs: bool,
    ) {
        // SAFETY: By the safety requirements.
        unsafe { self.set_size(len, syncs) };
        self.describe(words, offered);
    }

    /// The NIC has received `len` bytes.
    ///
    /// # Safety
    ///
    /// As for [`Self::received`].
    #[inline(always)]
    pub(super) unsafe fn set_size(&mut self, len: u16, syncs: bool) {
        let buff = self.buff.as_ptr();

        // SAFETY: By the type invariants and the safety requirements.
        unsafe {
            bindings::xsk_buff_set_size(buff, len.into());
            if syncs {
                bindings::xsk_buff_dma_sync_for_cpu(buff);
            }
        }
    }

    /// Lets a program have hints of the frame, whose descriptor has these words.
    #[inline(always)]
    pub(super) fn describe(&mut self, words: [u64; 2], offered: Hints) {
        let behind = self.buff.as_ptr().cast::<Chunk>();

        // SAFETY: By the type invariants. There is room for that in front of what C has behind it.
        unsafe {
            (&raw mut (*behind).cb)
                .cast::<Behind>()
                .write(Behind { words, offered });
        }
    }

    #[inline(always)]
    pub(super) fn as_raw(&self) -> *mut bindings::xdp_buff {
        self.buff.as_ptr()
    }

    /// Gives it up. It is for others to give it back to the pool.
    #[inline(always)]
    pub(super) fn into_raw(self) -> NonNull<bindings::xdp_buff> {
        core::mem::ManuallyDrop::new(self).buff
    }

    /// Copies it into a page of its own, for other devices and CPUs. C gives the memory of the user
    /// back.
    ///
    /// Returns [`None`] if there is no memory for that, or if the frame is longer than a page. Then
    /// it goes back to its pool.
    pub(super) fn into_copy(self) -> Option<XdpFrame> {
        // SAFETY: By the type invariants, this is a frame of a queue with such memory.
        let copy = unsafe { bindings::xdp_convert_buff_to_frame(self.as_raw()) };
        let copy = NonNull::new(copy)?;

        let _ = self.into_raw();
        // SAFETY: The copy is new, and ours.
        Some(unsafe { XdpFrame::from_raw(copy) })
    }

    /// The bytes in front of the frame that are metadata, and those of the frame.
    #[inline]
    pub(super) fn lens(&self) -> (usize, usize) {
        let buff = self.buff.as_ptr();

        // SAFETY: By the type invariants. C has kept the ends of the frame within it.
        unsafe {
            (
                (*buff).data.addr().wrapping_sub((*buff).data_meta.addr()),
                (*buff).data_end.addr().wrapping_sub((*buff).data.addr()),
            )
        }
    }

    /// The number of bytes.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> u32 {
        // CAST: It is within a frame.
        self.lens().1 as u32
    }

    /// The number of bytes from an address in the frame to its end, if both are within its memory:
    /// they may be what the user has made of them.
    pub(super) fn len_from(&self, start: *mut c_void) -> Option<usize> {
        let buff = self.buff.as_ptr();
        // SAFETY: By the type invariants. All `struct xdp_buff` have these fields.
        let (room, end, size) = unsafe {
            (
                (*buff).data_hard_start.addr(),
                (*buff).data_end.addr(),
                (*buff).__bindgen_anon_1.__bindgen_anon_1.frame_sz,
            )
        };
        // CAST: `usize` has at least 32 bits wherever the kernel runs.
        let is_within = room <= start.addr() && end <= room.wrapping_add(size as usize);

        end.checked_sub(start.addr()).filter(|_| is_within)
    }
}

impl Drop for XskFrame<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: By the type invariants. If C has taken it back already, this does nothing.
        unsafe { bindings::xsk_buff_free(self.buff.as_ptr()) };
    }
}
