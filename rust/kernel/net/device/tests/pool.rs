// SPDX-License-Identifier: GPL-2.0

//! A page pool and a buffer of it, kept by a driver beyond the queue vector.

#[cfg(CONFIG_PAGE_POOL)]
mod imp {
    use crate::{
        device::{
            Bound,
            Device, //
        },
        net::{
            napi::{
                Napi,
                Poll, //
            },
            page_pool::{
                DeviceBuffer,
                Layout,
                PagePool, //
            }, //
        },
        new_spinlock,
        prelude::*,
        sync::SpinLock, //
    };

    /// The pool, and a buffer of it.
    #[pin_data]
    pub(in crate::net::device) struct Kept {
        #[pin]
        inner: SpinLock<Option<(PagePool, DeviceBuffer)>>,
    }

    impl Kept {
        pub(in super::super) fn new() -> impl PinInit<Self> {
            pin_init!(Self {
                inner <- new_spinlock!(None),
            })
        }

        /// Makes a pool for `napi`, and allocates a buffer.
        pub(in super::super) fn make(&self, dev: &Device<Bound>, napi: &Napi) -> Result {
            let layout = Layout::new(64, 2048).ok_or(EINVAL)?;
            let mut pool = PagePool::new(dev, napi, 16, layout)?;
            let buffer = pool.initial_allocator(napi)?.alloc().ok_or(ENOMEM)?;

            *self.inner.lock() = Some((pool, buffer));
            Ok(())
        }

        /// Whether pages of the pool are mapped for the device; [`None`] if there is none.
        pub(in super::super) fn is_mapped(&self) -> Option<bool> {
            let inner = self.inner.lock();
            let (_, buffer) = inner.as_ref()?;

            Some(buffer.pool_is_mapped())
        }

        /// Whether the pool can be used in `cx`; [`None`] if there is none.
        pub(in super::super) fn is_usable(&self, cx: &Poll<'_>) -> Option<bool> {
            // Elsewhere the lock is taken with bottom halves enabled, but not now.
            let mut inner = self.inner.try_lock()?;
            let (mut pool, buffer) = inner.take()?;
            let usable = pool.allocator(cx).is_ok();

            // A pool that is not usable does not return the buffer to the CPU either.
            if usable {
                *inner = Some((pool, buffer));
            } else {
                assert!(pool.complete(buffer, 60, cx).is_err());
            }
            Some(usable)
        }
    }
}

#[cfg(not(CONFIG_PAGE_POOL))]
mod imp {
    use crate::{
        device::{
            Bound,
            Device, //
        },
        net::napi::{
            Napi,
            Poll, //
        },
        prelude::*, //
    };

    #[pin_data]
    pub(in crate::net::device) struct Kept {}

    impl Kept {
        pub(in super::super) fn new() -> impl PinInit<Self> {
            pin_init!(Self {})
        }

        pub(in super::super) fn make(&self, _dev: &Device<Bound>, _napi: &Napi) -> Result {
            Ok(())
        }

        pub(in super::super) fn is_mapped(&self) -> Option<bool> {
            None
        }

        pub(in super::super) fn is_usable(&self, _cx: &Poll<'_>) -> Option<bool> {
            None
        }
    }
}

pub(super) use self::imp::Kept;
