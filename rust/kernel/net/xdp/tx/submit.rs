// SPDX-License-Identifier: GPL-2.0

//! Frames that get into the ring: their mappings and descriptors.

use super::{
    Frames,
    XdpFormat,
    XdpFrame,
    XdpTxRing, //
};

use crate::{
    bindings,
    dma::DmaAddress,
    net::queue::bus_address,
    prelude::*, //
};

impl XdpTxRing {
    /// Puts a frame into the ring, or returns it.
    #[inline(always)]
    pub(super) fn submit<F: XdpFormat>(
        &self,
        ring: &mut Frames,
        frame: XdpFrame,
    ) -> Result<(), XdpFrame> {
        let (data, len) = frame.head();
        let is_simple = frame.is_in_one_buffer()
            && (u32::from(F::MIN_LEN)..=u32::from(F::MAX_LEN)).contains(&len);

        if !is_simple {
            return self.submit_rarely::<F>(ring, frame);
        }
        if ring.room() == 0 {
            return Err(frame);
        }
        // SAFETY: A frame is in the linear mapping.
        let Some(address) = (unsafe { self.map_head(data, len) }) else {
            return Err(frame);
        };
        // CAST: Just checked.
        let len = len as u16;
        let words = F::tx_descriptor(bus_address(address), len, len, true);
        let free = ring.free;
        let record = ring.record(free);

        record.set_mapping(address, len);
        record.set_frame(frame);
        // SAFETY: The memory exists, and this is a place there.
        unsafe { self.memory.slots().write(self.memory.place(free), words) };
        // INVARIANT: There was room, and the descriptor belongs to the frame.
        ring.free = free.wrapping_add(1);
        Ok(())
    }

    /// As [`Self::submit`], of a frame that is not as most are.
    #[cold]
    #[inline(never)]
    fn submit_rarely<F: XdpFormat>(
        &self,
        ring: &mut Frames,
        mut frame: XdpFrame,
    ) -> Result<(), XdpFrame> {
        let parts = 1 + frame.fragments().len();

        if ring.room() < parts
            || parts > F::MAX_PARTS
            || !frame.is_readable()
            || !frame.pad_to(F::MIN_LEN)
            || frame.len() > F::MAX_LEN.into()
        {
            return Err(frame);
        }
        // CAST: Just checked.
        let total = frame.len() as u16;
        let mut put = 0;

        while put < parts {
            let Some((address, len)) = self.map_part(&frame, put, total) else {
                break;
            };
            put += 1;
            self.put_part::<F>(ring, put - 1, address, len, total, put == parts);
        }
        if put < parts {
            for number in 0..put {
                let position = ring.free.wrapping_add(number);

                // SAFETY: By the type invariants. This was just mapped, and the NIC does not know
                // of it.
                let _ = unsafe { ring.record(position).unmap(self.dev.as_ptr(), true) };
            }
            return Err(frame);
        }
        let free = ring.free.wrapping_add(parts);
        ring.record(free.wrapping_sub(1)).set_frame(frame);
        // INVARIANT: There was room, and these descriptors belong to the frame.
        ring.free = free;
        Ok(())
    }

    /// Writes the record and the descriptor of a part of a frame that is mapped: `len` bytes of
    /// `total` ones, in the free descriptor with that number.
    fn put_part<F: XdpFormat>(
        &self,
        ring: &mut Frames,
        number: usize,
        address: DmaAddress,
        len: u16,
        total: u16,
        is_last: bool,
    ) {
        let position = ring.free.wrapping_add(number);
        let record = ring.record(position);
        let words = F::tx_descriptor(bus_address(address), len, total, is_last);

        record.set_mapping(address, len);
        // SAFETY: The memory exists, and this is a place there.
        unsafe {
            self.memory
                .slots()
                .write(self.memory.place(position), words)
        };
    }

    /// Maps a part of a frame of `total` bytes. Returns the mapping and its length, which is not
    /// zero.
    fn map_part(&self, frame: &XdpFrame, number: usize, total: u16) -> Option<(DmaAddress, u16)> {
        let checked = |len| {
            u16::try_from(len)
                .ok()
                .filter(|len| (1..=total).contains(len))
        };
        let Some(index) = number.checked_sub(1) else {
            let (data, len) = frame.head();
            let len = checked(len)?;

            // SAFETY: A frame is in the linear mapping.
            let address = unsafe { self.map_head(data, len.into()) }?;
            return Some((address, len));
        };
        let fragment = frame.fragments().get(index)?;
        let len = checked(fragment.len)?;
        // SAFETY: By the type invariants. The fragment is valid memory, which the device only
        // reads.
        let address = unsafe {
            bindings::__skb_frag_dma_map(
                self.dev.as_ptr(),
                fragment,
                0,
                len.into(),
                bindings::dma_data_direction::DMA_TO_DEVICE,
            )
        };

        Some((self.checked(address)?, len))
    }

    /// The result of a function for mappings, if that is one.
    #[inline(always)]
    fn checked(&self, address: DmaAddress) -> Option<DmaAddress> {
        // SAFETY: By the type invariants.
        let failed = unsafe { bindings::dma_mapping_error(self.dev.as_ptr(), address) } != 0;

        (!failed).then_some(address)
    }

    /// Maps a part of a frame.
    ///
    /// # Safety
    ///
    /// It must be memory of the linear mapping.
    #[inline(always)]
    unsafe fn map_head(&self, data: *mut c_void, len: u32) -> Option<DmaAddress> {
        let (dev, len) = (self.dev.as_ptr(), len as usize);

        // As `dma_map_single()`, without the detour through `struct page`.
        //
        // SAFETY: By the type invariants and the safety requirements. The device only reads it.
        let address = unsafe {
            bindings::debug_dma_map_single(dev, data, len);
            bindings::dma_map_phys(
                dev,
                bindings::virt_to_phys(data),
                len,
                bindings::dma_data_direction::DMA_TO_DEVICE,
                0,
            )
        };

        self.checked(address)
    }
}
