// SPDX-License-Identifier: GPL-2.0

//! The record of one descriptor.
//!
//! A frame that a record owns is out of reach until the mapping has been removed: it cannot go back
//! to where it is from while the NIC may read it.

use crate::{
    bindings,
    dma::DmaAddress,
    net::xdp::frame::XdpFrame, //
};

use core::mem;

/// A part of a frame, in one descriptor.
#[derive(Default)]
pub(super) struct Record {
    /// In the last record of a frame, so that all parts of it have been unmapped before.
    frame: Option<XdpFrame>,
    address: DmaAddress,
    len: u16,
}

impl Record {
    /// Sets the mapping of the part, and its length.
    #[inline(always)]
    pub(super) fn set_mapping(&mut self, address: DmaAddress, len: u16) {
        (self.address, self.len) = (address, len);
    }

    /// The frame ends with this part, and is owned by the record from here on.
    #[inline(always)]
    pub(super) fn set_frame(&mut self, frame: XdpFrame) {
        // There was none: no need to look for one to drop.
        mem::forget(self.frame.replace(frame));
    }

    /// Whether a frame ends with this part.
    #[inline(always)]
    pub(super) fn is_last(&self) -> bool {
        self.frame.is_some()
    }

    /// Removes the mapping, unless it is known that there is nothing to remove. Returns the number
    /// of bytes, and the frame if it ends here.
    ///
    /// # Safety
    ///
    /// `dev` must be valid, and the record have a mapping for it, which the NIC does not use any
    /// more. If `needs_unmap` is not set, `dma_need_unmap()` has returned `false` since the part
    /// was mapped.
    #[inline(always)]
    pub(super) unsafe fn unmap(
        &mut self,
        dev: *mut bindings::device,
        needs_unmap: bool,
    ) -> (u16, Option<XdpFrame>) {
        let (len, frame) = (self.len, self.frame.take());

        if needs_unmap {
            // SAFETY: By the safety requirements.
            unsafe {
                bindings::dma_unmap_page(
                    dev,
                    self.address,
                    len.into(),
                    bindings::dma_data_direction::DMA_TO_DEVICE,
                )
            };
        }
        (len, frame)
    }
}
