// SPDX-License-Identifier: GPL-2.0

//! Buffers that go back to the ring that they were received by, and not by way of the pool.

use super::{
    super::{
        DeviceBuffer,
        Receiver, //
    },
    Received,
    RxFormat,
    RxRing, //
};
use crate::{
    bindings,
    dma::DmaAddress,
    net::{
        napi::Poll,
        queue::{
            bus_address,
            RingSlots, //
        }, //
    },
    prelude::*, //
};
use core::{
    marker::PhantomData,
    mem,
    ptr::{
        self,
        NonNull, //
    }, //
};

/// A ring that is being polled, and that takes buffers back.
///
/// # Invariants
///
/// The instance of `ring` is being polled, longer than `'p`, and not by netpoll. `sync` is that of
/// a [`Receiver`].
pub(in crate::net) struct Recycling<'a, 'p, F: RxFormat> {
    pub(super) ring: &'a mut RxRing<F>,
    sync: bool,
    _poll: PhantomData<&'p Poll<'p>>,
}

impl<F: RxFormat> RxRing<F> {
    /// The ring's pool, for as long as the instance has it.
    pub(in crate::net) fn page_pool(&self) -> NonNull<bindings::page_pool> {
        self.pool.pool
    }

    /// As [`Self::poll`], for [`Self::recycling`]. Returns whether pages have to be synced.
    #[inline]
    pub(in crate::net) fn poll_recycling(&mut self, cx: &Poll<'_>) -> Result<bool> {
        Ok(self.pool.receiver(cx)?.sync)
    }

    /// The ring in a poll function, whose buffers are whole pages.
    ///
    /// # Safety
    ///
    /// [`Self::poll_recycling`] must have returned `sync` in a poll function of `'p`.
    #[inline(always)]
    pub(in crate::net) unsafe fn recycling<'p>(&mut self, sync: bool) -> Recycling<'_, 'p, F> {
        const { assert!(F::LAYOUT.per_page() == 1, "halves go to the NIC together") };

        // INVARIANT: By the safety requirements.
        Recycling {
            ring: self,
            sync,
            _poll: PhantomData,
        }
    }
}

impl Receiver<'_, '_> {
    /// Lets the device see what the CPU has written to `len` bytes of a buffer.
    ///
    /// # Safety
    ///
    /// `address` must be within a page of this pool, and `len` more bytes, too.
    #[inline]
    pub(super) unsafe fn sync_for_device(&self, address: DmaAddress, len: u16) {
        if self.sync {
            // SAFETY: The instance is being polled, so the pool is alive and has mapped the page.
            unsafe {
                let params = &(*self.pool.pool.as_ptr()).p;

                bindings::dma_sync_single_for_device(
                    params.dev,
                    address,
                    len.into(),
                    params.dma_dir,
                )
            };
        }
    }
}

impl<'p, F: RxFormat> Recycling<'_, 'p, F> {
    /// Whether a buffer is of the pool of the ring.
    #[inline(always)]
    pub(super) fn is_ours(&self, buffer: &DeviceBuffer) -> bool {
        ptr::eq(buffer.pool_of(F::LAYOUT), self.ring.pool.pool.as_ptr())
    }

    #[inline(always)]
    pub(super) fn receiver(&mut self) -> Receiver<'_, 'p> {
        // INVARIANT: By the type invariants.
        Receiver {
            pool: &mut self.ring.pool,
            sync: self.sync,
            _poll: PhantomData,
        }
    }

    /// See [`Polling::next`](super::Polling::next).
    #[inline(always)]
    pub(in crate::net) fn next(&mut self) -> Option<Received<'p>> {
        let status = self.next_status()?;

        // SAFETY: It was just returned.
        unsafe { self.next_with(status) }
    }

    /// The second word of the next descriptor, if the NIC is done with it.
    #[inline(always)]
    pub(in crate::net) fn next_status(&self) -> Option<u64> {
        let RxRing {
            slots, next_done, ..
        } = &*self.ring;

        // SAFETY: By the type invariants, the memory exists.
        let status = unsafe { slots.desc.second(slots.desc.place(*next_done)) };

        (status & F::DONE != 0).then_some(status)
    }

    /// As [`Self::next`], of a descriptor that is known to be done.
    ///
    /// # Safety
    ///
    /// [`Self::next_status`] must have returned `status`, and nothing have been done with the ring
    /// since.
    #[inline(always)]
    pub(in crate::net) unsafe fn next_with(&mut self, status: u64) -> Option<Received<'p>> {
        let position = self.ring.next_done;
        let slots = &self.ring.slots;
        // SAFETY: By the type invariants, and the handle is borrowed exclusively.
        let (info, status, buffer) = unsafe { slots.take(slots.desc.place(position), status) }?;

        // INVARIANT: This descriptor has no buffer any more.
        self.ring.next_done = position.wrapping_add(RingSlots::WORDS);
        // SAFETY: The ring's buffers are from its pool, and the descriptor is done.
        let buffer = unsafe { self.receiver().complete(F::LAYOUT, buffer, F::len(status)) };
        Some(Received {
            info,
            status,
            buffer,
        })
    }

    /// Gives a buffer to the next descriptor that has none. The NIC has to be told of it.
    ///
    /// It goes to its pool, and the result is false, if it is of another one, if all descriptors
    /// have buffers, or if it is of the memory for emergencies.
    #[inline(always)]
    pub(in crate::net) fn give_back(&mut self, buffer: DeviceBuffer) -> bool {
        let RxRing {
            slots,
            next_done,
            next_free,
            ..
        } = &*self.ring;

        // SAFETY: The page is valid.
        let is_reserve = unsafe { bindings::page_is_pfmemalloc(buffer.page_of(F::LAYOUT)) };
        if is_reserve || slots.desc.is_full(*next_done, *next_free) || !self.is_ours(&buffer) {
            return false;
        }
        let address = buffer.dma_address(F::LAYOUT);
        // As the pool would do: the program may have written to it.
        //
        // SAFETY: The page belongs to the pool.
        unsafe { self.receiver().sync_for_device(address, F::LAYOUT.len()) };
        let (slots, position) = (self.ring.slots, self.ring.next_free);
        let place = slots.desc.place(position);

        // This also clears the done bit of the descriptor's last use.
        //
        // SAFETY: By the type invariants, the memory exists.
        unsafe { slots.desc.write(place, [bus_address(address), 0]) };
        // There was none: no need to look for one to drop.
        //
        // SAFETY: As above, with no other access to the buffers.
        mem::forget(unsafe { slots.buffer(place) }.replace(buffer));
        // INVARIANT: This descriptor has got a buffer of the pool, and the NIC has all but one at
        // most.
        self.ring.next_free = position.wrapping_add(RingSlots::WORDS);
        true
    }
}
