// SPDX-License-Identifier: GPL-2.0

//! Buffers that go back to the ring that they were received by, and not by way of the pool.

use super::{
    super::{
        CpuBuffer,
        Receiver, //
    },
    Polling,
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
/// `next_free` is that of the ring of `polling`, and nothing else accesses it.
pub(in crate::net) struct Recycling<'a, 'p, F: RxFormat> {
    pub(super) polling: Polling<'a, 'p, F>,
    next_free: &'a mut usize,
}

impl<F: RxFormat> RxRing<F> {
    /// The ring's pool, for as long as the instance has it.
    pub(in crate::net) fn page_pool(&self) -> NonNull<bindings::page_pool> {
        self.pool.pool
    }

    /// As [`Self::poll`], of a ring whose buffers are whole pages.
    #[inline]
    pub(in crate::net) fn poll_recycling<'a, 'p>(
        &'a mut self,
        cx: &'p Poll<'_>,
    ) -> Result<Recycling<'a, 'p, F>> {
        const { assert!(F::LAYOUT.per_page() == 1, "halves go to the NIC together") };

        // INVARIANT: The handle is borrowed exclusively.
        Ok(Recycling {
            next_free: &mut self.next_free,
            polling: Self::poll_with(&self.slots, &mut self.next_done, &mut self.pool, cx)?,
        })
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
    /// See [`Polling::next`].
    #[inline(always)]
    pub(in crate::net) fn next(&mut self) -> Option<Received<'p>> {
        self.polling.next()
    }

    /// Gives a buffer to the next descriptor that has none. The NIC has to be told of it.
    ///
    /// It goes to its pool, and the result is false, if it is of another one, if all descriptors
    /// have buffers, or if it is of the memory for emergencies.
    #[inline(always)]
    pub(in crate::net) fn give_back(&mut self, buffer: CpuBuffer<'p>) -> bool {
        let Polling {
            slots,
            position,
            receiver,
            ..
        } = &self.polling;
        let in_use = self.next_free.wrapping_sub(*position);
        let buffer = buffer.buffer;

        // SAFETY: The page is valid.
        let is_reserve = unsafe { bindings::page_is_pfmemalloc(buffer.page_of(F::LAYOUT)) };
        if is_reserve
            || in_use >= RingSlots::position(RxRing::<F>::capacity(slots.desc.len()))
            || !ptr::eq(buffer.pool(), receiver.pool.pool.as_ptr())
        {
            return false;
        }
        let address = buffer.dma_address(F::LAYOUT);
        // As the pool would do: the program may have written to it.
        //
        // SAFETY: The page belongs to the pool.
        unsafe { receiver.sync_for_device(address, F::LAYOUT.len()) };
        let place = slots.desc.place(*self.next_free);

        // This also clears the done bit of the descriptor's last use.
        //
        // SAFETY: By the type invariants of `Polling`, the memory exists.
        unsafe { slots.desc.write(place, [bus_address(address), 0]) };
        // There was none: no need to look for one to drop.
        //
        // SAFETY: As above, with no other access to the buffers.
        mem::forget(unsafe { slots.buffer(place) }.replace(buffer));
        // INVARIANT: This descriptor has got a buffer of the pool, and the NIC has all but one at
        // most.
        *self.next_free = self.next_free.wrapping_add(RingSlots::WORDS);
        true
    }
}
