// SPDX-License-Identifier: GPL-2.0

//! The part of the NIC, for tests of rings.

use super::{
    transmit::{
        TxRing,
        XdpFormat, //
    },
    RxFormat,
    RxRing, //
};

use crate::{
    bindings,
    dma::DmaAddress,
    net::{
        napi::Poll,
        queue::RingSlots, //
    }, //
};

use core::ptr::NonNull;

impl<F: RxFormat> RxRing<F> {
    /// Completes a descriptor.
    pub(in crate::net) fn write_back(&self, cx: &Poll<'_>, index: usize, words: [u64; 2]) {
        assert!(self.pool.napi == cx.napi().id());
        let place = self.slots.desc.place(RingSlots::position(index));
        // SAFETY: By the type invariants; the instance is being polled.
        unsafe { self.slots.desc.write(place, words) };
    }

    /// Fills the buffer of a descriptor. Returns its bus address.
    pub(in crate::net) fn write_buffer(
        &self,
        cx: &Poll<'_>,
        index: usize,
        byte: u8,
    ) -> Option<DmaAddress> {
        assert!(self.pool.napi == cx.napi().id());
        let place = self.slots.desc.place(RingSlots::position(index));
        // SAFETY: By the type invariants; the instance is being polled, and nothing else accesses
        // the buffers now.
        let buffer = unsafe { self.slots.buffer(place) }.as_ref()?;

        // SAFETY: The page is valid, and the bytes are within the buffer, by its layout.
        unsafe {
            let page = bindings::page_address(buffer.page()).cast::<u8>();
            let start = buffer.offset(F::LAYOUT) + usize::from(F::LAYOUT.headroom());
            page.add(start).write_bytes(byte, F::LAYOUT.len().into());
        }
        // SAFETY: As above.
        Some(unsafe { self.slots.desc.first(place) } as DmaAddress)
    }

    /// The ring's pool, for as long as it exists.
    pub(in crate::net) fn pool(&self) -> NonNull<bindings::page_pool> {
        self.pool.pool
    }
}

impl<F: XdpFormat> TxRing<F> {
    /// Completes a descriptor.
    ///
    /// # Safety
    ///
    /// The instance of the ring must be being polled.
    pub(in crate::net) unsafe fn write_back(&self, index: usize, status: u64) {
        let slots = self.slots();
        let place = slots.desc.place(RingSlots::position(index));
        // SAFETY: By the safety requirements and the type invariants.
        unsafe { slots.desc.write(place, [0, status]) };
    }

    /// The words of a descriptor, and the first bytes of the page, if it has one. `rx` must be the
    /// receive ring.
    pub(in crate::net) fn frame(
        &self,
        rx: &RxRing<F>,
        cx: &Poll<'_>,
        index: usize,
    ) -> Option<([u64; 2], [u8; 512])> {
        assert!(rx.pool.napi == cx.napi().id());
        let slots = self.slots();
        let place = slots.desc.place(RingSlots::position(index));
        // SAFETY: By the type invariants; the instance is being polled, and nothing else accesses
        // the buffers now.
        let buffer = unsafe { slots.buffer(place) }.as_ref()?;

        // SAFETY: As above, and the page is valid.
        unsafe {
            let words = [slots.desc.first(place), slots.desc.second(place)];
            let page = bindings::page_address(buffer.page());
            Some((words, page.cast::<[u8; 512]>().read()))
        }
    }
}
