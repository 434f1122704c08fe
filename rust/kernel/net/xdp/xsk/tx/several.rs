// SPDX-License-Identifier: GPL-2.0

//! Frames in several buffers that leave.

use super::{
    super::{
        parts::{
            Parts,
            PARTS, //
        },
        XskFrame, //
    },
    metadata::Asked,
    taken,
    Put,
    Sent,
    TxSide, //
};

use crate::{
    bindings,
    dma::DmaAddress,
    net::{
        napi::XskPool,
        queue::{
            bus_address,
            RingSlots, //
        },
        xdp::{
            xsk::needs_sync,
            XdpFormat, //
        }, //
    }, //
};

/// Whether a frame goes on with the next descriptor.
fn goes_on(desc: &bindings::xdp_desc) -> bool {
    desc.options & bindings::XDP_PKT_CONTD != 0
}

impl<F: XdpFormat> TxSide<F> {
    /// Gives the frame back that goes on with the descriptors that C has taken, as far as its end.
    /// Returns their number.
    ///
    /// # Safety
    ///
    /// As for [`Self::put_users`].
    #[cold]
    pub(super) unsafe fn refuse_rest(
        &mut self,
        pool: *mut bindings::xsk_buff_pool,
        count: usize,
    ) -> usize {
        let mut number = 0;

        while self.is_cut && number != count {
            // SAFETY: By the safety requirements.
            self.is_cut = goes_on(&unsafe { taken(pool, number).read() });
            number += 1;
        }
        if number != 0 {
            // SAFETY: By the safety requirements.
            unsafe { self.refuse(pool, number) };
        }
        number
    }

    /// Gives the frame to the NIC that begins with the descriptor `first`, of `left` ones. If it
    /// cannot send it, or not all of it is there, it goes back as a whole.
    ///
    /// # Safety
    ///
    /// As for [`Self::put_users`].
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn put_parts(
        &mut self,
        pool: *mut bindings::xsk_buff_pool,
        first: usize,
        left: usize,
    ) -> Put {
        let mut count = 0;
        let mut bytes = 0;

        // C gives whole frames, except those of sockets that share memory for frames in one buffer.
        self.is_cut = true;
        while self.is_cut && count != left {
            // SAFETY: By the safety requirements.
            let desc = unsafe { taken(pool, first + count).read() };

            bytes += u64::from(desc.len);
            self.is_cut = goes_on(&desc);
            count += 1;
        }

        let fits = (u64::from(F::MIN_LEN)..=u64::from(F::MAX_LEN)).contains(&bytes)
            && count < self.room() + usize::from(!self.is_asked)
            && count <= F::MAX_PARTS;
        // The user may ask with the first one.
        //
        // SAFETY: By the safety requirements.
        let asked = unsafe { Asked::of::<F>(pool, &taken(pool, first).read(), bytes) };
        if self.is_cut || !fits || matches!(asked, Asked::Refused) {
            // SAFETY: By the safety requirements.
            unsafe { self.refuse(pool, count) };
            return Put {
                taken: count,
                refused: 1,
                ..Put::default()
            };
        }

        // SAFETY: By the safety requirements, the pool is there, and so is its device.
        let syncs = unsafe { needs_sync(pool) };
        let start = self.next_free;
        let mut position = start;
        if let Asked::Checksum(words) = asked {
            // SAFETY: By the safety requirements, the instance has the memory. There is room.
            unsafe { self.slots.write(self.slots.place(position), words) };
            position = position.wrapping_add(RingSlots::WORDS);
        }
        for number in 1..=count {
            // SAFETY: By the safety requirements. The pool has so many bytes there. There is room.
            unsafe {
                let desc = taken(pool, first + number - 1).read();
                let address = bindings::xsk_buff_raw_get_dma(pool, desc.addr);

                if syncs {
                    bindings::xsk_buff_raw_dma_sync_for_device(pool, address, desc.len as usize);
                }
                // CAST: Not more than `F::MAX_LEN` in all.
                let (len, total) = (desc.len as u16, bytes as u16);
                let words = F::tx_descriptor(bus_address(address), len, total, number == count);
                let words = if let Asked::Checksum(_) = asked {
                    F::with_checksum(words)
                } else {
                    words
                };
                self.slots.write(self.slots.place(position), words);
            }
            position = position.wrapping_add(RingSlots::WORDS);
        }
        let reported = position.wrapping_sub(start).wrapping_sub(RingSlots::WORDS);
        // SAFETY: By the safety requirements.
        unsafe {
            *self.sent(self.slots.place(start)) = Sent {
                buff: None,
                // CAST: Not more than `F::MAX_PARTS`.
                users: count as u32,
                // CAST: Less than the positions of a ring.
                reported: reported as u32,
            };
        }
        // INVARIANT: There was room, and the first of these descriptors has a `Sent` for all.
        (self.newest, self.next_free) = (start, position);
        Put {
            taken: count,
            frames: 1,
            bytes,
            refused: 0,
        }
    }

    /// Sends a frame back, as a program has left it. Returns the number of bytes, or [`None`] if
    /// there is no room, or if the NIC cannot send it: then it goes back to its pool.
    ///
    /// # Safety
    ///
    /// As for [`Self::transmit`]. The frame must be of that pool.
    pub(in crate::net::xdp::xsk) unsafe fn send_back_several(
        &mut self,
        pool: &XskPool,
        mut parts: Parts<'_>,
    ) -> Option<u32> {
        let mut places = [(0, 0); PARTS];
        let mut count = 0;
        let mut total = 0;

        for (part, place) in parts.buffers.iter().flatten().zip(&mut places) {
            let (address, len) = mapped(part)?;
            let len = u16::try_from(len).ok()?;

            // The NIC takes no empty ones.
            if len == 0 {
                return None;
            }
            *place = (address, len);
            total += usize::from(len);
            count += 1;
        }
        if count == 1 {
            let [head, ..] = &mut parts.buffers;

            // SAFETY: By the safety requirements. Its ends were just found to be within its memory.
            return unsafe { self.send_back(pool, head.take()?) }
                .map(u32::from)
                .ok();
        }
        let total = u16::try_from(total).ok()?;
        if !(F::MIN_LEN..=F::MAX_LEN).contains(&total) || count > self.room().min(F::MAX_PARTS) {
            return None;
        }

        // CAST: Less than the length of a ring.
        let mut reported = RingSlots::position(count - 1) as u32;
        let first = self.next_free;
        let parts = parts.buffers.into_iter().flatten();
        for (number, (part, (address, len))) in parts.zip(places).enumerate() {
            let place = self.slots.place(self.next_free);

            // SAFETY: These bytes are within the memory of the frame, and there is room.
            unsafe {
                bindings::xsk_buff_raw_dma_sync_for_device(pool.as_raw(), address, len.into());
                let words = F::tx_descriptor(bus_address(address), len, total, number + 1 == count);
                self.slots.write(place, words);
                *self.sent(place) = Sent {
                    buff: Some(part.into_raw()),
                    users: 0,
                    reported: core::mem::take(&mut reported),
                };
            }
            // INVARIANT: There was room for all, each of which has its `Sent`.
            self.next_free = self.next_free.wrapping_add(RingSlots::WORDS);
        }
        self.newest = first;
        Some(total.into())
    }
}

/// The address of the bytes in a buffer, and their number, if they are within its memory.
fn mapped(part: &XskFrame<'_>) -> Option<(DmaAddress, usize)> {
    let raw = part.as_raw();
    // SAFETY: The description is valid.
    let (start, data, dma) = unsafe {
        (
            (*raw).data_hard_start.addr(),
            (*raw).data,
            bindings::xsk_buff_xdp_get_dma(raw),
        )
    };
    let first = start.wrapping_add(bindings::XDP_PACKET_HEADROOM as usize);
    // CAST: It is less than nothing if the program has used headroom, and wraps.
    let moved = data.addr().wrapping_sub(first) as isize as DmaAddress;

    Some((dma.wrapping_add(moved), part.len_from(data)?))
}
