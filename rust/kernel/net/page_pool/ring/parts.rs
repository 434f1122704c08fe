// SPDX-License-Identifier: GPL-2.0

//! Frames in several buffers, for programs: their descriptors are next to each other.
//!
//! A program sees whole frames only. So all buffers of one stay in the ring until the NIC is done
//! with the last, where nothing else gets at them, and are taken together.

use super::{
    super::CpuBuffer,
    recycling::Recycling,
    transmit::XdpFormat,
    RxRing, //
};
use crate::{
    bindings,
    net::queue::RingSlots, //
};
use core::mem;

/// The most buffers of a frame: the first one, and the fragments that it has room to list.
const BUFFERS: usize = 1 + bindings::MAX_SKB_FRAGS as usize;

/// The rest of a frame that goes on behind the next descriptor.
pub(in crate::net) enum Rest {
    /// The NIC is not done with it.
    Missing,
    /// So many descriptors, the last of which ends it.
    There(usize),
    /// It has more buffers than a frame can have, or the ring.
    Endless,
}

impl<F: XdpFormat> Recycling<'_, '_, F> {
    /// Looks for the end of a frame. The words are read again when its descriptors are taken: a NIC
    /// may have changed them.
    pub(in crate::net) fn rest(&self) -> Rest {
        let RxRing {
            slots, next_done, ..
        } = &*self.ring;
        let most = BUFFERS.min(RxRing::<F>::capacity(slots.desc.len()));

        for number in 1..most {
            let place = slots
                .desc
                .place(next_done.wrapping_add(RingSlots::position(number)));

            // SAFETY: By the type invariants, the memory exists.
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
}

impl CpuBuffer<'_> {
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
}
