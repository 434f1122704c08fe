// SPDX-License-Identifier: GPL-2.0

//! Frames that leave by the device that has received them, without having been packets.
//!
//! A buffer stays mapped by its pool, and goes back there when the NIC has sent the frame. The pool
//! removes its mappings when it is destroyed, also those of buffers that are on their way. So a
//! [`TxRing`] is part of the memory of a receive queue: it goes with the receive ring, in front of
//! the pool, when the NIC accesses neither of them.

use super::{
    super::{
        dma_address,
        DeviceBuffer, //
    },
    recycling::Recycling,
    Places,
    RxFormat,
    RxRing,
    RxRingMemory,
    RxSlots, //
};
use crate::{
    bindings,
    device::{
        self,
        Bound, //
    },
    dma::DmaAddress,
    net::{
        napi::{
            Napi,
            RxClosed,
            RxStopped, //
        },
        queue::{
            bus_address,
            RingMemory,
            RingSize,
            RingSlots, //
        }, //
    },
    prelude::*,
    sync::Arc, //
};
use core::{
    marker::PhantomData,
    mem::{
        self,
        MaybeUninit, //
    },
};

/// The most pages that C takes back in one call: it has an array of this length on its stack.
const BULK: usize = bindings::XDP_BULK_QUEUE_SIZE as usize;

/// The formats of a NIC whose received frames can leave by it: its descriptors for both directions
/// are two words of 64 bits, little-endian.
pub trait XdpFormat: RxFormat {
    /// The fewest bytes of a frame that the NIC sends. Shorter ones are padded with zeroes.
    const MIN_LEN: u16;

    /// The most bytes of a frame that the NIC sends.
    const MAX_LEN: u16;

    /// The most descriptors of a frame that the NIC sends.
    const MAX_PARTS: usize = 1 + bindings::MAX_SKB_FRAGS as usize;

    /// Whether a frame ends with the buffer of a receive descriptor, by the second word. If not, it
    /// goes on with the next descriptor.
    fn is_end(status: u64) -> bool;

    /// Whether a received frame is as most are: in one buffer, and not damaged. Others take a
    /// longer way, where memory is that of users.
    #[inline(always)]
    fn is_ordinary(status: u64) -> bool {
        Self::is_end(status)
    }

    /// The descriptor of a part of a frame, in one buffer: `len` bytes at an address, of `total`
    /// ones. If the part is the last, it has the NIC report when it has sent the frame.
    fn tx_descriptor(address: u64, len: u16, total: u16, is_last: bool) -> [u64; 2];

    /// The descriptor of a frame of `len` bytes in one buffer, which the NIC need not report: it
    /// reports one that comes after it.
    #[inline(always)]
    fn tx_unreported(address: u64, len: u16) -> [u64; 2] {
        Self::tx_descriptor(address, len, len, true)
    }

    /// The descriptor that has the NIC insert a checksum into the frame whose descriptors follow:
    /// over all bytes from `start` on, stored `offset` bytes behind that, where the sum of the
    /// pseudo header is. [`None`] if the NIC cannot do that.
    fn tx_checksum(_start: u16, _offset: u16) -> Option<[u64; 2]> {
        None
    }

    /// A descriptor of a frame that follows such a one.
    fn with_checksum(words: [u64; 2]) -> [u64; 2] {
        words
    }

    /// Whether the NIC has sent the frame that ends with a descriptor, by the second word.
    fn is_sent(status: u64) -> bool;

    /// Whether the frame of a descriptor goes on with the next one, by the second word as it was
    /// given to the NIC.
    fn goes_on(status: u64) -> bool;
}

/// A ring of frames that the NIC sends.
///
/// It is used by the poll function that uses the receive ring, which neither waits for a lock nor
/// is entered again.
///
/// # Invariants
///
/// - `slots` are those of memory that belongs to the NAPI instance of the receive ring that `self`
///   is made for, which keeps it as long as it keeps the memory of that. No other handle uses it.
/// - Positions are free-running, and count words. `next_free` is ahead of `next_done` by less than
///   the ring has. Descriptors from `next_done` to `next_free` have a buffer, the others have none.
pub(in crate::net) struct TxRing<F: XdpFormat> {
    slots: RxSlots,
    /// The descriptor that the NIC completes next.
    next_done: usize,
    /// The descriptor that is given to the NIC next.
    next_free: usize,
    /// The position up to which the NIC was told of frames.
    told: usize,
    address: u64,
    /// A NIC may have got the address since `self` was made.
    is_told: bool,
    // Invariant, as for `RxRing`.
    _format: PhantomData<fn(F) -> F>,
}

impl<F: XdpFormat> TxRing<F> {
    /// Makes the ring of `napi`, in front of the receive ring: objects are dropped in this order.
    pub(in crate::net) fn new(
        dev: &device::Device<Bound>,
        napi: &Napi,
        len: RingSize,
    ) -> Result<Self> {
        napi.check_parent(dev)?;

        let memory = RxRingMemory {
            desc: RingMemory::new(dev, len)?,
            buffers: Places::new(len.get())?,
        };
        let address = memory.desc.address();
        // INVARIANT: Both are of this memory.
        let slots = RxSlots {
            desc: memory.desc.slots(),
            buffers: memory.buffers.first()?,
        };

        napi.attach(Arc::new(memory, GFP_KERNEL)?)?;
        // INVARIANT: `napi` owns the memory, which is empty, and there is no other handle.
        Ok(Self {
            slots,
            next_done: 0,
            next_free: 0,
            told: 0,
            address,
            is_told: false,
            _format: PhantomData,
        })
    }

    /// The address of the first descriptor, for a NIC that is about to start. `rx` must be the
    /// receive ring.
    ///
    /// # Errors
    ///
    /// As for [`RxRing::dma_address`].
    pub(in crate::net) fn dma_address(&mut self, rx: &RxRing<F>, napi: &Napi) -> Result<u64> {
        if napi.id() != rx.pool.napi {
            return Err(EINVAL);
        }
        if mem::replace(&mut self.is_told, true) {
            return Err(EBUSY);
        }
        Ok(self.address)
    }

    /// Lets the NIC begin with the first descriptor again. Frames that it has not sent are lost.
    /// Returns the address of that descriptor, and the number of these frames.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the queue that has stopped is not that of `rx`; [`EBUSY`] if interrupts are
    /// disabled: buffers return to their pool.
    ///
    /// # Safety
    ///
    /// `rx` must be the receive ring that `self` was made for.
    pub(in crate::net) unsafe fn rewind(
        &mut self,
        rx: &RxRing<F>,
        stopped: &RxStopped<'_>,
    ) -> Result<(u64, usize)> {
        if !stopped.napi().has(rx.pool.napi) {
            return Err(EINVAL);
        }
        // SAFETY: There are no requirements.
        if unsafe { bindings::irqs_disabled() } {
            return Err(EBUSY);
        }
        // SAFETY: It is the instance of `rx` that has stopped.
        let lost = unsafe { self.count_unsent() };
        while self.next_done != self.next_free {
            let place = self.slots.desc.place(self.next_done);

            // SAFETY: It is the instance of `rx` that has stopped, so by the type invariants the
            // memory exists, with no other access to it.
            drop(unsafe { self.slots.buffer(place) }.take());
            // INVARIANT: It has no buffer.
            self.next_done = self.next_done.wrapping_add(RingSlots::WORDS);
        }
        // INVARIANT: None has one.
        (self.next_done, self.next_free, self.told) = (0, 0, 0);
        self.is_told = true;
        Ok((self.address, lost))
    }

    /// Number of frames that the NIC has not sent, in memory that is not in use any more; none if
    /// that is other memory. `rx` must be the receive ring.
    pub(in crate::net) fn unsent(&self, rx: &RxRing<F>, closed: &RxClosed<'_>) -> usize {
        if !closed.is_of(rx.pool.napi) {
            return 0;
        }
        // SAFETY: The memory of `rx` exists.
        unsafe { self.count_unsent() }
    }

    /// Number of frames that the NIC has not reported as sent.
    ///
    /// # Safety
    ///
    /// The memory must exist.
    unsafe fn count_unsent(&self) -> usize {
        let mut position = self.next_done;
        let mut count = 0;

        while position != self.next_free {
            // SAFETY: By the safety requirements and the type invariants.
            let status = unsafe { self.slots.desc.second(self.slots.desc.place(position)) };

            count += usize::from(!F::goes_on(status) && !F::is_sent(status));
            position = position.wrapping_add(RingSlots::WORDS);
        }
        count
    }

    /// The descriptor behind the last frame, for the NIC's tail register, if there are frames that
    /// it was not told of.
    #[inline]
    pub(in crate::net) fn take_tail(&mut self) -> Option<usize> {
        if self.told == self.next_free {
            return None;
        }
        self.told = self.next_free;
        Some(self.slots.desc.index(self.next_free))
    }

    /// Whether there is no room for a frame: all descriptors but one can be in use.
    #[inline(always)]
    fn is_full(&self) -> bool {
        self.slots.desc.is_full(self.next_done, self.next_free)
    }

    /// Number of frames that the NIC has, or is to get.
    #[inline]
    pub(in crate::net) fn in_use(&self) -> usize {
        self.next_free.wrapping_sub(self.next_done) / RingSlots::WORDS
    }

    /// The descriptors and buffers, for tests.
    #[cfg(CONFIG_KUNIT)]
    pub(super) fn slots(&self) -> &RxSlots {
        &self.slots
    }

    /// Takes back what the NIC has sent: pages go to their pool, several at a time.
    ///
    /// # Safety
    ///
    /// The instance of the ring must be being polled, and not by netpoll.
    #[inline]
    pub(in crate::net) unsafe fn complete(&mut self) {
        if self.next_done != self.next_free {
            // SAFETY: By the safety requirements.
            unsafe { self.complete_some() };
        }
    }

    /// As [`Self::complete`].
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(never)]
    unsafe fn complete_some(&mut self) {
        // The end of the frame that is being taken.
        let mut end = self.next_done;

        loop {
            let mut pages = [const { MaybeUninit::<bindings::netmem_ref>::uninit() }; BULK];
            let mut count = 0;

            for page in &mut pages {
                if self.next_done == end {
                    // SAFETY: By the safety requirements.
                    let Some(found) = (unsafe { self.end_of_sent() }) else {
                        break;
                    };
                    end = found;
                }
                let place = self.slots.desc.place(self.next_done);
                // SAFETY: By the safety requirements and the type invariants, the memory exists,
                // with no other access to the buffers.
                let Some(buffer) = unsafe { self.slots.buffer(place) }.take() else {
                    break;
                };
                // INVARIANT: It has no buffer.
                self.next_done = self.next_done.wrapping_add(RingSlots::WORDS);
                // SAFETY: The page is valid.
                page.write(unsafe { bindings::page_to_netmem(buffer.page_of(F::LAYOUT)) });
                // The reference is that of `pages`.
                mem::forget(buffer);
                count += 1;
            }
            if count == 0 {
                return;
            }
            // SAFETY: So many pages were written, to which the references are ours, and C takes no
            // more at a time. This is the poll function: C checks whether it is that of the pool.
            //
            // CAST: As above.
            unsafe {
                bindings::page_pool_put_netmem_bulk(pages.as_mut_ptr().cast(), count as u32);
            }
            if count < BULK {
                return;
            }
        }
    }
}

impl<F: XdpFormat> TxRing<F> {
    /// The position behind the next frame, if the NIC has sent it. It reports that by the last of
    /// the frame's descriptors.
    ///
    /// # Safety
    ///
    /// As for [`Self::complete`].
    #[inline]
    unsafe fn end_of_sent(&self) -> Option<usize> {
        let mut position = self.next_done;

        while position != self.next_free {
            // SAFETY: By the safety requirements and the type invariants, the memory exists.
            let status = unsafe { self.slots.desc.second(self.slots.desc.place(position)) };

            position = position.wrapping_add(RingSlots::WORDS);
            if F::is_sent(status) {
                return Some(position);
            }
            if !F::goes_on(status) {
                break;
            }
        }
        None
    }
}

impl<F: XdpFormat> RxRing<F> {
    /// As [`Self::new`], of a ring whose buffers can go to a [`TxRing`].
    pub(in crate::net) fn new_bidirectional(
        dev: &device::Device<Bound>,
        napi: &Napi,
        len: RingSize,
        buffers: u32,
    ) -> Result<Self> {
        let direction = bindings::dma_data_direction::DMA_BIDIRECTIONAL;

        Self::of_direction(dev, napi, len, buffers, direction)
    }
}

impl<F: XdpFormat> Recycling<'_, '_, F> {
    /// Whether a frame can be put on a ring, the first of whose `count` buffers this is. If it is
    /// of another pool, its mapping may go away earlier.
    ///
    /// # Safety
    ///
    /// `tx` must be the ring that was made for this receive ring.
    #[inline]
    pub(in crate::net) unsafe fn can_transmit(
        &self,
        tx: &mut TxRing<F>,
        buffer: &DeviceBuffer,
        count: usize,
    ) -> bool {
        // All but one can be in use.
        let most = tx.slots.desc.len() - 1;

        if tx.in_use() + count > most {
            // SAFETY: The instance is being polled, or there would be no `self`.
            unsafe { tx.complete() };
        }
        tx.in_use() + count <= most && count <= F::MAX_PARTS && self.is_ours(buffer)
    }

    /// Puts a frame on a ring, `len` bytes behind `headroom` bytes of the buffer. The NIC has to be
    /// told of it.
    ///
    /// The buffer is the result if [there is no room](Self::can_transmit), or if the frame is too
    /// long. Else the result is the number of bytes.
    ///
    /// # Safety
    ///
    /// `tx` must be the ring that was made for this receive ring. The frame must be in the buffer,
    /// with [`XdpFormat::MIN_LEN`] bytes behind its end.
    #[inline(always)]
    pub(in crate::net) unsafe fn transmit(
        &mut self,
        tx: &mut TxRing<F>,
        buffer: DeviceBuffer,
        headroom: u16,
        len: u16,
    ) -> Result<u16, DeviceBuffer> {
        if tx.is_full() {
            // SAFETY: The instance is being polled, or there would be no `self`.
            unsafe { tx.complete() };
        }
        // Programs can use all of a buffer. Where that is not too long, this is a constant.
        let is_too_long = F::LAYOUT.size() > usize::from(F::MAX_LEN) && len > F::MAX_LEN;
        if tx.is_full() || is_too_long || !self.is_ours(&buffer) {
            return Err(buffer);
        }
        if len < F::MIN_LEN {
            let end = buffer
                .address(F::LAYOUT)
                .wrapping_byte_add(usize::from(headroom) + usize::from(len));
            // SAFETY: By the safety requirements, there is room behind the frame, which is
            // exclusively ours.
            unsafe { end.cast::<u8>().write_bytes(0, (F::MIN_LEN - len).into()) };
        }
        let len = len.max(F::MIN_LEN);

        // SAFETY: By the safety requirements, and there is room.
        unsafe { self.transmit_part(tx, buffer, headroom, len, len, true) };
        Ok(len)
    }

    /// Puts a part of a frame of `total` bytes on a ring, `len` bytes at `offset` of a buffer.
    ///
    /// # Safety
    ///
    /// [`Self::can_transmit`] must have been true for the frame, all of whose buffers are of the
    /// same pool, with this ring. The part must be in the buffer.
    #[inline(always)]
    pub(in crate::net) unsafe fn transmit_part(
        &mut self,
        tx: &mut TxRing<F>,
        buffer: DeviceBuffer,
        offset: u16,
        len: u16,
        total: u16,
        is_last: bool,
    ) {
        // SAFETY: The page is from a pool with `PP_FLAG_DMA_MAP`.
        let address = unsafe { dma_address(buffer.page_of(F::LAYOUT)) } + DmaAddress::from(offset);

        // The program may have written to it.
        //
        // SAFETY: The page belongs to the pool.
        unsafe { self.receiver().sync_for_device(address, len) };
        let words = F::tx_descriptor(bus_address(address), len, total, is_last);
        let place = tx.slots.desc.place(tx.next_free);
        // SAFETY: By the safety requirements and the type invariants, the memory exists.
        unsafe { tx.slots.desc.write(place, words) };
        // There was none: no need to look for one to drop.
        //
        // SAFETY: As above, with no other access to the buffers.
        mem::forget(unsafe { tx.slots.buffer(place) }.replace(buffer));
        // INVARIANT: This descriptor has got a buffer, and one has none at least.
        tx.next_free = tx.next_free.wrapping_add(RingSlots::WORDS);
    }
}
