// SPDX-License-Identifier: GPL-2.0

//! Frames that leave from memory of users: those of the users, and those that programs send back.

mod metadata;
mod several;

pub(in crate::net) use self::metadata::TX_METADATA;

use super::XskFrame;

use crate::{
    bindings,
    dma::DmaAddress,
    net::{
        napi::XskPool,
        queue::{
            bus_address,
            Place,
            RingSize,
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

/// The most frames of users that the NIC reports together.
const REPORTED: usize = 32;

/// The frames that go back when the NIC reports that it has sent them. The first of their
/// descriptors has this. If a frame that goes back to its pool is in several buffers, each of its
/// descriptors has the one of its own.
#[derive(Default)]
pub(super) struct Sent {
    /// This frame goes back to its pool.
    buff: Option<NonNull<bindings::xdp_buff>>,
    /// So many frames go back to users.
    users: u32,
    /// The NIC reports them with the descriptor that is so many positions further on.
    reported: u32,
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
    /// The number of those that the NIC cannot send, or that have no end. Users have got them back.
    pub refused: usize,
    /// There may be more, for which there is room: the poll function has to go on.
    pub has_more: bool,
}

/// Some of the descriptors that C has taken from users.
#[derive(Default)]
struct Put {
    /// So many.
    taken: usize,
    /// The frames in them that were given to the NIC, and their bytes.
    frames: usize,
    bytes: u64,
    /// Those that cannot be.
    refused: usize,
}

/// The transmit ring of an [`XskRing`](super::XskRing).
///
/// # Invariants
///
/// - As long as the instance has the memory of the ring, `slots` are its descriptors, and `sent`
///   points to as many places, which nothing else accesses.
/// - Positions are free-running, and count words. `next_free` is ahead of `next_done` by less than
///   the ring has.
/// - Descriptors from `next_done` to `next_free` are those of whole [`Sent`], each of which is at
///   its first one. The last of these begins at `newest`, if there are any.
pub(super) struct TxSide<F: XdpFormat> {
    slots: RingSlots,
    sent: NonNull<Sent>,
    next_done: usize,
    next_free: usize,
    newest: usize,
    /// The position up to which the NIC was told of frames.
    told: usize,
    /// The most descriptors of a frame of the user.
    parts: usize,
    /// A frame of the user may take one descriptor more: for each that C gives, there has to be
    /// room for another one.
    is_asked: bool,
    /// The next descriptor of a user goes on with a frame that was refused.
    is_cut: bool,
    // Invariant, as for `RxRing`.
    _format: PhantomData<fn(F) -> F>,
}

impl<F: XdpFormat> TxSide<F> {
    /// # Safety
    ///
    /// The arguments must be as the type invariants have them.
    pub(super) unsafe fn new(slots: RingSlots, sent: NonNull<Sent>, pool: &XskPool) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            slots,
            sent,
            next_done: 0,
            next_free: 0,
            newest: 0,
            told: 0,
            parts: pool.sent_parts(F::MAX_PARTS),
            is_asked: pool.has_metadata(),
            is_cut: false,
            _format: PhantomData,
        }
    }

    /// Fails if a ring is too short for a frame of the user.
    pub(super) fn check_len(len: RingSize, pool: &XskPool) -> Result {
        let most = pool.sent_parts(F::MAX_PARTS);
        let most = if pool.has_metadata() { 2 * most } else { most };

        if len.get() <= most {
            return Err(EINVAL);
        }
        Ok(())
    }

    /// Number of descriptors that the NIC has, or is to get.
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
        (self.next_done, self.next_free, self.newest, self.told) = (0, 0, 0, 0);
        self.is_cut = false;
    }

    /// Takes back frames, as long as the second word of the descriptor that reports them says so.
    ///
    /// # Safety
    ///
    /// As for [`Self::complete`].
    #[inline(always)]
    unsafe fn take_back(&mut self, pool: &XskPool, is_done: impl Fn(u64) -> bool) {
        let mut users = 0;
        let mut position = self.next_done;

        while position != self.next_free {
            let place = self.slots.place(position);
            // SAFETY: By the safety requirements, the instance has the memory.
            let sent = unsafe { self.sent(place) };
            // CAST: `usize` has at least 32 bits wherever the kernel runs.
            let last = position.wrapping_add(sent.reported as usize);

            // SAFETY: As above.
            if !is_done(unsafe { self.slots.second(self.slots.place(last)) }) {
                break;
            }
            // SAFETY: As above, and this poll function alone uses the pool.
            users += unsafe { self.give_back(position, last) };
            position = last.wrapping_add(RingSlots::WORDS);
        }
        // INVARIANT: By the type invariants, these were whole ones.
        self.next_done = position;
        if users != 0 {
            // SAFETY: By the safety requirements. C has counted as many when it gave them to us.
            unsafe { bindings::xsk_tx_completed(pool.as_raw(), users) };
        }
    }

    /// Gives back what the NIC has sent, from one descriptor to the last one of a report. Returns
    /// the number of those of users.
    ///
    /// # Safety
    ///
    /// As for [`Self::complete`].
    #[inline(always)]
    unsafe fn give_back(&mut self, first: usize, last: usize) -> u32 {
        // SAFETY: By the safety requirements, the instance has the memory.
        let sent = unsafe { mem::take(self.sent(self.slots.place(first))) };

        if sent.buff.is_some() && first != last {
            let mut position = first;

            while position != last {
                position = position.wrapping_add(RingSlots::WORDS);
                // SAFETY: As above, and this poll function alone uses the pool. This one is of no
                // user.
                let _ = unsafe { mem::take(self.sent(self.slots.place(position))).give_back() };
            }
        }
        // SAFETY: As above.
        unsafe { sent.give_back() }
    }

    /// The number of descriptors for which there is room: all but one can be in use.
    #[inline]
    fn room(&self) -> usize {
        self.slots.len() - 1 - self.in_use()
    }

    /// The number of descriptors of users for which there is room.
    #[inline]
    fn room_for_users(&self) -> usize {
        self.room() >> u32::from(self.is_asked)
    }

    /// Takes up to `most` frames from users, and gives them to the NIC.
    ///
    /// # Safety
    ///
    /// The instance of the ring must be being polled, and not by netpoll. `pool` must be that of
    /// the ring.
    pub(super) unsafe fn transmit(&mut self, pool: &XskPool, most: usize) -> XskSent {
        let raw = pool.as_raw();
        // C takes whole frames, as far as there is room.
        let wanted = self.room_for_users().min(most.max(self.parts));
        let mut result = XskSent::default();

        if wanted < self.parts {
            return result;
        }
        // SAFETY: The pool is there, and this poll function alone uses it.
        //
        // CAST: It is less than the length of a ring.
        let (count, taken) = unsafe {
            let before = bindings::xsk_pool_tx_taken(raw);
            let count = bindings::xsk_tx_peek_release_desc_batch(raw, wanted as u32);

            (count, bindings::xsk_pool_tx_taken(raw).wrapping_sub(before))
        };
        // C stops at what is no frame, which it gives back itself.
        let has_stopped = taken != count;
        // CAST: `usize` has at least 32 bits wherever the kernel runs.
        let count = (count as usize).min(wanted);
        let mut first = 0;

        if self.is_cut {
            // SAFETY: C has written so many, in memory of the kernel, after it has checked them.
            first = unsafe { self.refuse_rest(raw, count) };
        }
        while first < count {
            let several = REPORTED.min(count - first);
            // SAFETY: As above. There is room for as many as were wanted.
            let mut put = unsafe { self.put_users(raw, first, several) };

            if put.taken < several {
                first += put.taken;
                result.add(put);
                // SAFETY: As above.
                put = unsafe { self.put_parts(raw, first, count - first) };
            }
            first += put.taken;
            result.add(put);
        }
        // If there is no room, frames are under way, whose completion polls again. There may be one
        // that was too long for what was wanted.
        result.has_more =
            (has_stopped || wanted - count < self.parts) && self.room_for_users() >= self.parts;
        result
    }

    /// Gives up to `count` frames to the NIC that C has taken from users, from `first` on, each of
    /// which is in one descriptor. Those that it cannot send go back with the others.
    ///
    /// # Safety
    ///
    /// As for [`Self::transmit`]. C must have taken so many frames, and there must be room.
    // Not inlined: the loop's variables stay in registers.
    #[inline(never)]
    unsafe fn put_users(
        &mut self,
        pool: *mut bindings::xsk_buff_pool,
        first: usize,
        count: usize,
    ) -> Put {
        // SAFETY: By the safety requirements, the pool is there, and so is its device.
        let syncs = unsafe { super::needs_sync(pool) };
        let (slots, start) = (self.slots, self.next_free);
        let mut position = start;
        let mut bytes = 0;
        // SAFETY: By the safety requirements.
        let descs = unsafe { taken(pool, first) };
        // The last one that the NIC can send.
        let mut last = 0;
        let mut number = 0;

        while number != count {
            // SAFETY: By the safety requirements.
            let desc = unsafe { descs.add(number).read() };
            let Some(len) = sendable::<F>(&desc) else {
                if desc.options != 0 {
                    break;
                }
                number += 1;
                continue;
            };
            // SAFETY: The pool has so many bytes there. There is room.
            unsafe {
                let address = bindings::xsk_buff_raw_get_dma(pool, desc.addr);

                if syncs {
                    bindings::xsk_buff_raw_dma_sync_for_device(pool, address, len.into());
                }
                let words = F::tx_unreported(bus_address(address), len);
                slots.write(slots.place(position), words);
            }
            position = position.wrapping_add(RingSlots::WORDS);
            bytes += u64::from(len);
            last = number;
            number += 1;
        }

        let count = number;
        if position == start {
            if count != 0 {
                // SAFETY: As above.
                unsafe { self.refuse(pool, count) };
            }
            return Put {
                taken: count,
                refused: count,
                ..Put::default()
            };
        }
        let end = position.wrapping_sub(RingSlots::WORDS);
        let reported = end.wrapping_sub(start);
        // The NIC was not told of it yet.
        //
        // SAFETY: As above.
        unsafe {
            let desc = descs.add(last).read();
            let address = bindings::xsk_buff_raw_get_dma(pool, desc.addr);
            // CAST: It can be sent, so it is not more than `F::MAX_LEN`.
            let len = desc.len as u16;
            let words = F::tx_descriptor(bus_address(address), len, len, true);

            self.slots.write(self.slots.place(end), words);
            *self.sent(self.slots.place(start)) = Sent {
                buff: None,
                // CAST: Not more than `REPORTED`.
                users: count as u32,
                // CAST: Not more than the positions of that.
                reported: reported as u32,
            };
        }
        // INVARIANT: There was room, and the first of these descriptors has a `Sent` for all.
        (self.newest, self.next_free) = (start, position);
        let frames = reported / RingSlots::WORDS + 1;

        Put {
            taken: count,
            frames,
            bytes,
            refused: count - frames,
        }
    }

    /// Gives `count` descriptors back to users that the NIC cannot send: with those before them, as
    /// frames go back in their order, or at once if none is on its way.
    ///
    /// # Safety
    ///
    /// As for [`Self::put_users`].
    #[cold]
    unsafe fn refuse(&mut self, pool: *mut bindings::xsk_buff_pool, count: usize) {
        // CAST: Less than the length of a ring.
        let count = count as u32;

        if self.in_use() == 0 {
            // SAFETY: By the safety requirements. These are the oldest ones.
            unsafe { bindings::xsk_tx_completed(pool, count) };
        } else {
            // SAFETY: By the safety requirements and the type invariants.
            unsafe { self.sent(self.slots.place(self.newest)) }.users += count;
        }
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
        let place = self.slots.place(self.next_free);

        // SAFETY: These bytes are within the frame, and there is room.
        unsafe {
            bindings::xsk_buff_raw_dma_sync_for_device(pool.as_raw(), address, len.into());
            let words = F::tx_descriptor(bus_address(address), len, len, true);
            self.slots.write(place, words);
            *self.sent(place) = Sent {
                buff: Some(frame.into_raw()),
                users: 0,
                reported: 0,
            };
        }
        // INVARIANT: There was room, and the descriptor has its `Sent`.
        self.newest = self.next_free;
        self.next_free = self.next_free.wrapping_add(RingSlots::WORDS);
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

/// The length of a frame, if it is in one descriptor, nothing else is asked for, and the NIC can
/// send it.
#[inline(always)]
fn sendable<F: XdpFormat>(desc: &bindings::xdp_desc) -> Option<u16> {
    // One comparison: options make it more than a length.
    let word = u64::from(desc.options) << 32 | u64::from(desc.len);
    let is_sendable = (u64::from(F::MIN_LEN)..=u64::from(F::MAX_LEN)).contains(&word);

    // CAST: It is not more than `F::MAX_LEN`.
    is_sendable.then_some(desc.len as u16)
}

impl XskSent {
    #[inline(always)]
    fn add(&mut self, put: Put) {
        self.frames += put.frames;
        self.bytes += put.bytes;
        self.refused += put.refused;
    }
}

/// The descriptors that C has taken from the user, from one of them on.
///
/// # Safety
///
/// The pool must be there, and C have taken at least `index` of them from it.
#[cfg(CONFIG_XDP_SOCKETS)]
#[inline(always)]
unsafe fn taken(pool: *mut bindings::xsk_buff_pool, index: usize) -> *const bindings::xdp_desc {
    // SAFETY: By the safety requirements.
    unsafe { (*pool).tx_descs.add(index) }
}

/// The same of kernels without such sockets, where C takes none.
///
/// # Safety
///
/// As there.
#[cfg(not(CONFIG_XDP_SOCKETS))]
unsafe fn taken(_: *mut bindings::xsk_buff_pool, _: usize) -> *const bindings::xdp_desc {
    core::ptr::null()
}
