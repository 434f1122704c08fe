// SPDX-License-Identifier: GPL-2.0

//! Receive buffers, by owner.

use super::Layout;
use crate::{
    bindings,
    dma::DmaAddress,
    net::{
        napi,
        skbuff::UniqueSkBuff, //
    },
    prelude::*, //
};
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::NonNull, //
};

/// A buffer that belongs to the device.
///
/// # Invariants
///
/// `page` is an order-0 page that was allocated from a page pool with `PP_FLAG_DMA_MAP`, and `self`
/// owns the reference to it.
pub(super) struct DeviceBuffer {
    pub(super) page: NonNull<bindings::page>,
}

// SAFETY: A page of a page pool can be given back by any thread. Buffers are in rings, which are
// dropped in process context, or in the hands of a poll function.
unsafe impl Send for DeviceBuffer {}

// SAFETY: The methods that take `&self` only read what does not change while the buffer exists.
unsafe impl Sync for DeviceBuffer {}

impl DeviceBuffer {
    /// The bus address of the part of the page that the device writes.
    #[inline]
    pub(super) fn dma_address(&self, layout: Layout) -> DmaAddress {
        // SAFETY: By the type invariant the page was allocated from a pool that maps its pages.
        let page = unsafe { bindings::page_pool_get_dma_addr(self.page.as_ptr()) };

        page + DmaAddress::from(layout.headroom())
    }

    /// Returns the pool that the page belongs to.
    #[inline]
    pub(super) fn pool(&self) -> *mut bindings::page_pool {
        // SAFETY: By the type invariant the page belongs to a page pool.
        unsafe { bindings::page_pool_of(self.page.as_ptr()) }
    }
}

impl Drop for DeviceBuffer {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariant the page belongs to this pool, whose memory stays until all
        // of its pages were returned, and the reference is ours. C checks whether it may recycle
        // directly.
        unsafe { bindings::page_pool_put_full_page(self.pool(), self.page.as_ptr(), false) };
    }
}

/// A buffer that holds received data.
///
/// It exists only within the run of the poll function that received it.
///
/// # Invariants
///
/// The device does not use the buffer; `len` bytes from `headroom` on are visible to the CPU, and
/// these numbers satisfy the invariants of [`Layout`].
pub struct CpuBuffer<'p> {
    pub(super) buffer: DeviceBuffer,
    pub(super) headroom: u16,
    pub(super) len: u16,
    pub(super) _poll: PhantomData<&'p napi::Poll<'p>>,
}

impl CpuBuffer<'_> {
    /// Number of bytes received.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> u16 {
        self.len
    }

    /// The address of the page.
    #[inline]
    fn address(&self) -> *mut c_void {
        // SAFETY: The page is valid by the type invariants; page pools do not use high memory.
        unsafe { bindings::page_address(self.buffer.page.as_ptr()) }
    }

    /// The received bytes.
    #[inline]
    pub fn data(&self) -> &[u8] {
        let start = self
            .address()
            .cast::<u8>()
            .wrapping_add(self.headroom.into());

        // SAFETY: By the type invariants these bytes are within the page, initialized (pages of the
        // allocator are, for the purposes of Rust, memory that a device wrote), and are not written
        // to.
        unsafe { core::slice::from_raw_parts(start, self.len.into()) }
    }

    /// Builds an SKB around the buffer, without copying.
    ///
    /// Returns [`None`] if there is no memory for it; the page was returned to the pool.
    #[inline]
    pub fn into_skb(self) -> Option<UniqueSkBuff> {
        // SAFETY: The page is ours, has the size given and enough room at its end. This is within
        // a poll, hence in softirq context.
        let skb = unsafe { bindings::napi_build_skb(self.address(), bindings::PAGE_SIZE as u32) };
        let skb = NonNull::new(skb)?;

        // The SKB owns the page from here on.
        let this = ManuallyDrop::new(self);

        // SAFETY: The SKB is new, and both numbers fit by the type invariants.
        unsafe { bindings::skb_fill_new(skb.as_ptr(), this.headroom.into(), this.len.into()) };

        // SAFETY: The SKB is valid and new, and we own the only reference to it.
        Some(unsafe { UniqueSkBuff::from_new(skb) })
    }

    /// Appends the buffer to `skb` as a fragment, without copying.
    ///
    /// `skb` must come from [`Self::into_skb`] of a buffer of a page pool, so that its pages are
    /// recycled. Returns [`EMSGSIZE`] if it has as many fragments as an SKB can have; the page was
    /// returned to the pool.
    #[inline]
    pub fn add_to(self, skb: &mut UniqueSkBuff) -> Result {
        let raw = skb.as_raw();

        // SAFETY: `skb` is valid.
        if !unsafe { bindings::skb_pp_recycle(raw) } {
            return Err(EINVAL);
        }

        let fragments = skb.nr_frags();
        if fragments >= bindings::MAX_SKB_FRAGS as usize {
            return Err(EMSGSIZE);
        }

        // The SKB owns the page from here on.
        let this = ManuallyDrop::new(self);

        // SAFETY: The SKB is ours alone. It has room for the fragment, which is within the page.
        unsafe {
            bindings::skb_add_rx_frag(
                raw,
                // CAST: Just checked.
                fragments as c_int,
                this.buffer.page.as_ptr(),
                this.headroom.into(),
                this.len.into(),
                bindings::PAGE_SIZE as u32,
            )
        };

        Ok(())
    }
}
