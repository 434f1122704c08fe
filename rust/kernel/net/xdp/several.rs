// SPDX-License-Identifier: GPL-2.0

//! Frames in several buffers, for programs that can do with them (`xdp.frags`).

use super::{
    Fragments,
    XdpBuff,
    XdpFormat,
    XdpPolling,
    XdpReceived, //
};

use crate::net::page_pool::{
    ring::parts::Rest,
    DeviceBuffer,
    Received, //
};

use core::mem;

impl<'p, F: XdpFormat> XdpPolling<'_, 'p, F> {
    /// Takes the next frame, which is in several buffers, if the NIC is done with all of its
    /// descriptors: see [`Self::next`].
    #[cold]
    #[inline(never)]
    pub fn next_of_several(&mut self) -> Option<XdpReceived<'p, F>> {
        let rest = self.rx().rest();

        if let Rest::Missing = rest {
            return None;
        }
        let Received {
            info,
            status,
            buffer,
        } = self.rx().next()?;
        let mut whole = XdpReceived {
            info,
            status,
            buff: None,
        };
        let (Rest::There(count), Some(buffer)) = (rest, buffer) else {
            return Some(whole);
        };
        let mut buff = XdpBuff::new(buffer);
        let mut is_whole = true;

        self.ring.context.raw.data_hard_start = buff.buffer.address(F::LAYOUT);
        for _ in 0..count {
            let Some(part) = self.rx().next() else {
                // The NIC has changed its mind.
                is_whole = false;
                break;
            };

            (whole.info, whole.status) = (part.info, part.status);
            is_whole &= part.buffer.is_some_and(|part| {
                // SAFETY: The frame is in the first buffer, of the pool of this ring as the part
                // is. Nothing else has access to it.
                unsafe { part.append_to(&mut self.ring.context.raw) }
            });
        }
        // INVARIANT: The buffer lists the fragments. They go with it, here or later.
        buff.flags = mem::take(self.flags());
        whole.buff = is_whole.then_some(buff);
        Some(whole)
    }

    /// Gives the fragments of the frame that the context describes back to the ring.
    #[cold]
    #[inline(never)]
    pub(super) fn recycle_fragments(&mut self) {
        // SAFETY: These are the fragments that the program has left, and the buffer that lists them
        // comes after them.
        let mut fragments =
            unsafe { Fragments::take(self.ring.context.raw.data_hard_start, F::LAYOUT) };

        while let Some(part) = fragments.next() {
            self.give_back(part.buffer);
        }
    }

    /// As [`Self::transmit`], of a frame with fragments.
    #[cold]
    #[inline(never)]
    pub(super) fn transmit_several(&mut self, buffer: DeviceBuffer) -> Result<u32, DeviceBuffer> {
        let (headroom, len) = self.ends();
        // SAFETY: These are the fragments that the program has left. They are taken before the
        // buffer can be dropped, or stay with it.
        let mut fragments =
            unsafe { Fragments::take(self.ring.context.raw.data_hard_start, F::LAYOUT) };
        let total = len + fragments.len();
        let mut left = fragments.count();
        let (mut rx, tx) = self.rings();
        let fits = u32::from(F::MIN_LEN)..=u32::from(F::MAX_LEN);

        // SAFETY: By the type invariants, this is the transmit ring.
        if !fits.contains(&total) || !unsafe { rx.can_transmit(tx, &buffer, 1 + left) } {
            mem::forget(fragments);
            return Err(buffer);
        }
        // CAST: It is not more than `F::MAX_LEN`.
        let of = total as u16;

        // SAFETY: There is room. The parts are where the program has left them. The first buffer,
        // where the others are listed, stays in the ring until that is completed.
        unsafe {
            // CAST: They are within a page.
            rx.transmit_part(tx, buffer, headroom as u16, len as u16, of, false);
            while let Some(part) = fragments.next() {
                left -= 1;
                rx.transmit_part(tx, part.buffer, part.offset, part.len, of, left == 0);
            }
        }
        Ok(total)
    }
}
