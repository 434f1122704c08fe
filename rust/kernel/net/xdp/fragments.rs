// SPDX-License-Identifier: GPL-2.0

//! The buffers of a frame behind the first one.
//!
//! While a program runs, it may free some of them, or move their ends. So the only list of them is
//! the one that C has: a `struct skb_shared_info` at the end of the first buffer, which is that of
//! the SKB if the frame becomes one.

use crate::{
    bindings,
    net::{
        napi,
        page_pool::{
            CpuBuffer,
            Layout, //
        }, //
    }, //
};

use core::{
    marker::PhantomData,
    mem,
    ptr::NonNull, //
};

/// The fragments of a frame. They go back to their pool with it.
///
/// # Invariants
///
/// `info` is in the first buffer of a frame, which is longer there than `self`, and lists
/// fragments: pages of the same pool as that buffer, which has `layout`. A reference to each of
/// them is ours, except for the first `taken`.
pub(super) struct Fragments<'p> {
    info: NonNull<bindings::skb_shared_info>,
    layout: Layout,
    /// Those of the `struct xdp_buff`.
    flags: u32,
    taken: u8,
    _poll: PhantomData<&'p napi::Poll<'p>>,
}

/// A buffer with a part of a frame, which begins at an offset.
pub(super) struct Part<'p> {
    pub(super) buffer: CpuBuffer<'p>,
    pub(super) offset: u16,
    pub(super) len: u16,
}

/// The flags of a frame.
#[inline]
pub(super) fn flags(raw: &mut bindings::xdp_buff) -> &mut u32 {
    // SAFETY: All `struct xdp_buff` have this field, which is a number.
    unsafe { &mut raw.__bindgen_anon_1.__bindgen_anon_1.flags }
}

impl<'p> Fragments<'p> {
    /// Takes over the fragments of a frame, if there are any. No flag is set afterwards.
    ///
    /// # Safety
    ///
    /// `raw` must describe a frame in buffers of a pool of `layout`, during a poll of `'p`. Its
    /// fragments become ours, which the first buffer has to outlive.
    pub(super) unsafe fn take(raw: &mut bindings::xdp_buff, layout: Layout) -> Option<Self> {
        let flags = mem::take(flags(raw));

        if flags & bindings::xdp_buff_flags_XDP_FLAGS_HAS_FRAGS == 0 {
            return None;
        }
        // INVARIANT: By the safety requirements.
        Some(Self {
            // SAFETY: By the safety requirements.
            info: NonNull::new(unsafe { bindings::xdp_get_shared_info_from_buff(raw) })?,
            layout,
            flags,
            taken: 0,
            _poll: PhantomData,
        })
    }

    /// Gives them up: they are those of `raw`, which must describe the rest of the frame.
    pub(super) fn lend(self, raw: &mut bindings::xdp_buff) {
        *flags(raw) = self.flags;
        // The list has them.
        mem::forget(self);
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
        // SAFETY: As long as this is no SKB, the field is in use.
        unsafe { self.info().__bindgen_anon_2.__bindgen_anon_1.xdp_frags_size }
    }

    /// Gives them up, as those of an SKB that was built around the first buffer.
    ///
    /// # Safety
    ///
    /// `skb` must be that, new and ours alone. `len` and `count` must be what the functions of that
    /// name have returned before it was built.
    pub(super) unsafe fn into_skb(self, skb: *mut bindings::sk_buff, count: usize, len: u32) {
        // SAFETY: By the safety requirements, and the list is where the SKB has its own.
        unsafe {
            bindings::xdp_update_skb_frags_info(
                skb,
                // CAST: It was a `u8`.
                count as u8,
                len,
                // CAST: A few pages.
                (count * self.layout.size()) as u32,
                self.flags,
            );
        }
        mem::forget(self);
    }

    /// Takes the next one.
    pub(super) fn next(&mut self) -> Option<Part<'p>> {
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
            // SAFETY: By the type invariants, and `self` exists during the poll only.
            buffer: unsafe { CpuBuffer::of_fragment(page, self.layout) },
            offset,
            len,
        })
    }
}

impl Drop for Fragments<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // By value: with a reference, all frames would have to be in memory for the sake of those
        // that have fragments.
        give_back(Self { ..*self });
    }
}

/// Gives fragments back to their pool.
#[cold]
#[inline(never)]
fn give_back(fragments: Fragments<'_>) {
    let mut fragments = mem::ManuallyDrop::new(fragments);

    while fragments.next().is_some() {}
}
