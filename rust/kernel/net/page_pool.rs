// SPDX-License-Identifier: GPL-2.0

//! Page pools: receive buffers that stay mapped for DMA and are recycled.
//!
//! C header: [`include/net/page_pool/helpers.h`](srctree/include/net/page_pool/helpers.h)
//!
//! A pool serves the receive ring of one queue vector, and is made with it, see [`RxRing`]. A
//! buffer has one owner at a time:
//!
//! * The device: the buffer is in the ring. A driver has no access to it.
//! * The CPU: the descriptor is done, and [`Polling::next`] returns a [`CpuBuffer`]. It becomes an
//!   SKB ([`CpuBuffer::into_skb`]) or a fragment of one ([`CpuBuffer::add_to`]). It exists only
//!   within a run of the poll function. Dropping it returns the page to its pool, as does freeing
//!   the SKB that was made of it.
//!
//! # Access to the pool
//!
//! The pool allocates from a lockless cache, and an SKB that is freed on the CPU that currently
//! polls the pool's NAPI instance puts its pages straight into that cache. Both are sound because:
//!
//! * Allocating takes the pool by `&mut`, and either the [`Napi`] that it was made for, when the
//!   pool is being made and none of its pages is in use, or its [`napi::Poll`], on the CPU that
//!   polls it and not from netpoll. Either way there is no other access to the cache.
//! * The pool belongs to the NAPI instance, and is destroyed before the instance is deleted, or
//!   while it is disabled, when its receive queue has got other memory. The
//!   driver's [`RxRing`] is only a handle, which is useless without the instance that owns ring and
//!   pool. So no mapping outlives the binding of the device, even if a driver keeps or forgets the
//!   handle.
//! * Pages may be returned after the pool was destroyed. C removes their DMA mappings when the pool
//!   is destroyed, and keeps the pool's memory until the last page was returned. Where pages have
//!   no room for the index that this takes, as in User-Mode Linux, a mapping lasts as long as its
//!   page is in use; the pool has a reference to the device until then.

use crate::{
    bindings,
    device::{
        self,
        Bound, //
    },
    dma::DmaAddress,
    error::from_err_ptr,
    net::{
        ablation,
        napi::{
            self,
            Attached,
            Napi, //
        }, //
    },
    prelude::*,
    sync::Arc, //
};
use core::{
    marker::PhantomData,
    mem::MaybeUninit,
    ptr::NonNull, //
};

mod buffer;
mod frame;
mod layout;
pub(super) mod ring;

use self::buffer::dma_address;

pub(super) use self::buffer::{
    fill_new,
    DeviceBuffer, //
};

pub use self::{
    buffer::CpuBuffer,
    frame::Assembler,
    layout::Layout,
    ring::{
        AnyRxRing,
        ChainFormat,
        ChainPolling,
        ChainRing,
        Chained,
        Continuation,
        Piece,
        Polling,
        Received,
        RxFormat,
        RxRing, //
    }, //
};

// `bindgen` does not see through `BIT()`. The helpers in C check the values.
const PP_FLAG_DMA_MAP: c_uint = 1 << 0;
const PP_FLAG_DMA_SYNC_DEV: c_uint = 1 << 1;

/// Number of pages that are allocated in one call.
const BATCH: usize = 32;

/// The C side of a pool, which the NAPI instance owns.
///
/// # Invariants
///
/// `pool` points to a page pool with `PP_FLAG_DMA_MAP`, which `self` owns.
struct OwnedPool {
    pool: NonNull<bindings::page_pool>,
}

// SAFETY: A page pool is not tied to a thread. What needs a context, allocating, asks for a proof.
unsafe impl Send for OwnedPool {}

// SAFETY: Nothing can be done with a shared reference that is not safe to do concurrently.
unsafe impl Sync for OwnedPool {}

impl Attached for OwnedPool {
    fn is_of_rx_queue(&self) -> bool {
        true
    }

    unsafe fn connect(&self, napi: *mut bindings::napi_struct) {
        // SAFETY: The pool is ours. It is destroyed before the instance is deleted, and while that
        // is disabled: this is for pools in use.
        unsafe { bindings::page_pool_enable_direct_recycling(self.pool.as_ptr(), napi) };
    }
}

impl Drop for OwnedPool {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the pool is ours. The NAPI instance is disabled, so that
        // pages are not recycled directly at this time, and is deleted only after this; or the pool
        // was made while it was running, and has not been connected to it.
        unsafe { bindings::page_pool_destroy(self.pool.as_ptr()) };
    }
}

/// The receive buffers of one queue vector.
///
/// The pool goes away with the queue vector.
///
/// # Invariants
///
/// `pool` was created for the NAPI instance that has or had the identity `napi`, and is valid as
/// long as the instance has that identity and has not been deleted.
struct PagePool {
    pool: NonNull<bindings::page_pool>,
    napi: napi::Id,
}

// SAFETY: As for `OwnedPool`.
unsafe impl Send for PagePool {}

// SAFETY: All methods that take `&self` only read what does not change.
unsafe impl Sync for PagePool {}

impl PagePool {
    /// Creates the page pool that serves `napi`.
    ///
    /// `buffers` is the number of buffers that the pool keeps at hand. They are mapped for `dev`,
    /// which must be the parent of the network device, since that is bound until the pool is gone;
    /// else the result is [`EINVAL`]. The device writes them, and reads them if `direction` says
    /// so.
    ///
    /// Context: process context, while `napi` is being set up, or while other memory is made for
    /// its receive queue.
    fn new(
        dev: &device::Device<Bound>,
        napi: &Napi,
        buffers: u32,
        layout: Layout,
        direction: bindings::dma_data_direction,
    ) -> Result<Self> {
        // Pages, and the part of each that the device writes.
        let pages = if layout.is_half() {
            buffers.div_ceil(2)
        } else {
            buffers
        };
        // From the first buffer of the page to the end of the last one.
        let written = layout.size() * (layout.per_page() - 1) + usize::from(layout.len());

        napi.check_parent(dev)?;
        let id = napi.id_of_new();
        // SAFETY: `napi` has been added to a device.
        let netdev = unsafe { (*napi.as_raw()).dev };

        let mut params = bindings::page_pool_params::default();

        params.__bindgen_anon_1.fast.pool_size = pages;
        params.__bindgen_anon_1.fast.nid = bindings::NUMA_NO_NODE;
        params.__bindgen_anon_1.fast.dev = dev.as_raw();
        // Pages are not recycled directly before the instance is disabled, and uses the pool.
        if !napi.is_new(id) {
            params.__bindgen_anon_1.fast.napi = napi.as_raw();
        }
        params.__bindgen_anon_1.fast.dma_dir = direction;
        params.__bindgen_anon_1.fast.offset = layout.headroom().into();
        // CAST: It is within a page, or fits into 16 bits.
        params.__bindgen_anon_1.fast.max_len = written as u32;
        params.__bindgen_anon_2.slow.netdev = netdev;
        params.__bindgen_anon_2.slow.flags = PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV;

        // SAFETY: `params` is filled in, and what it points to is valid. The pool takes a reference
        // to the device, and is destroyed before the NAPI instance is deleted.
        let pool = from_err_ptr(unsafe { bindings::page_pool_create(&params) })?;
        let pool = NonNull::new(pool).ok_or(ENOMEM)?;

        // If there is no memory for this, or for attaching it, the pool is destroyed with it. No
        // page is recycled yet.
        //
        // INVARIANT: The pool was just created with these properties, and is ours.
        let owned = OwnedPool { pool };
        napi.attach(Arc::new(owned, GFP_KERNEL)?)?;

        // INVARIANT: `napi` owns the pool.
        Ok(Self { pool, napi: id })
    }

    /// Whether `poll` is that of the instance that this pool was made for: if not, the result is
    /// [`EINVAL`], and [`EBUSY`] if this is netpoll.
    #[inline]
    fn check(&self, poll: &napi::Poll<'_>) -> Result {
        if self.napi != poll.napi().id() {
            return Err(EINVAL);
        }
        if poll.is_netpoll() {
            return Err(EBUSY);
        }
        Ok(())
    }

    /// Starts to allocate buffers from the poll function, see [`Self::check`].
    ///
    /// # Safety
    ///
    /// `layout` must be that of the pool. As a constant of the driver, it need not be loaded.
    #[inline]
    unsafe fn allocator<'a>(
        &'a mut self,
        poll: &'a napi::Poll<'_>,
        layout: Layout,
    ) -> Result<Allocator<'a>> {
        self.check(poll)?;

        // INVARIANT: The instance is polled here and now. The layout is that of the pool.
        Ok(Allocator { pool: self, layout })
    }

    /// Starts to take back buffers that the device is done with, from the poll function, see
    /// [`Self::check`].
    #[inline]
    fn receiver<'a, 'p>(&'a mut self, poll: &'p napi::Poll<'_>) -> Result<Receiver<'a, 'p>> {
        self.check(poll)?;

        // SAFETY: The instance is polled here and now, so the pool is alive.
        let sync = unsafe {
            let pool = self.pool.as_ptr();

            (*pool).dma_sync_for_cpu() && bindings::dma_dev_need_sync((*pool).p.dev)
        };
        // INVARIANT: The instance is polled. No other page of the pool is mapped meanwhile, since
        // that takes an allocator.
        Ok(Receiver {
            pool: self,
            sync,
            _poll: PhantomData,
        })
    }
}

/// Permission to take buffers of a [`PagePool`] back from the device.
///
/// # Invariants
///
/// The instance that owns `pool` is being polled. If `sync` is not set, the pages of the pool need
/// not be synced for the CPU to see what the device has written.
struct Receiver<'a, 'p> {
    pool: &'a mut PagePool,
    sync: bool,
    _poll: PhantomData<&'p napi::Poll<'p>>,
}

impl<'p> Receiver<'_, 'p> {
    /// Takes back a buffer to which the device has written `len` bytes.
    ///
    /// `len` usually comes from the device and is not trusted: if it is 0 or exceeds the buffer,
    /// the page goes back to the pool and the result is [`None`].
    ///
    /// # Safety
    ///
    /// The buffer must be from this pool, which has that layout, and the device must be done with
    /// it, which must have been ordered before this call.
    #[inline]
    unsafe fn complete(
        &self,
        layout: Layout,
        buffer: DeviceBuffer,
        len: u16,
    ) -> Option<CpuBuffer<'p>> {
        // Zero becomes the greatest number.
        if len.wrapping_sub(1) >= layout.len() {
            return None;
        }

        if self.sync {
            // The pool has been told of the headroom.
            let offset = buffer.offset(layout);
            // CAST: An offset within a page.
            //
            // SAFETY: The page belongs to this pool, whose vector is being polled, so it is mapped.
            // `len` bytes at this offset from the pool's are within the buffer.
            unsafe {
                bindings::page_pool_dma_sync_netmem_for_cpu(
                    self.pool.pool.as_ptr(),
                    bindings::page_to_netmem(buffer.page_of(layout)),
                    offset as u32,
                    len.into(),
                )
            };
        }

        // INVARIANT: `len` was checked against the layout, which fits the buffer; the device has
        // reported to be done, and the address goes to no device again.
        Some(CpuBuffer {
            buffer,
            layout,
            len,
            _poll: PhantomData,
        })
    }
}

/// Permission to allocate from a [`PagePool`].
///
/// # Invariants
///
/// The instance that owns `pool` exists, and nothing else uses the cache while `self` exists.
/// `layout` is that of `pool`.
struct Allocator<'a> {
    pool: &'a mut PagePool,
    layout: Layout,
}

impl Allocator<'_> {
    /// Allocates up to `count` buffers, as far as there is memory, and passes each of them to
    /// `put`, with the bus address of the part that the device writes. If two of them share a page,
    /// `count` must be even.
    ///
    /// Does not sleep.
    #[inline(always)]
    fn alloc(&mut self, count: usize, mut put: impl FnMut(DeviceBuffer, DmaAddress)) {
        let pool = self.pool.pool.as_ptr();
        let alone = ablation::is_off!(pages);
        let most = if alone { 1 } else { BATCH };
        let mut left = count / self.layout.per_page();
        while left != 0 {
            let mut pages = [const { MaybeUninit::<NonNull<bindings::page>>::uninit() }; BATCH];
            let wanted = left.min(most);
            // SAFETY: By the type invariants the pool is alive and nothing else uses its cache.
            // There is room for that many pointers.
            //
            // CAST: At most `BATCH`; and `usize` has at least 32 bits wherever the kernel runs.
            let got = unsafe {
                let pages = pages.as_mut_ptr().cast();

                if alone {
                    alloc_page(pool, pages)
                } else {
                    bindings::page_pool_dev_alloc_pages_bulk(pool, pages, wanted as u32)
                }
            } as usize;

            // No more than that many were wanted.
            let Some(pages) = pages.get(..got) else {
                break;
            };
            for page in pages {
                // SAFETY: C has written that many pointers, none of which is null.
                let page = unsafe { page.assume_init() };
                // SAFETY: The page is from a pool with `PP_FLAG_DMA_MAP`, so it is mapped.
                let address = unsafe { dma_address(page.as_ptr()) }
                    + DmaAddress::from(self.layout.headroom());

                if self.layout.is_half() {
                    // SAFETY: The page was just allocated, so there is no reference to it but
                    // ours, which becomes one for each half.
                    unsafe { bindings::page_pool_fragment_page(page.as_ptr(), 2) };
                }
                // SAFETY: The page is from a pool with the flag, and we pass on a reference: the
                // only one, or that of the first half.
                let buffer = unsafe { DeviceBuffer::new(page) };
                put(buffer, address);
                if self.layout.is_half() {
                    // SAFETY: As above, with the reference of the second half.
                    let buffer = unsafe { DeviceBuffer::second_half(page) };
                    // CAST: An offset within a page.
                    put(buffer, address + self.layout.size() as DmaAddress);
                }
            }
            if got < wanted {
                break;
            }
            left -= got;
        }
    }
}

/// As `page_pool_dev_alloc_pages_bulk()`, of a single page.
///
/// # Safety
///
/// As for that function.
#[inline]
unsafe fn alloc_page(pool: *mut bindings::page_pool, pages: *mut *mut bindings::page) -> u32 {
    let flags = (GFP_ATOMIC | __GFP_NOWARN).as_raw();
    // SAFETY: By the safety requirements.
    let page = unsafe { bindings::page_pool_alloc_pages(pool, flags) };

    // SAFETY: By the safety requirements, there is room for it.
    unsafe { pages.write(page) };
    u32::from(!page.is_null())
}
