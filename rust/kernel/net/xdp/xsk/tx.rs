// SPDX-License-Identifier: GPL-2.0

//! Frames that leave from memory of users: those of the users, and those that programs send back.

use super::XskFrame;

use crate::{
    bindings,
    dma::DmaAddress,
    net::{
        napi::XskPool,
        queue::{
            bus_address,
            Place,
            RingSlots, //
        },
        xdp::XdpFormat, //
    },
    prelude::*, //
};

use core::{
    marker::PhantomData,
    mem,
    ptr::NonNull, //
};

/// The frames that go back when the NIC is done with a descriptor.
#[derive(Default)]
pub(super) struct Sent {
    /// This frame goes back to its pool.
    buff: Option<NonNull<bindings::xdp_buff>>,
    /// So many frames go back to users.
    users: u32,
}

impl Sent {
    /// Gives back what the NIC does not have any more. Returns the number of frames that go back to
    /// users.
    ///
    /// # Safety
    ///
    /// The frame must be of a pool that is there, and that nothing else uses at the same time.
    #[inline(always)]
    pub(super) unsafe fn give_back(self) -> u32 {
        if let Some(buff) = self.buff {
            // SAFETY: By the safety requirements.
            unsafe { bindings::xsk_buff_free(buff.as_ptr()) };
        }
        self.users
    }
}

/// The frames of users that were given to the NIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XskSent {
    /// Their number.
    pub frames: usize,
    /// The bytes in them.
    pub bytes: u64,
    /// The number of those that the NIC cannot send. Users have got them back.
    pub refused: usize,
    /// There may be more, for which there is room: the poll function has to go on.
    pub has_more: bool,
}

/// The transmit ring of an [`XskRing`](super::XskRing).
///
/// # Invariants
///
/// - As long as the instance has the memory of the ring, `slots` are its descriptors, and `sent`
///   points to as many places, which nothing else accesses.
/// - Positions are free-running, and count words. `next_free` is ahead of `next_done` by less than
///   the ring has.
pub(super) struct TxSide<F: XdpFormat> {
    slots: RingSlots,
    sent: NonNull<Sent>,
    next_done: usize,
    next_free: usize,
    /// The position up to which the NIC was told of frames.
    told: usize,
    // Invariant, as for `RxRing`.
    _format: PhantomData<fn(F) -> F>,
}

impl<F: XdpFormat> TxSide<F> {
    /// # Safety
    ///
    /// The arguments must be as the type invariants have them.
    pub(super) unsafe fn new(slots: RingSlots, sent: NonNull<Sent>) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            slots,
            sent,
            next_done: 0,
            next_free: 0,
            told: 0,
            _format: PhantomData,
        }
    }

    /// Number of frames that the NIC has, or is to get.
    #[inline]
    pub(super) fn in_use(&self) -> usize {
        self.next_free.wrapping_sub(self.next_done) / RingSlots::WORDS
    }

    /// See [`XskRing::take_tx_tail`](super::XskRing::take_tx_tail).
    #[inline]
    pub(super) fn take_tail(&mut self) -> Option<usize> {
        if self.told == self.next_free {
            return None;
        }
        self.told = self.next_free;
        Some(self.slots.index(self.next_free))
    }

    /// The frames of a descriptor.
    ///
    /// # Safety
    ///
    /// The instance must have the memory, and `place` be one of this ring.
    #[inline(always)]
    unsafe fn sent(&mut self, place: Place) -> &mut Sent {
        // SAFETY: By the type invariants and the safety requirements.
        unsafe { self.sent.byte_add(place.offset::<Sent>()).as_mut() }
    }

    /// Takes back what the NIC has sent.
    ///
    /// # Safety
    ///
    /// The instance of the ring must be being polled, and not by netpoll, or be disabled, with the
    /// NIC stopped. `pool` must be that of the ring, and there.
    #[inline]
    pub(super) unsafe fn complete(&mut self, pool: &XskPool) {
        // SAFETY: By the safety requirements.
        unsafe { self.take_back(pool, F::is_sent) }
    }

    /// Takes back all that the NIC has, and begins with the first descriptor again.
    ///
    /// # Safety
    ///
    /// As for [`Self::complete`], and the NIC must have stopped.
    pub(super) unsafe fn restart(&mut self, pool: &XskPool) {
        // SAFETY: By the safety requirements.
        unsafe { self.take_back(pool, |_| true) };
        // INVARIANT: The NIC has none.
        (self.next_done, self.next_free, self.told) = (0, 0, 0);
    }

    /// Takes back frames, as long as the second word of their descriptor says so.
    ///
    /// # Safety
    ///
    /// As for [`Self::complete`].
    #[inline(always)]
    unsafe fn take_back(&mut self, pool: &XskPool, is_done: impl Fn(u64) -> bool) {
        let mut users = 0;

        while self.next_done != self.next_free {
            let place = self.slots.place(self.next_done);

            // SAFETY: By the safety requirements, the instance has the memory.
            if !is_done(unsafe { self.slots.second(place) }) {
                break;
            }
            // SAFETY: As above, and this poll function alone uses the pool.
            users += unsafe { mem::take(self.sent(place)).give_back() };
            self.next_done = self.next_done.wrapping_add(RingSlots::WORDS);
        }
        if users != 0 {
            // SAFETY: By the safety requirements. C has counted as many when it gave them to us.
            unsafe { bindings::xsk_tx_completed(pool.as_raw(), users) };
        }
    }

    /// The number of frames for which there is room: all but one can be in use.
    #[inline]
    fn room(&self) -> usize {
        self.slots.len() - 1 - self.in_use()
    }

    /// Gives a frame to the NIC, which has to be told.
    ///
    /// # Safety
    ///
    /// There must be room, and the instance have the memory. `address` must be that of `len` bytes
    /// of the pool.
    #[inline(always)]
    unsafe fn put(&mut self, address: DmaAddress, len: u16, what: Sent) {
        let place = self.slots.place(self.next_free);
        let words = F::tx_descriptor(bus_address(address), len, len, true);

        // SAFETY: By the safety requirements.
        unsafe {
            self.slots.write(place, words);
            *self.sent(place) = what;
        }
        // INVARIANT: There was room.
        self.next_free = self.next_free.wrapping_add(RingSlots::WORDS);
    }

    /// Takes up to `most` frames from users, and gives them to the NIC.
    ///
    /// # Safety
    ///
    /// The instance of the ring must be being polled, and not by netpoll. `pool` must be that of
    /// the ring.
    pub(super) unsafe fn transmit(&mut self, pool: &XskPool, most: usize) -> XskSent {
        let raw = pool.as_raw();
        let room = self.room();
        let wanted = room.min(most);
        let mut result = XskSent::default();
        // The frames that users get back at once, as none is on its way.
        let mut done = 0;

        if wanted == 0 {
            return result;
        }
        // SAFETY: The pool is there, and this poll function alone uses it.
        //
        // CAST: It is less than the length of a ring.
        let count =
            unsafe { bindings::xsk_tx_peek_release_desc_batch(raw, wanted as u32) } as usize;

        for index in 0..count.min(wanted) {
            // SAFETY: C has written so many, in memory of the kernel, after it has checked them.
            let desc = unsafe { taken(raw, index) };
            let len = u16::try_from(desc.len).unwrap_or(0);

            if !(F::MIN_LEN..=F::MAX_LEN).contains(&len) {
                result.refused += 1;
                if self.in_use() == 0 {
                    done += 1;
                } else {
                    // Frames go back in their order: with the one before.
                    let last = self.next_free.wrapping_sub(RingSlots::WORDS);
                    let place = self.slots.place(last);

                    // SAFETY: By the safety requirements.
                    unsafe { self.sent(place) }.users += 1;
                }
                continue;
            }
            // SAFETY: The pool has so many bytes there. There is room for as many as were wanted.
            unsafe {
                let address = bindings::xsk_buff_raw_get_dma(raw, desc.addr);

                bindings::xsk_buff_raw_dma_sync_for_device(raw, address, len.into());
                self.put(
                    address,
                    len,
                    Sent {
                        buff: None,
                        users: 1,
                    },
                );
            }
            result.frames += 1;
            result.bytes += u64::from(len);
        }
        if done != 0 {
            // SAFETY: As above. These are the oldest ones: none was on its way.
            unsafe { bindings::xsk_tx_completed(raw, done) };
        }
        result.has_more = count == wanted && wanted < room;
        result
    }

    /// Sends a frame back, as a program has left it. Returns the number of bytes, or the frame if
    /// there is no room.
    ///
    /// # Safety
    ///
    /// As for [`Self::transmit`]. The frame must be of that pool.
    pub(super) unsafe fn send_back<'p>(
        &mut self,
        pool: &XskPool,
        frame: XskFrame<'p>,
    ) -> Result<u16, XskFrame<'p>> {
        let buff = frame.as_raw();

        if self.room() == 0 {
            return Err(frame);
        }
        // SAFETY: The frame is valid. All `struct xdp_buff` have this field.
        let (start, data, end, room_end, dma) = unsafe {
            let start = (*buff).data_hard_start;
            let size = (*buff).__bindgen_anon_1.__bindgen_anon_1.frame_sz;

            (
                start.addr(),
                (*buff).data,
                (*buff).data_end.addr(),
                // CAST: `usize` has at least 32 bits wherever the kernel runs.
                start.addr().wrapping_add(size as usize),
                bindings::xsk_buff_xdp_get_dma(buff),
            )
        };
        // C has kept the ends within the frame, and leaves no more than that.
        let len = end.wrapping_sub(data.addr());
        let padded = len.max(F::MIN_LEN.into());
        if padded > F::MAX_LEN.into() || data.addr().wrapping_add(padded) > room_end {
            return Err(frame);
        }
        for offset in len..padded {
            // SAFETY: This is within the frame. The user may write there at the same time.
            unsafe { data.cast::<u8>().wrapping_add(offset).write_volatile(0) };
        }
        let first = start.wrapping_add(bindings::XDP_PACKET_HEADROOM as usize);
        // CAST: It is less than nothing if the program has used headroom, and wraps.
        let moved = data.addr().wrapping_sub(first) as isize as DmaAddress;
        let address = dma.wrapping_add(moved);
        // CAST: It is not more than `F::MAX_LEN`.
        let len = padded as u16;

        // SAFETY: These bytes are within the frame, and there is room.
        unsafe {
            bindings::xsk_buff_raw_dma_sync_for_device(pool.as_raw(), address, len.into());
            self.put(
                address,
                len,
                Sent {
                    buff: Some(frame.into_raw()),
                    users: 0,
                },
            );
        }
        Ok(len)
    }
}

#[cfg(CONFIG_KUNIT)]
impl<F: XdpFormat> TxSide<F> {
    /// # Safety
    ///
    /// The instance must have the memory.
    pub(super) unsafe fn write_back(&self, index: usize, status: u64) {
        let place = self.slots.place(RingSlots::position(index));
        // SAFETY: By the safety requirements.
        unsafe { self.slots.write(place, [0, status]) };
    }

    /// # Safety
    ///
    /// As above.
    pub(super) unsafe fn words(&self, index: usize) -> [u64; 2] {
        let place = self.slots.place(RingSlots::position(index));
        // SAFETY: By the safety requirements.
        unsafe { [self.slots.first(place), self.slots.second(place)] }
    }
}

/// A descriptor that C has taken from the user.
///
/// # Safety
///
/// The pool must be there, and C have taken more than `index` of them from it.
#[cfg(CONFIG_XDP_SOCKETS)]
#[inline(always)]
unsafe fn taken(pool: *mut bindings::xsk_buff_pool, index: usize) -> bindings::xdp_desc {
    // SAFETY: By the safety requirements.
    unsafe { (*pool).tx_descs.add(index).read() }
}

/// The same of kernels without such sockets, where C takes none.
///
/// # Safety
///
/// As there.
#[cfg(not(CONFIG_XDP_SOCKETS))]
unsafe fn taken(_: *mut bindings::xsk_buff_pool, _: usize) -> bindings::xdp_desc {
    bindings::xdp_desc::default()
}
