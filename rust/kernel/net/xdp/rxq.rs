// SPDX-License-Identifier: GPL-2.0

//! The description of a receive queue for programs.

use crate::{
    bindings,
    error::to_result,
    net::napi::{
        Attached,
        Napi, //
    },
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

use core::{
    ffi::c_void,
    ptr::{
        self,
        NonNull, //
    }, //
};

/// A `struct xdp_rxq_info`, with the registration of the queue's memory as one of XDP.
///
/// It belongs to the NAPI instance, behind the ring and the page pool that it was made for. So the
/// pages in the ring have gone when it is dropped. It has a reference to the pool, and the last
/// one.
///
/// # Invariants
///
/// `info` is registered, with a page pool, or with memory of users.
#[pin_data(PinnedDrop)]
pub(super) struct RxqInfo {
    #[pin]
    info: Opaque<bindings::xdp_rxq_info>,
}

// SAFETY: Once it is registered, it is only read, until it is dropped, in process context.
unsafe impl Send for RxqInfo {}

// SAFETY: As for `Send`.
unsafe impl Sync for RxqInfo {}

impl RxqInfo {
    /// Makes and registers that of `napi`, for a ring with this pool, or with memory of users,
    /// whose buffers have `size` bytes. Returns a pointer to it, which is valid as long as the
    /// instance keeps the objects of the ring.
    pub(super) fn attach(
        napi: &Napi,
        pool: Option<NonNull<bindings::page_pool>>,
        size: u32,
    ) -> Result<NonNull<bindings::xdp_rxq_info>> {
        let this = Arc::pin_init(
            try_pin_init!(Self {
                info <- Opaque::try_ffi_init(|info| Self::register(info, napi, pool, size)),
            }? Error),
            GFP_KERNEL,
        )?;
        let info = NonNull::new(this.info.get()).ok_or(EINVAL)?;

        napi.attach(this)?;
        Ok(info)
    }

    /// Registers `info`, or leaves it unregistered.
    fn register(
        info: *mut bindings::xdp_rxq_info,
        napi: &Napi,
        pool: Option<NonNull<bindings::page_pool>>,
        size: u32,
    ) -> Result {
        // SAFETY: The instance has been added to a device, at the index of its queues.
        let (dev, index) = unsafe { ((*napi.as_raw()).dev, (*napi.as_raw()).index) };

        // SAFETY: `info` is valid for writing, and zero is its state before the registration. The
        // device outlives the instance.
        unsafe {
            info.write_bytes(0, 1);
            // CAST: It is not negative, as the instance was added. C does not use the ID.
            to_result(bindings::__xdp_rxq_info_reg(
                info,
                dev,
                index as u32,
                0,
                size,
            ))?;
        }
        let (kind, allocator) = match pool {
            Some(pool) => (
                bindings::xdp_mem_type_MEM_TYPE_PAGE_POOL,
                pool.as_ptr().cast::<c_void>(),
            ),
            None => (
                bindings::xdp_mem_type_MEM_TYPE_XSK_BUFF_POOL,
                ptr::null_mut(),
            ),
        };
        // SAFETY: It is registered, and the pool is valid.
        to_result(unsafe { bindings::xdp_rxq_info_reg_mem_model(info, kind, allocator) })
            // SAFETY: It is registered, without memory.
            .inspect_err(|_| unsafe { bindings::xdp_rxq_info_unreg(info) })
    }
}

#[pinned_drop]
impl PinnedDrop for RxqInfo {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariants. This also drops a reference to a page pool, as if by
        // `page_pool_destroy()`: the instance is disabled, or has never used it.
        unsafe { bindings::xdp_rxq_info_unreg(self.info.get()) };
    }
}

impl Attached for RxqInfo {
    fn is_of_rx_queue(&self) -> bool {
        true
    }

    fn is_for_programs(&self) -> bool {
        true
    }
}
