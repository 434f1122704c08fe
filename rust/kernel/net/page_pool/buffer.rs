// SPDX-License-Identifier: GPL-2.0

//! Receive buffers, by owner.

use super::Layout;
use crate::{
    bindings,
    dma::DmaAddress,
    io::SysMem,
    net::{
        napi,
        skbuff::{
            SkBuff,
            UniqueSkBuff, //
        }, //
    },
    prelude::*, //
};
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::NonNull, //
};

/// The bus address of a page.
///
/// # Safety
///
/// It must be the first page of a buffer, from a page pool with `PP_FLAG_DMA_MAP`.
#[inline]
pub(super) unsafe fn dma_address(page: *mut bindings::page) -> DmaAddress {
    // SAFETY: By the safety requirements.
    let address = unsafe { (*bindings::pp_page_to_nmdesc(page)).dma_addr };

    // CAST: Where it is a number of pages, it gets wider.
    let address = address as DmaAddress;
    if size_of::<DmaAddress>() > size_of::<c_ulong>() {
        address << bindings::PAGE_SHIFT
    } else {
        address
    }
}

/// As `skb_reserve()` and `__skb_put()`, for a new SKB around a page of a page pool: those would
/// load fields whose values are known.
///
/// # Safety
///
/// `skb` must be new and ours alone, and have room for that.
#[inline]
pub(in crate::net) unsafe fn fill_new(skb: NonNull<bindings::sk_buff>, headroom: u32, len: u32) {
    let skb = skb.as_ptr();

    // SAFETY: By the safety requirements.
    unsafe {
        (*skb).data = (*skb).head.add(headroom as usize);
        // CAST: It fits into the buffer.
        bindings::skb_set_tail_pointer(skb, len as c_int);
        (*skb).len = len;
        bindings::skb_mark_for_recycle(skb);
    }
}

/// A buffer of a page pool: one that belongs to the device, or whose bytes belong to no
/// [`CpuBuffer`], as those that a program sees.
///
/// # Invariants
///
/// `tagged` is the address of the first page of a buffer, which was allocated from a page pool with
/// `PP_FLAG_DMA_MAP`. `self` owns a reference to it. If it is the second half of the page, the
/// lowest bit is set, else clear: the same as in an encoded page of `napi_build_skb_list()`.
pub(in crate::net) struct DeviceBuffer {
    tagged: NonNull<bindings::page>,
}

const _: () = assert!(align_of::<bindings::page>() > bindings::ENCODED_PAGE_BITS as usize);
const _: () = assert!(bindings::NAPI_BUILD_SECOND_HALF == 1);

// SAFETY: A page of a page pool can be given back by any thread. Buffers are in rings, which are
// dropped in process context, or in the hands of a poll function.
unsafe impl Send for DeviceBuffer {}

// SAFETY: The methods that take `&self` only read what does not change while the buffer exists.
unsafe impl Sync for DeviceBuffer {}

impl DeviceBuffer {
    /// Takes over a buffer: whole pages, or the first half of one.
    ///
    /// # Safety
    ///
    /// `page` must have been allocated from a page pool with `PP_FLAG_DMA_MAP`, with a reference
    /// that becomes ours.
    #[inline]
    pub(in crate::net) unsafe fn new(page: NonNull<bindings::page>) -> Self {
        // INVARIANT: By the safety requirements.
        Self { tagged: page }
    }

    /// As [`Self::new`], but it is the second half.
    ///
    /// # Safety
    ///
    /// As for [`Self::new`].
    #[inline]
    pub(super) unsafe fn second_half(page: NonNull<bindings::page>) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            tagged: page.map_addr(|address| address | 1),
        }
    }

    /// 1 if this is the second half of a page, else 0.
    #[inline]
    fn tag(&self) -> usize {
        self.tagged.addr().get() & 1
    }

    /// The first page.
    #[inline]
    pub(super) fn page(&self) -> *mut bindings::page {
        self.tagged.as_ptr().map_addr(|address| address & !1)
    }

    /// The first page, for a pool of that layout.
    #[inline]
    pub(super) fn page_of(&self, layout: Layout) -> *mut bindings::page {
        if layout.is_half() {
            self.page()
        } else {
            self.tagged.as_ptr()
        }
    }

    /// The number of bytes of the page in front of the buffer, for a pool of that layout.
    #[inline]
    pub(super) fn offset(&self, layout: Layout) -> usize {
        if layout.is_half() {
            self.tag() * layout.size()
        } else {
            0
        }
    }

    /// The address of the buffer, for a pool of that layout.
    #[inline]
    pub(in crate::net) fn address(&self, layout: Layout) -> *mut c_void {
        // SAFETY: The page is valid by the type invariants; page pools do not use high memory.
        let page = unsafe { bindings::page_address(self.page_of(layout)) };

        page.wrapping_byte_add(self.offset(layout))
    }

    /// The bus address of the part that the device writes, for a pool of that layout.
    #[inline]
    pub(super) fn dma_address(&self, layout: Layout) -> DmaAddress {
        // SAFETY: By the type invariant, the page is from a pool with `PP_FLAG_DMA_MAP`.
        let page = unsafe { dma_address(self.page_of(layout)) };

        // CAST: An offset within a page.
        page + (self.offset(layout) + usize::from(layout.headroom())) as DmaAddress
    }

    /// Gives the buffer up, as a frame for `napi_build_skb_list()`: `len` bytes behind `headroom`
    /// ones of a buffer of a pool of that layout.
    #[inline(always)]
    pub(in crate::net) fn into_frame(
        self,
        layout: Layout,
        headroom: u16,
        len: u16,
    ) -> bindings::napi_build_frame {
        // The frame owns the page from here on.
        let this = ManuallyDrop::new(self);

        bindings::napi_build_frame {
            page: this.tagged.as_ptr().cast(),
            // CAST: It was a `u32`.
            size: layout.size() as u32,
            hash: 0,
            len,
            headroom,
            vlan_tci: 0,
            metasize: 0,
            flags: 0,
        }
    }

    /// Returns the pool that the page belongs to.
    #[inline]
    fn pool(&self) -> *mut bindings::page_pool {
        // SAFETY: By the type invariant the page belongs to a page pool.
        unsafe { (*bindings::pp_page_to_nmdesc(self.page())).pp }
    }

    /// The same, if that is a pool of that layout: another one may have given out halves.
    #[inline]
    pub(super) fn pool_of(&self, layout: Layout) -> *mut bindings::page_pool {
        // SAFETY: As above.
        unsafe { (*bindings::pp_page_to_nmdesc(self.page_of(layout))).pp }
    }
}

impl Drop for DeviceBuffer {
    #[inline(always)]
    fn drop(&mut self) {
        give_back(Self { ..*self });
    }
}

/// Gives a buffer back to its pool.
// By value, and not inlined: with a reference, buffers in a driver's loop would have to be in
// memory for the sake of those that are dropped.
#[inline(never)]
fn give_back(buffer: DeviceBuffer) {
    let buffer = ManuallyDrop::new(buffer);

    // SAFETY: By the type invariant the page belongs to this pool, whose memory stays until all of
    // its pages were returned, and the reference is ours. C checks whether it may recycle directly,
    // and whether the other half is still in use.
    unsafe { bindings::page_pool_put_full_page(buffer.pool(), buffer.page(), false) };
}

/// A buffer that holds received data.
///
/// It exists only within the run of the poll function that received it.
///
/// # Invariants
///
/// The device does not use the buffer, which is of a pool with `layout`; `len` bytes behind the
/// headroom are visible to the CPU, and not more than the layout says.
pub struct CpuBuffer<'p> {
    pub(in crate::net) buffer: DeviceBuffer,
    pub(super) layout: Layout,
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

    /// The address of the buffer.
    #[inline]
    pub(in crate::net) fn address(&self) -> *mut c_void {
        self.buffer.address(self.layout)
    }

    /// The received bytes, where the device has written them.
    ///
    /// The page stays mapped, and a device that lies may write to it at any time: one volatile read
    /// returns another value than the one before.
    #[inline]
    pub fn data(&self) -> SysMem<'_, [u8]> {
        let start = self
            .address()
            .cast::<u8>()
            .wrapping_add(self.layout.headroom().into());

        // SAFETY: By the type invariants, these bytes are within the buffer, which exists for as
        // long as it is borrowed.
        unsafe { SysMem::new(core::ptr::slice_from_raw_parts_mut(start, self.len.into())) }
    }

    /// Builds an SKB around the buffer, without copying.
    ///
    /// Returns [`None`] if there is no memory for it; the page was returned to the pool.
    #[inline]
    pub fn into_skb(self) -> Option<UniqueSkBuff> {
        // SAFETY: The buffer is ours, has the size given and enough room at its end. This is within
        // a poll, hence in softirq context.
        //
        // CAST: It was a `u32`.
        let skb = unsafe { bindings::napi_build_skb(self.address(), self.layout.size() as u32) };
        let skb = NonNull::new(skb)?;

        // The SKB owns the page from here on.
        let this = ManuallyDrop::new(self);

        // SAFETY: The SKB is new, and both numbers fit by the type invariants. We own the only
        // reference to it.
        unsafe {
            fill_new(skb, this.layout.headroom().into(), this.len.into());
            Some(UniqueSkBuff::from_new(skb))
        }
    }

    /// Gives the buffer up, as a frame for `napi_build_skb_list()`.
    #[inline(always)]
    pub(in crate::net) fn into_frame(self) -> bindings::napi_build_frame {
        self.buffer
            .into_frame(self.layout, self.layout.headroom(), self.len)
    }

    /// Takes back the buffer of a frame.
    ///
    /// # Safety
    ///
    /// `frame` comes from [`Self::into_frame`], and the buffer has not been taken over by an SKB,
    /// nor taken back.
    pub(in crate::net) unsafe fn device_buffer_of(frame: &bindings::napi_build_frame) -> impl Drop {
        // INVARIANT: By the safety requirements, it was that of a buffer.
        DeviceBuffer {
            // SAFETY: So it is not null.
            tagged: unsafe { NonNull::new_unchecked(frame.page) }.cast(),
        }
    }

    /// Appends the buffer to `skb` as a fragment, without copying.
    ///
    /// `skb` must come from [`Self::into_skb`] of a buffer of a page pool, so that its pages are
    /// recycled. Returns [`EMSGSIZE`] if it has as many fragments as an SKB can have, or would get
    /// longer than [`SkBuff::MAX_LEN`]; the page was returned to the pool.
    #[inline]
    pub fn add_to(self, skb: &mut UniqueSkBuff) -> Result {
        let raw = skb.as_raw();

        // SAFETY: `skb` is valid.
        if !unsafe { bindings::skb_pp_recycle(raw) } {
            return Err(EINVAL);
        }

        // Only halves are tagged, so this needs no branch where the layout is not a constant.
        let offset = self.buffer.tag() * self.layout.size() + usize::from(self.layout.headroom());
        let fragments = skb.nr_frags();
        if fragments >= bindings::MAX_SKB_FRAGS as usize {
            return Err(EMSGSIZE);
        }
        if skb.len() > SkBuff::MAX_LEN - u32::from(self.len) {
            return Err(EMSGSIZE);
        }

        // The SKB owns the page from here on.
        let this = ManuallyDrop::new(self);

        // SAFETY: The SKB is ours alone. It has room for the fragment, which is within the buffer.
        unsafe {
            bindings::skb_add_rx_frag(
                raw,
                // CAST: Just checked.
                fragments as c_int,
                this.buffer.page(),
                // CAST: It is within a page.
                offset as c_int,
                this.len.into(),
                // CAST: It was a `u32`.
                this.layout.size() as u32,
            )
        };

        Ok(())
    }
}
