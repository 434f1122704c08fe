// SPDX-License-Identifier: GPL-2.0

//! The buffers of a frame in several ones.

use super::{
    XskFrame,
    XskRoom, //
};

use crate::{
    bindings,
    net::xdp::hints::Hints, //
};

use core::{
    mem::ManuallyDrop,
    ptr::{
        self,
        NonNull, //
    }, //
};

/// The most buffers.
pub(super) const PARTS: usize = XskRoom::PARTS as usize;

/// The most of them behind the first one.
pub(super) const FRAGMENTS: usize = PARTS - 1;

/// A frame in several buffers.
///
/// # Invariants
///
/// There is one of these per pool. The list of the pool of `head` has the buffers behind that, each
/// once, with an exclusive right to give it back, and `head` is not among them. There are not more
/// than [`FRAGMENTS`].
pub(super) struct Several<'p> {
    head: XskFrame<'p>,
    count: u32,
    bytes: u32,
    head_len: u32,
}

impl<'p> Several<'p> {
    /// Begins with the first buffer, which has `len` bytes.
    ///
    /// # Safety
    ///
    /// There must be no other one of the pool.
    pub(super) unsafe fn new(head: XskFrame<'p>, len: u16) -> Self {
        // INVARIANT: By the safety requirements. When the one before was dropped, it left an empty
        // list.
        Self {
            head,
            count: 0,
            bytes: 0,
            head_len: len.into(),
        }
    }

    /// Appends a buffer, with `len` bytes. Fails if there are too many, or if the user has given it
    /// several times.
    ///
    /// # Safety
    ///
    /// As for [`XskFrame::received`]. The pool must be that of the first one.
    pub(super) unsafe fn append(&mut self, mut part: XskFrame<'p>, len: u16, syncs: bool) -> bool {
        // SAFETY: The description is valid.
        let is_listed = unsafe { bindings::xsk_buff_is_listed(part.as_raw()) };

        if self.count as usize == FRAGMENTS || is_listed || part.as_raw() == self.head.as_raw() {
            return false;
        }
        self.bytes += u32::from(len);
        // INVARIANT: It is on no list, and not the first one. There is room.
        //
        // SAFETY: By the safety requirements. The list of C is behind the bytes of the first one.
        unsafe {
            part.set_size(len, syncs);
            bindings::xsk_buff_put_frag(
                self.head.as_raw(),
                part.into_raw().as_ptr(),
                self.count,
                self.bytes,
            );
        }
        self.count += 1;
        true
    }

    /// The first buffer.
    pub(super) fn head(&self) -> &XskFrame<'p> {
        &self.head
    }

    /// The number of bytes in it that were received.
    pub(super) fn head_len(&self) -> u32 {
        self.head_len
    }

    /// Whether there is no other.
    pub(super) fn is_alone(&self) -> bool {
        self.count == 0
    }

    /// Lets a program have hints of the frame, see [`XskFrame::describe`].
    pub(super) fn describe(&mut self, words: [u64; 2], offered: Hints) {
        self.head.describe(words, offered);
    }

    /// The number of bytes that were received.
    pub(super) fn len(&self) -> u32 {
        self.head_len + self.bytes
    }

    /// Takes the next one of the buffers behind the first, if any are left.
    pub(super) fn take_part(&mut self) -> Option<XskFrame<'p>> {
        // SAFETY: By the type invariants.
        let part = unsafe { bindings::xsk_buff_get_frag(self.head.as_raw()) };

        // SAFETY: It is ours, and not on the list any more.
        NonNull::new(part).map(|part| unsafe { XskFrame::new(part) })
    }

    /// Takes all buffers.
    pub(super) fn into_parts(mut self) -> Parts<'p> {
        let mut parts = Parts {
            buffers: [const { None }; PARTS],
        };

        for place in &mut parts.buffers[1..] {
            *place = self.take_part();
        }
        // Others are dropped.
        parts.buffers[0] = Some(self.into_head());
        parts
    }

    /// The first buffer. The others go back to their pool, if any are left.
    pub(super) fn into_head(mut self) -> XskFrame<'p> {
        self.clear();
        let this = ManuallyDrop::new(self);

        // SAFETY: It is taken once, as `this` is not dropped.
        unsafe { ptr::read(&this.head) }
    }

    /// Gives the buffers behind the first one back.
    pub(super) fn clear(&mut self) {
        while self.take_part().is_some() {}
    }
}

impl Drop for Several<'_> {
    fn drop(&mut self) {
        // All that are on the list, whatever the flags of the first one are by now.
        self.clear();
    }
}

/// The buffers of a frame, each of which is dropped by itself.
pub(super) struct Parts<'p> {
    pub(super) buffers: [Option<XskFrame<'p>>; PARTS],
}
