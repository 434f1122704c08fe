// SPDX-License-Identifier: GPL-2.0

//! Page pools: receive buffers that stay mapped for DMA and are recycled.
//!
//! C header: [`include/net/page_pool/helpers.h`](srctree/include/net/page_pool/helpers.h)
//!
//! A [`PagePool`] serves the receive ring of one queue vector. What can be done with a buffer
//! depends on who owns it, so each owner has a type of its own:
//!
//! * [`DeviceBuffer`]: the device may write to it. The CPU gets no access, only the address that
//!   goes into a descriptor.
//! * [`CpuBuffer`]: the device is done with it; [`PagePool::complete`] made it visible to the CPU.
//!   It becomes an SKB ([`CpuBuffer::into_skb`]) or a fragment of one ([`CpuBuffer::add_to`]).
//!
//! Dropping either gives the page back to its pool, as does freeing the SKB that was made of it.
//!
//! # Who may touch the pool
//!
//! The pool allocates from a cache without a lock, and freed SKBs put their pages straight into
//! that cache when they are freed on the CPU that currently polls the pool's NAPI. Both are sound
//! because:
//!
//! * Allocating takes the pool by `&mut`, and either the [`Napi`] that it was made for, which
//!   drivers see only while it is being set up and cannot run yet, or the [`napi::Poll`] of it, on
//!   the CPU that polls it and not from netpoll. Either way nobody else touches the cache.
//! * The pool belongs to the NAPI instance, and is destroyed before that is deleted, whatever the
//!   driver does with its [`PagePool`], which is but a handle: it works only where the instance is
//!   at hand that owns the pool. So no mapping outlives the binding of the device, not even if a
//!   driver keeps or forgets the handle.
//! * Pages may come back after the pool was destroyed. C keeps the pool's memory until the last
//!   one did, and takes back their DMA mappings when the pool is destroyed.

use crate::{
    bindings,
    device::{
        self,
        Bound, //
    },
    dma::DmaAddress,
    error::from_err_ptr,
    net::{
        napi::{
            self,
            Attached,
            Napi, //
        },
        skbuff::SkBuff, //
    },
    prelude::*,
    sync::Arc, //
};
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::NonNull, //
};

// `bindgen` does not see through `BIT()`.
const PP_FLAG_DMA_MAP: c_uint = 1 << 0;
const PP_FLAG_DMA_SYNC_DEV: c_uint = 1 << 1;

/// Where in a page the device writes.
///
/// # Invariants
///
/// `headroom + len` and the C side's `struct skb_shared_info` fit into a page, and `len` is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    headroom: u16,
    len: u16,
}

impl Layout {
    /// Bytes at the end of a page that an SKB built around it needs for itself.
    pub const TAILROOM: usize =
        size_of::<bindings::skb_shared_info>().next_multiple_of(1 << bindings::L1_CACHE_SHIFT);

    /// Creates a layout of `headroom` bytes that the device leaves alone, followed by `len` bytes
    /// that it may write.
    ///
    /// Returns [`None`] if `len` is 0, or if an SKB could not be built around such a page.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::net::page_pool::Layout;
    ///
    /// let layout = Layout::new(64, 3072).ok_or(EINVAL)?;
    /// assert_eq!(layout.len(), 3072);
    /// assert!(Layout::new(64, 4096).is_none());
    /// assert!(Layout::new(64, 0).is_none());
    /// # Ok::<(), Error>(())
    /// ```
    pub const fn new(headroom: u16, len: u16) -> Option<Self> {
        if len == 0 || headroom as usize + len as usize + Self::TAILROOM > bindings::PAGE_SIZE {
            return None;
        }

        // INVARIANT: Just checked.
        Some(Self { headroom, len })
    }

    /// Number of bytes in front of what the device writes.
    #[inline]
    pub const fn headroom(self) -> u16 {
        self.headroom
    }

    /// Number of bytes that the device may write.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub const fn len(self) -> u16 {
        self.len
    }
}

/// The C side of a pool, which the NAPI instance owns.
///
/// # Invariants
///
/// `pool` points to a page pool of order 0 with `PP_FLAG_DMA_MAP`, which `self` owns.
struct Owned {
    pool: NonNull<bindings::page_pool>,
}

// SAFETY: A page pool is not tied to a thread. What needs a context, allocating, asks for a proof.
unsafe impl Send for Owned {}

// SAFETY: Nothing can be done with a shared reference that is not safe to do concurrently.
unsafe impl Sync for Owned {}

impl Attached for Owned {}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the pool is ours. The NAPI instance is disabled, so that
        // nobody recycles directly at this time, and is deleted only after this.
        unsafe { bindings::page_pool_destroy(self.pool.as_ptr()) };
    }
}

/// The receive buffers of one queue vector.
///
/// The pool goes away with the queue vector.
///
/// # Invariants
///
/// `pool` was created for the NAPI instance `napi`, and is valid as long as that has not been
/// deleted.
pub struct PagePool {
    pool: NonNull<bindings::page_pool>,
    napi: napi::Id,
    layout: Layout,
}

// SAFETY: As for `Owned`.
unsafe impl Send for PagePool {}

// SAFETY: All methods that take `&self` only read what does not change.
unsafe impl Sync for PagePool {}

impl PagePool {
    /// Creates the page pool that serves `napi`.
    ///
    /// `pages` is the number of pages that the pool keeps at hand, usually the size of the receive
    /// ring. The pages are mapped for `dev`, which must be the parent of the network device, since
    /// that is bound until the pool is gone; else the result is [`EINVAL`].
    ///
    /// Context: process context, while `napi` is being set up.
    pub fn new(
        dev: &device::Device<Bound>,
        napi: &Napi,
        pages: u32,
        layout: Layout,
    ) -> Result<Self> {
        // SAFETY: `napi` has been added to a device.
        let netdev = unsafe { (*napi.as_raw()).dev };
        // SAFETY: The device of an instance is valid, and its parent does not change.
        if unsafe { (*netdev).dev.parent } != dev.as_raw() {
            return Err(EINVAL);
        }

        let mut params = bindings::page_pool_params::default();

        params.__bindgen_anon_1.fast.pool_size = pages;
        params.__bindgen_anon_1.fast.nid = bindings::NUMA_NO_NODE;
        params.__bindgen_anon_1.fast.dev = dev.as_raw();
        params.__bindgen_anon_1.fast.napi = napi.as_raw();
        params.__bindgen_anon_1.fast.dma_dir = bindings::dma_data_direction::DMA_FROM_DEVICE;
        params.__bindgen_anon_1.fast.offset = layout.headroom.into();
        params.__bindgen_anon_1.fast.max_len = layout.len.into();
        params.__bindgen_anon_2.slow.netdev = netdev;
        params.__bindgen_anon_2.slow.flags = PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV;

        // SAFETY: `params` is filled in, and what it points to is valid. The pool takes a reference
        // to the device, and is destroyed before the NAPI instance is deleted.
        let pool = from_err_ptr(unsafe { bindings::page_pool_create(&params) })?;
        let pool = NonNull::new(pool).ok_or(ENOMEM)?;

        // If there is no memory for this, or for attaching it, the pool is destroyed with it. The
        // NAPI instance has not been enabled, so nobody recycles yet.
        //
        // INVARIANT: The pool was just created with these properties, and is ours.
        let owned = Owned { pool };
        napi.attach(Arc::new(owned, GFP_KERNEL)?)?;

        // INVARIANT: `napi` owns the pool.
        Ok(Self {
            pool,
            napi: napi.id(),
            layout,
        })
    }

    /// Where the device writes in the buffers of this pool.
    #[inline]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Starts to allocate the first buffers, while `napi` is being set up.
    ///
    /// Returns [`EINVAL`] if `napi` is not the instance that this pool was made for.
    pub fn initial_allocator<'a>(&'a mut self, napi: &'a Napi) -> Result<Allocator<'a>> {
        if self.napi != napi.id() {
            return Err(EINVAL);
        }

        // INVARIANT: The instance is there, and cannot run yet.
        Ok(Allocator { pool: self })
    }

    /// Starts to allocate buffers from the poll function.
    ///
    /// Returns [`EINVAL`] if `poll` is not that of the instance that this pool was made for, and
    /// [`EBUSY`] if this is netpoll, which may have interrupted the pool's user.
    #[inline]
    pub fn allocator<'a>(&'a mut self, poll: &'a napi::Poll<'_>) -> Result<Allocator<'a>> {
        if self.napi != poll.napi().id() {
            return Err(EINVAL);
        }
        if poll.is_netpoll() {
            return Err(EBUSY);
        }

        // INVARIANT: The instance is polled here and now.
        Ok(Allocator { pool: self })
    }

    /// Starts to take back buffers that the device is done with, from the poll function.
    ///
    /// `layout` is that of the pool, again: a driver for which it is a constant need not look it
    /// up for each buffer then.
    ///
    /// Returns [`EINVAL`] if it is another one, or if `poll` is not that of the instance that this
    /// pool was made for, and [`EBUSY`] if this is netpoll.
    #[inline]
    pub fn receiver<'a, 'p>(
        &'a mut self,
        poll: &'p napi::Poll<'_>,
        layout: Layout,
    ) -> Result<Receiver<'a, 'p>> {
        if self.napi != poll.napi().id() || self.layout != layout {
            return Err(EINVAL);
        }
        if poll.is_netpoll() {
            return Err(EBUSY);
        }

        // SAFETY: The instance is polled here and now, so the pool is alive.
        let sync = unsafe { bindings::page_pool_syncs_for_cpu(self.pool.as_ptr()) };
        // INVARIANT: The instance is polled. Nobody maps another page of the pool meanwhile, since
        // that takes an allocator.
        Ok(Receiver {
            pool: self,
            layout,
            sync,
            _poll: PhantomData,
        })
    }

    /// Takes back a buffer, see [`Receiver::complete`]. Of several, a [`Receiver`] is faster.
    #[inline]
    pub fn complete<'p>(
        &mut self,
        buffer: DeviceBuffer,
        len: u16,
        poll: &'p napi::Poll<'_>,
    ) -> Result<CpuBuffer<'p>> {
        self.receiver(poll, self.layout)?.complete(buffer, len)
    }
}

/// Permission to take buffers of a [`PagePool`] back from the device.
///
/// # Invariants
///
/// The instance that owns `pool` is being polled, and `layout` is that of `pool`. If `sync` is not
/// set, what the device writes to the pages of the pool is visible to the CPU without further ado.
pub struct Receiver<'a, 'p> {
    pool: &'a mut PagePool,
    layout: Layout,
    sync: bool,
    _poll: PhantomData<&'p napi::Poll<'p>>,
}

impl<'p> Receiver<'_, 'p> {
    /// Takes back a buffer to which the device has written `len` bytes.
    ///
    /// `len` usually comes from the device and is not trusted: if it is 0 or exceeds the buffer,
    /// the page goes back to the pool and the result is [`EMSGSIZE`]. A buffer of another pool is
    /// refused with [`EINVAL`].
    ///
    /// The caller has seen the device's notice of completion and ordered it before this call.
    #[inline]
    pub fn complete(&self, buffer: DeviceBuffer, len: u16) -> Result<CpuBuffer<'p>> {
        // The pool's own buffers are mapped as long as the pool lives, which it does while its
        // vector is polled. Others may not be.
        if buffer.pool() != self.pool.pool.as_ptr() {
            return Err(EINVAL);
        }
        // Zero becomes the greatest number.
        if len.wrapping_sub(1) >= self.layout.len {
            return Err(EMSGSIZE);
        }

        if self.sync {
            // SAFETY: The page belongs to this pool, whose vector is being polled, and `len` bytes
            // at the pool's offset are within the page.
            unsafe {
                bindings::page_pool_dma_sync_netmem_for_cpu(
                    self.pool.pool.as_ptr(),
                    bindings::page_to_netmem(buffer.page.as_ptr()),
                    0,
                    len.into(),
                )
            };
        }

        // INVARIANT: `len` was checked against the layout, which fits into the page; the device has
        // reported to be done, and the address goes to no device again.
        Ok(CpuBuffer {
            buffer,
            headroom: self.layout.headroom,
            len,
            _poll: PhantomData,
        })
    }
}

/// Permission to allocate from a [`PagePool`].
///
/// # Invariants
///
/// The instance that owns `pool` is there, and nobody else uses the cache while this object exists.
pub struct Allocator<'a> {
    pool: &'a mut PagePool,
}

impl Allocator<'_> {
    /// Allocates a buffer and makes it ready for the device.
    ///
    /// Does not sleep.
    #[inline]
    pub fn alloc(&mut self) -> Option<DeviceBuffer> {
        // SAFETY: By the type invariants the pool is alive and nobody else uses its cache.
        let page = unsafe { bindings::page_pool_dev_alloc_pages(self.pool.pool.as_ptr()) };

        // INVARIANT: The page was allocated from a page pool as we want them.
        NonNull::new(page).map(|page| DeviceBuffer { page })
    }
}

/// A buffer that belongs to the device.
///
/// # Invariants
///
/// `page` is an order-0 page that was allocated from a page pool with `PP_FLAG_DMA_MAP`, and `self`
/// owns the reference to it.
pub struct DeviceBuffer {
    page: NonNull<bindings::page>,
}

// SAFETY: A page of a page pool can be given back from any context.
unsafe impl Send for DeviceBuffer {}

// SAFETY: The methods that take `&self` only read what does not change while the buffer exists.
unsafe impl Sync for DeviceBuffer {}

impl DeviceBuffer {
    /// The address at which a device of the given pool's may write.
    #[inline]
    pub fn dma_address(&self, layout: Layout) -> DmaAddress {
        // SAFETY: By the type invariant the page was allocated from a pool that maps its pages.
        let page = unsafe { bindings::page_pool_get_dma_addr(self.page.as_ptr()) };

        page + DmaAddress::from(layout.headroom)
    }

    /// Returns the pool that the page belongs to.
    #[inline]
    fn pool(&self) -> *mut bindings::page_pool {
        // SAFETY: By the type invariant the page belongs to a page pool.
        unsafe { bindings::page_pool_of(self.page.as_ptr()) }
    }

    /// Whether there are pages of the pool that are mapped for its device.
    #[cfg(CONFIG_KUNIT)]
    pub(in crate::net) fn pool_is_mapped(&self) -> bool {
        // SAFETY: The pool's memory stays until all of its pages came back, this one included.
        unsafe { !(*self.pool()).dma_mapped.xa_head.is_null() }
    }
}

impl Drop for DeviceBuffer {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariant the page belongs to this pool, whose memory stays until all
        // of its pages came back, and the reference is ours. C finds out itself whether it may
        // recycle directly.
        unsafe { bindings::page_pool_put_full_page(self.pool(), self.page.as_ptr(), false) };
    }
}

/// A buffer that holds received data.
///
/// It exists only within the poll that received it.
///
/// # Invariants
///
/// The device does not use the buffer; `len` bytes from `headroom` on are visible to the CPU, and
/// these numbers satisfy the invariants of [`Layout`].
pub struct CpuBuffer<'p> {
    buffer: DeviceBuffer,
    headroom: u16,
    len: u16,
    _poll: PhantomData<&'p napi::Poll<'p>>,
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
        // allocator are, for the purposes of Rust, memory that a device wrote), and nobody writes
        // to them.
        unsafe { core::slice::from_raw_parts(start, self.len.into()) }
    }

    /// Makes an SKB of the buffer, without copying.
    ///
    /// Returns [`None`] if there is no memory for it; the page went back to the pool.
    #[inline]
    pub fn into_skb(self) -> Option<SkBuff> {
        // SAFETY: The page is ours, has the size given and enough room at its end. This is within
        // a poll, hence in softirq context.
        let skb = unsafe { bindings::napi_build_skb(self.address(), bindings::PAGE_SIZE as u32) };
        let skb = NonNull::new(skb)?;

        // The SKB owns the page from here on.
        let this = ManuallyDrop::new(self);

        // SAFETY: The SKB is new, and both numbers fit by the type invariants.
        unsafe { bindings::skb_fill_new(skb.as_ptr(), this.headroom.into(), this.len.into()) };

        // SAFETY: The SKB is valid, and we own the only reference to it.
        Some(unsafe { SkBuff::from_raw(skb) })
    }

    /// Appends the buffer to `skb` as a fragment, without copying.
    ///
    /// `skb` must come from [`Self::into_skb`] of a buffer of a page pool, so that its pages are
    /// recycled. Returns [`EMSGSIZE`] if it has as many fragments as an SKB can have; the page went
    /// back to the pool.
    #[inline]
    pub fn add_to(self, skb: &mut SkBuff) -> Result {
        let raw = skb.as_raw();

        // SAFETY: `skb` is valid, and owned by the caller.
        if skb.is_shared() || skb.is_cloned() || !unsafe { bindings::skb_pp_recycle(raw) } {
            return Err(EINVAL);
        }

        let fragments = skb.nr_frags();
        if fragments >= bindings::MAX_SKB_FRAGS as usize {
            return Err(EMSGSIZE);
        }

        // The SKB owns the page from here on.
        let this = ManuallyDrop::new(self);

        // SAFETY: The SKB has room for the fragment, which is within the page.
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
