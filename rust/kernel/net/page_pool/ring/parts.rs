// SPDX-License-Identifier: GPL-2.0

//! Frames in several buffers, for programs: their descriptors are next to each other.
//!
//! A program sees whole frames only. So all buffers of one stay in the ring until the NIC is done
//! with the last, where nothing else gets at them, and are taken together.

use super::{
    super::{
        buffer::DeviceBuffer,
        CpuBuffer,
        Layout, //
    },
    recycling::Recycling,
    transmit::XdpFormat,
    Polling,
    RxRing, //
};
use crate::{
    bindings,
    net::queue::RingSlots, //
};
use core::{
    marker::PhantomData,
    mem,
    ptr::NonNull, //
};

/// The most buffers of a frame: the first one, and the fragments that it has room to list.
const BUFFERS: usize = 1 + bindings::MAX_SKB_FRAGS as usize;

/// The rest of a frame that goes on behind the descriptor that was taken.
pub(in crate::net) enum Rest {
    /// The NIC is not done with it.
    Missing,
    /// So many descriptors, the last of which ends it.
    There(usize),
    /// It has more buffers than a frame can have, or the ring.
    Endless,
}

impl<'p, F: XdpFormat> Recycling<'_, 'p, F> {
    /// Looks for the end of a frame. The words are read again when its descriptors are taken: a NIC
    /// may have changed them.
    pub(in crate::net) fn rest(&self) -> Rest {
        let Polling {
            slots, position, ..
        } = &self.polling;
        let most = BUFFERS.min(RxRing::<F>::capacity(slots.desc.len()));

        for number in 1..most {
            let place = slots
                .desc
                .place(position.wrapping_add(RingSlots::position(number - 1)));

            // SAFETY: By the type invariants of `Polling`, the memory exists.
            let status = unsafe { slots.desc.second(place) };
            // SAFETY: As above, with no other access to the buffers.
            let is_done = status & F::DONE != 0 && unsafe { slots.buffer(place) }.is_some();

            if !is_done {
                return Rest::Missing;
            }
            if F::is_end(status) {
                return Rest::There(number);
            }
        }
        Rest::Endless
    }

    /// Puts the buffer back that [`Self::next`] has returned: the next one is the same again.
    ///
    /// # Safety
    ///
    /// Nothing must have been done with the ring since.
    pub(in crate::net) unsafe fn put_back(&mut self, buffer: CpuBuffer<'p>) {
        let polling = &mut self.polling;
        let position = polling.position.wrapping_sub(RingSlots::WORDS);
        let place = polling.slots.desc.place(position);

        // There is none: no need to look for one to drop.
        //
        // SAFETY: By the type invariants, the memory exists, with no other access to the buffers.
        mem::forget(unsafe { polling.slots.buffer(place) }.replace(buffer.buffer));
        // INVARIANT: By the safety requirements, this is as it was.
        polling.position = position;
    }
}

impl<'p> CpuBuffer<'p> {
    /// Appends the buffer to a frame. If there is no room, it goes back to its pool, and the result
    /// is false.
    ///
    /// # Safety
    ///
    /// `raw` must describe a frame in a buffer of the same pool, which is exclusively ours, with
    /// room for `struct skb_shared_info` at its end: that lists the fragments, if the flags say so.
    pub(in crate::net) unsafe fn append_to(self, raw: &mut bindings::xdp_buff) -> bool {
        // SAFETY: By the safety requirements. The page is valid, and the bytes are in it.
        let has_room = unsafe {
            bindings::xdp_buff_add_frag(
                raw,
                bindings::page_to_netmem(self.buffer.page_of(self.layout)),
                self.layout.headroom().into(),
                self.len.into(),
                // CAST: It was a `u32`.
                self.layout.size() as u32,
            )
        };

        if has_room {
            // The list has it.
            mem::forget(self);
        }
        has_room
    }

    /// A buffer that was appended to a frame. Where its bytes are, the list knows: it has none for
    /// others to see.
    ///
    /// # Safety
    ///
    /// `page` must come from the list, in a poll function of the pool's instance, with a reference
    /// that becomes ours. `layout` must be that of its pool, of whole pages.
    pub(in crate::net) unsafe fn of_fragment(
        page: NonNull<bindings::page>,
        layout: Layout,
    ) -> Self {
        // INVARIANT: By the safety requirements. No bytes are visible.
        Self {
            // SAFETY: As above.
            buffer: unsafe { DeviceBuffer::new(page) },
            layout,
            len: 0,
            _poll: PhantomData,
        }
    }
}
