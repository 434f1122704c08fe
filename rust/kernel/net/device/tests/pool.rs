// SPDX-License-Identifier: GPL-2.0

//! A receive ring without a NIC, and a packet of it that is kept beyond the queue vector.

#[cfg(CONFIG_PAGE_POOL)]
mod imp {
    use crate::{
        bindings,
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
                Layout,
                RxFormat,
                RxRing, //
            },
            queue::RingSize,
            skbuff::UniqueSkBuff, //
        },
        new_spinlock,
        prelude::*,
        sync::SpinLock, //
    };
    use core::ptr::NonNull;

    /// Descriptors of the modelled NIC.
    struct Format;

    impl RxFormat for Format {
        const LAYOUT: Layout = match Layout::new(64, 2048) {
            Some(layout) => layout,
            None => panic!("the buffer does not fit into a page"),
        };
        const DONE: u64 = 1;

        fn len(status: u64) -> u16 {
            (status >> 32) as u16
        }
    }

    const fn done(len: u64) -> u64 {
        len << 32 | Format::DONE
    }

    type Ring = RxRing<Format>;

    /// The packet keeps the memory of the pool.
    struct Packet {
        skb: UniqueSkBuff,
        pool: NonNull<bindings::page_pool>,
    }

    // SAFETY: The pool's memory is only read.
    unsafe impl Send for Packet {}

    /// A driver's handle to a ring, and a packet that was received with it.
    #[pin_data]
    pub(in crate::net::device) struct Kept {
        #[pin]
        ring: SpinLock<Option<Ring>>,
        #[pin]
        packet: SpinLock<Option<Packet>>,
    }

    impl Kept {
        pub(in super::super) fn new() -> impl PinInit<Self> {
            pin_init!(Self {
                ring <- new_spinlock!(None),
                packet <- new_spinlock!(None),
            })
        }

        /// Makes a ring for `napi`.
        pub(in super::super) fn make(&self, dev: &Device<Bound>, napi: &Napi) -> Result {
            let mut ring = Ring::new(dev, napi, RingSize::of::<16>(), 16)?;

            assert_eq!((ring.in_use(), ring.missing(), ring.tail()), (15, 0, 15));
            assert!(ring.dma_address(napi)? != 0);
            // The next NIC would find what the first one has written.
            assert_eq!(ring.dma_address(napi), Err(EBUSY));
            *self.ring.lock() = Some(ring);
            Ok(())
        }

        /// Whether the ring is one of `napi`, whose NIC was told of it; [`None`] if there is none.
        pub(in super::super) fn has_address(&self, napi: &Napi) -> Option<bool> {
            let mut ring = self.ring.lock();

            Some((*ring).as_mut()?.dma_address(napi) != Err(EINVAL))
        }

        /// Whether pages of the pool are mapped for the device; [`None`] if no packet is kept.
        pub(in super::super) fn is_mapped(&self) -> Option<bool> {
            let packet = self.packet.lock();
            let packet = packet.as_ref()?;

            assert_eq!(packet.skb.len(), 60);
            // SAFETY: The pool's memory stays until all of its pages were returned, that of the
            // packet included.
            Some(unsafe { !packet.pool.as_ref().dma_mapped.xa_head.is_null() })
        }

        /// Whether the ring can be used in `cx`; [`None`] if there is none.
        pub(in super::super) fn is_usable(&self, cx: &Poll<'_>) -> Option<bool> {
            // Elsewhere the lock is taken with bottom halves enabled, but not now.
            let mut ring = self.ring.try_lock()?;
            let ring = (*ring).as_mut()?;
            let usable = ring.poll(cx).is_ok();

            assert_eq!(usable, ring.refill(cx).is_ok());
            Some(usable)
        }

        /// Receives a packet, and what no NIC may send.
        pub(in super::super) fn receive(&self, cx: &Poll<'_>) -> Result {
            let mut ring = self.ring.try_lock().ok_or(EBUSY)?;
            let ring = (*ring).as_mut().ok_or(ENOENT)?;

            // There is no buffer before the write-back.
            assert!(ring.poll(cx)?.next().is_none());

            ring.write_back(cx, 0, [7, done(60)]);
            ring.write_back(cx, 1, [0, done(0)]);
            ring.write_back(cx, 2, [0, done(2049)]);
            ring.write_back(cx, 3, [0, 60 << 32]);
            let pool = ring.pool();
            let mut polling = ring.poll(cx)?;

            let good = polling.next().ok_or(ENODATA)?;
            assert_eq!((good.info, good.status), (7, done(60)));
            let skb = good.buffer.ok_or(EMSGSIZE)?.into_skb().ok_or(ENOMEM)?;
            *self.packet.try_lock().ok_or(EBUSY)? = Some(Packet { skb, pool });

            // None of its own buffers, no matter which length a NIC reports.
            assert!(polling.next().is_some_and(|bad| bad.buffer.is_none()));
            assert!(polling.next().is_some_and(|bad| bad.buffer.is_none()));
            assert!(polling.next().is_none());
            drop(polling);

            assert_eq!((ring.in_use(), ring.missing()), (12, 3));
            assert_eq!(ring.refill(cx)?, 3);
            assert_eq!((ring.in_use(), ring.missing(), ring.tail()), (15, 0, 2));
            // A descriptor that was given to the NIC again does not look done.
            ring.write_back(cx, 3, [0, done(60)]);
            while ring.in_use() > 2 {
                let index = 15 - ring.in_use() + 3;
                ring.write_back(cx, index, [0, done(60)]);
                assert!(ring.poll(cx)?.next().is_some());
            }
            assert!(ring.poll(cx)?.next().is_none());

            // Nor does one count that the NIC has not got.
            for index in 0..=2 {
                ring.write_back(cx, index, [0, done(60)]);
            }
            let mut polling = ring.poll(cx)?;
            assert!(polling.next().is_some() && polling.next().is_some());
            assert!(polling.next().is_none());
            drop(polling);
            assert_eq!((ring.in_use(), ring.missing()), (0, 15));
            Ok(())
        }

        /// Drops the driver's handle. Returns the number of pages that the pool lacks before and
        /// after that.
        pub(in super::super) fn drop_ring(&self, cx: &Poll<'_>) -> Result<(u32, u32)> {
            let mut slot = self.ring.try_lock().ok_or(EBUSY)?;
            let pool = (*slot).as_ref().ok_or(ENOENT)?.pool();
            // SAFETY: The instance that owns the pool is being polled.
            let lacking = || unsafe {
                let pool = pool.as_ref();
                pool.pages_state_hold_cnt
                    .wrapping_sub(pool.pages_state_release_cnt.counter as u32)
                    .wrapping_sub(pool.alloc.count)
            };

            assert!(!cx.is_netpoll());
            let before = lacking();
            *slot = None;
            Ok((before, lacking()))
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

        pub(in super::super) fn has_address(&self, _napi: &Napi) -> Option<bool> {
            None
        }

        pub(in super::super) fn is_mapped(&self) -> Option<bool> {
            None
        }

        pub(in super::super) fn is_usable(&self, _cx: &Poll<'_>) -> Option<bool> {
            None
        }

        pub(in super::super) fn receive(&self, _cx: &Poll<'_>) -> Result {
            Ok(())
        }

        pub(in super::super) fn drop_ring(&self, _cx: &Poll<'_>) -> Result<(u32, u32)> {
            Ok((0, 0))
        }
    }
}

pub(super) use self::imp::Kept;
