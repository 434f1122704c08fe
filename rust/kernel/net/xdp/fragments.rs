// SPDX-License-Identifier: GPL-2.0

//! The buffers of a frame behind the first one.
//!
//! While a program runs, it may free some of them, or move their ends. So the only list of them is
//! the one that C has: a `struct skb_shared_info` at the end of the first buffer, which is that of
//! the SKB if the frame becomes one.

use crate::{
    bindings,
    net::page_pool::{
        DeviceBuffer,
        Layout, //
    },
    prelude::*, //
};

use core::ptr::NonNull;

/// Where the fragments of a frame are listed. Its first buffer begins at that address, and is of a
/// pool of `layout`.
#[inline]
pub(super) fn info(first: *mut c_void, layout: Layout) -> *mut bindings::skb_shared_info {
    first.wrapping_byte_add(layout.shared_info()).cast()
}

/// The number of bytes in the fragments of a frame that is no SKB.
#[inline]
pub(super) fn len(info: &bindings::skb_shared_info) -> u32 {
    // SAFETY: As long as there is no SKB, the field is in use.
    unsafe { info.__bindgen_anon_2.__bindgen_anon_1.xdp_frags_size }
}

/// The flags of a frame.
#[inline]
pub(super) fn flags(raw: &mut bindings::xdp_buff) -> &mut u32 {
    // SAFETY: All `struct xdp_buff` have this field, which is a number.
    unsafe { &mut raw.__bindgen_anon_1.__bindgen_anon_1.flags }
}

/// The fragments of a frame, which are taken one by one. Those that are not go back to their pool.
///
/// # Invariants
///
/// `info` is in the first buffer of a frame, which is longer there than `self`, and lists
/// fragments: pages of the same pool as that buffer. A reference to each of them is ours, except
/// for the first `taken`.
pub(super) struct Fragments {
    info: NonNull<bindings::skb_shared_info>,
    taken: u8,
}

/// A buffer with a part of a frame, which begins at an offset.
pub(super) struct Part {
    pub(super) buffer: DeviceBuffer,
    pub(super) offset: u16,
    pub(super) len: u16,
}

impl Fragments {
    /// Takes over the fragments of a frame.
    ///
    /// # Safety
    ///
    /// `first` must be the address of the first buffer of a frame with fragments, of a pool of
    /// `layout`. They become ours, which that buffer has to outlive.
    pub(super) unsafe fn take(first: *mut c_void, layout: Layout) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            // SAFETY: It is in a buffer.
            info: unsafe { NonNull::new_unchecked(info(first, layout)) },
            taken: 0,
        }
    }

    fn info(&self) -> &bindings::skb_shared_info {
        // SAFETY: By the type invariants.
        unsafe { self.info.as_ref() }
    }

    /// Their number.
    pub(super) fn count(&self) -> usize {
        self.info().nr_frags.into()
    }

    /// The number of bytes in them.
    pub(super) fn len(&self) -> u32 {
        len(self.info())
    }

    /// Takes the next one.
    pub(super) fn next(&mut self) -> Option<Part> {
        let fragment = self.info().frags.get(usize::from(self.taken))?;
        if self.taken >= self.info().nr_frags {
            return None;
        }
        // CAST: They are within a page.
        let (offset, len) = (fragment.offset as u16, fragment.len as u16);
        // SAFETY: By the type invariants.
        let page = NonNull::new(unsafe { bindings::skb_frag_page(fragment) })?;

        // INVARIANT: This one is not ours any more.
        self.taken += 1;
        Some(Part {
            // SAFETY: By the type invariants.
            buffer: unsafe { DeviceBuffer::new(page) },
            offset,
            len,
        })
    }
}

impl Drop for Fragments {
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}
