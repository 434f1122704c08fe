// SPDX-License-Identifier: GPL-2.0

//! The record of one descriptor.

use super::split::{
    Split,
    SplitSum, //
};
use crate::{
    bindings,
    device::{
        Bound,
        Device, //
    },
    dma::DmaAddress,
    net::skbuff::{
        Frag,
        SkBuff, //
    },
    prelude::*, //
};

/// The resources to release when the NIC has processed a descriptor.
///
/// A packet has as many records as descriptors. A segment that had to be split is mapped once: its
/// first record has the mapping, the others have none, nor do those of context descriptors. The
/// last record owns the packet itself, so that it is freed last.
///
/// Each record refers to the device, so that dropping it releases everything, in any context.
///
/// # Invariants
///
/// If `len` is not zero, `addr` is a mapping of `len` bytes towards `dev` that we own. The mapped
/// memory belongs to a packet that outlives the record, or that the record owns.
pub(super) struct Record<'a> {
    dev: &'a Device<Bound>,
    /// Out of reach until the mapping has been removed.
    skb: Option<SkBuff>,
    addr: DmaAddress,
    len: u32,
    /// In the first record of a packet, the number of all of its records.
    pub(super) descriptors: u16,
    /// In the last record of a packet that the NIC splits, the length of the headers. The number of
    /// packets on the wire is in `descriptors` then: it is not the first.
    headers: u16,
}

// At least two records to a cache line.
static_assert!(size_of::<Record<'static>>() <= 32);

impl<'a> Record<'a> {
    /// Returns a record without mapping.
    #[inline(always)]
    pub(super) fn unmapped(dev: &'a Device<Bound>) -> Self {
        // INVARIANT: `len` is zero.
        Self {
            dev,
            skb: None,
            addr: 0,
            len: 0,
            descriptors: 0,
            headers: 0,
        }
    }

    /// Maps the linear part of `skb`, which must not be empty.
    ///
    /// # Safety
    ///
    /// `skb` must not be freed before the record is dropped.
    #[inline(always)]
    pub(super) unsafe fn map_head(dev: &'a Device<Bound>, skb: &SkBuff) -> Option<Self> {
        let data = skb.data();
        let start = data.as_ptr().cast_mut().cast();
        // As `dma_map_single()`, without a check and without the detour through `struct page`.
        //
        // SAFETY: The device is bound, and `data` is memory of the linear mapping: the stack passes
        // no packet to a device whose head is elsewhere. The device only reads it.
        let addr = unsafe {
            bindings::debug_dma_map_single(dev.as_raw(), start, data.len());
            bindings::dma_map_phys(
                dev.as_raw(),
                bindings::virt_to_phys(start),
                data.len(),
                bindings::dma_data_direction::DMA_TO_DEVICE,
                0,
            )
        };
        // CAST: Packets are smaller than 4 GiB.
        Self::from_mapping(dev, addr, data.len() as u32)
    }

    /// Maps a fragment, which must not be empty, of a packet whose fragments are readable.
    ///
    /// # Safety
    ///
    /// The packet of `frag` must not be freed before the record is dropped.
    #[inline(always)]
    pub(super) unsafe fn map_frag(dev: &'a Device<Bound>, frag: Frag<'_>) -> Option<Self> {
        // SAFETY: The device is bound, and a fragment of a packet is valid memory.
        let addr = unsafe {
            bindings::__skb_frag_dma_map(
                dev.as_raw(),
                frag.as_raw(),
                0,
                frag.len() as usize,
                bindings::dma_data_direction::DMA_TO_DEVICE,
            )
        };
        Self::from_mapping(dev, addr, frag.len())
    }

    #[inline(always)]
    fn from_mapping(dev: &'a Device<Bound>, addr: DmaAddress, len: u32) -> Option<Self> {
        // SAFETY: The device is bound; `addr` is what a mapping function returned for it.
        if unsafe { bindings::dma_mapping_error(dev.as_raw(), addr) } != 0 {
            return None;
        }
        // INVARIANT: `addr` is a mapping of `len` bytes, of which this is the only record. The
        // callers ensure that the packet outlives it.
        Some(Self {
            dev,
            skb: None,
            addr,
            len,
            descriptors: 0,
            headers: 0,
        })
    }

    /// Whether the mappings of the device that exist now have to be removed.
    ///
    /// If a device accesses memory directly, without an IOMMU or bounce buffers, there is nothing
    /// to remove.
    #[inline(always)]
    pub(super) fn needs_unmap(&self) -> bool {
        // SAFETY: The device is bound.
        unsafe { bindings::dma_need_unmap(self.dev.as_raw()) }
    }

    /// Makes this the last record of a packet, which it owns from here on.
    #[inline(always)]
    pub(super) fn set_skb(&mut self, skb: SkBuff) {
        self.skb = Some(skb);
    }

    /// Makes this the last record of a packet that the NIC splits, not its only one.
    pub(super) fn set_split(&mut self, split: Split) {
        self.descriptors = split.more;
        self.headers = split.headers;
    }

    /// Adds the packet to `sum` if this is such a record. It must not be the first of a packet.
    // Cold to packets of one descriptor, which have no such record: they keep their registers.
    #[cold]
    #[inline(never)]
    pub(super) fn add_split_to(&self, sum: &mut SplitSum) {
        let split = Split {
            more: self.descriptors,
            headers: self.headers,
        };

        // Nothing is split without headers.
        if let Some(skb) = self.skb.as_ref().filter(|_| split.headers != 0) {
            sum.add(skb.len(), split);
        }
    }

    /// Removes the mapping, and returns the packet if the record owns one.
    #[inline(always)]
    pub(super) fn unmap(mut self) -> Option<SkBuff> {
        // The mapping is removed before the packet reaches the caller: `self` goes out of scope.
        self.skb.take()
    }

    /// Returns the packet if the record owns one, without removing the mapping, which need not be.
    ///
    /// # Safety
    ///
    /// [`Self::needs_unmap`] of a record of the same device has returned `false` since this one was
    /// made.
    #[inline(always)]
    pub(super) unsafe fn leave_mapped(mut self) -> Option<SkBuff> {
        // INVARIANT: By the safety requirements, there is no mapping left to own.
        self.len = 0;
        self.skb.take()
    }

    /// Returns the bus address of the mapping.
    #[inline(always)]
    pub(super) fn addr(&self) -> DmaAddress {
        self.addr
    }

    /// Returns the number of bytes that the mapping covers.
    #[inline(always)]
    pub(super) fn len(&self) -> u32 {
        self.len
    }
}

impl Drop for Record<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.len != 0 {
            // SAFETY: By the type invariants, this is a mapping that we own, and the device is
            // still bound, since `dev` borrows it. `skb` is dropped after this.
            unsafe {
                bindings::dma_unmap_page(
                    self.dev.as_raw(),
                    self.addr,
                    self.len as usize,
                    bindings::dma_data_direction::DMA_TO_DEVICE,
                )
            };
        }
    }
}
