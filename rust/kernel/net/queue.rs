// SPDX-License-Identifier: GPL-2.0

//! Transmit queues: flow control between the stack, the driver and the NIC.
//!
//! C headers: [`include/linux/netdevice.h`](srctree/include/linux/netdevice.h),
//! [`include/net/netdev_queues.h`](srctree/include/net/netdev_queues.h)

use super::{
    device::{
        Device,
        Doorbell,
        Immediate, //
    },
    skbuff::SkBuff, //
};

use crate::{
    bindings,
    prelude::*,
    sync::barrier::{
        smp_mb,
        Full, //
    },
    types::NotThreadSafe, //
};

use core::{
    cell::Cell,
    marker::PhantomData, //
};

static_assert!(SkBuff::MAX_LEN == bindings::GSO_MAX_SIZE);

mod le;
mod ring;
#[cfg(CONFIG_KUNIT)]
mod tests;

pub(super) use self::ring::{
    Place,
    RingMemory,
    RingSlots, //
};
pub use self::{
    le::bus_address,
    ring::RingSize, //
};

pub use super::skbuff::Xmit;

/// The transmit side of a queue, for [`Driver::start_xmit`].
///
/// Accounts for packets that go into the ring, and stops the queue when the ring is full. The other
/// side is [`Completions`]. The two contain the barriers that keep a queue from staying stopped
/// forever.
///
/// [`Driver::start_xmit`]: super::device::Driver::start_xmit
///
/// # Invariants
///
/// `raw` is a transmit queue of a device that outlives `'a`, and is locked by this CPU, which has
/// bottom halves disabled. `doorbell` was made for the queue.
pub struct TxQueue<'a, D = Immediate> {
    raw: *mut bindings::netdev_queue,
    /// The driver has stopped the queue since this was created.
    has_stopped: Cell<bool>,
    doorbell: &'a D,
    _not_send: NotThreadSafe,
    _device: PhantomData<&'a Device>,
}

impl<'a, D: Doorbell> TxQueue<'a, D> {
    /// Creates a reference to the transmit side of a queue.
    ///
    /// # Safety
    ///
    /// `raw` must be a transmit queue of a device, and both must outlive `'a`, for which the caller
    /// holds the lock of the queue, with bottom halves disabled. `doorbell` must have been made for
    /// that queue.
    #[inline]
    pub(super) unsafe fn from_raw(raw: *mut bindings::netdev_queue, doorbell: &'a D) -> Self {
        // INVARIANT: The safety requirements are the type invariants.
        Self {
            raw,
            has_stopped: Cell::new(false),
            doorbell,
            _not_send: NotThreadSafe,
            _device: PhantomData,
        }
    }

    /// Whether the driver has stopped the queue.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        // SAFETY: By the type invariants, the queue is valid.
        unsafe { bindings::netif_tx_queue_stopped(self.raw) }
    }

    /// Whether the queue is stopped, or has been by [`Self::stop_if_low`] and woken since.
    #[inline]
    pub(super) fn was_stopped(&self) -> bool {
        self.has_stopped.get() || self.is_stopped()
    }

    /// Accounts for `bytes` that have been put into the ring.
    ///
    /// This must happen before the NIC, and thus the completion side, can know of them. `more`
    /// says that another packet follows at once. Returns whether the doorbell has to be rung now:
    /// if not, there will be another packet, or [`Driver::Doorbell`] has it rung later.
    ///
    /// [`Driver::Doorbell`]: super::device::Driver::Doorbell
    #[inline]
    #[must_use]
    pub fn sent(&self, bytes: u32, more: bool) -> bool {
        // The core counts in 32 bits. No packet is longer.
        let bytes = bytes.min(SkBuff::MAX_LEN);

        // SAFETY: By the type invariants, the queue is valid and locked.
        if unsafe { !bindings::__netdev_tx_sent_queue(self.raw, bytes, more) } {
            return false;
        }
        // SAFETY: By the type invariants, the doorbell was made for the queue, which is locked,
        // with bottom halves disabled.
        unsafe { self.doorbell.is_due(self.raw) }
    }

    /// Stops the queue if fewer than `stop` descriptors are free. Returns whether it is stopped.
    ///
    /// `free` returns the number of free descriptors, and must read it afresh each time. It is
    /// called again after the queue has been stopped: if completions have made room for `restart`
    /// descriptors in the meantime, the queue is woken again.
    #[inline]
    pub fn stop_if_low(&self, free: impl Fn() -> usize, stop: usize, restart: usize) -> bool {
        free() < stop && self.stop_and_recheck(free, restart)
    }

    #[cold]
    fn stop_and_recheck(&self, free: impl Fn() -> usize, restart: usize) -> bool {
        // SAFETY: By the type invariants, the queue is valid.
        unsafe { bindings::netif_tx_stop_queue(self.raw) };

        // The consumer must see the producer's index and the stop bit before we look again. Pairs
        // with the barrier in `Completions::completed()`.
        smp_mb(Full);

        if free() < restart {
            // From here on a completion may wake it at any time.
            self.has_stopped.set(true);
            return true;
        }

        // A lockless observer may have seen the queue stopped and be waiting for a wakeup.
        //
        // SAFETY: By the type invariants, the queue is valid.
        unsafe { bindings::netif_tx_wake_queue(self.raw) };
        false
    }
}

/// The completion side of a transmit queue, for the poll function, see
/// [`Poll::tx_queue`](super::napi::Poll::tx_queue).
///
/// Accounts for packets that the NIC has sent, and wakes the queue when there is room again.
///
/// # Invariants
///
/// `raw` is the transmit queue of a vector that is being polled. Its packets are only completed
/// here during `'a`.
pub struct Completions<'a> {
    raw: *mut bindings::netdev_queue,
    _not_send: NotThreadSafe,
    _device: PhantomData<&'a Device>,
}

impl<'a> Completions<'a> {
    /// Creates a reference to the completion side of a queue.
    ///
    /// # Safety
    ///
    /// `raw` must be the transmit queue of a vector whose poll function runs for `'a`.
    #[inline]
    pub(super) unsafe fn from_raw(raw: *mut bindings::netdev_queue) -> Self {
        // INVARIANT: The safety requirements are the type invariants.
        Self {
            raw,
            _not_send: NotThreadSafe,
            _device: PhantomData,
        }
    }

    /// Whether the queue is stopped: the ring is full, or byte queue limits are reached. Packets
    /// may wait in the stack for others to be completed.
    ///
    /// Byte queue limits learn from completions how much the hardware needs to be busy. So a
    /// driver that leaves completions for the next poll should not do so while this is true.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        // SAFETY: By the type invariants, the queue is valid.
        unsafe { bindings::netif_xmit_stopped(self.raw) }
    }

    /// `dql_completed()` is a `BUG()` if more bytes are completed than were queued. A driver that
    /// counts wrongly causes that, but so does a NIC that reports packets as sent before it was
    /// told of them. That is no reason for a warning either, which panics with `panic_on_warn`: log
    /// it and continue.
    #[cfg(CONFIG_BQL)]
    #[inline]
    fn limit_to_queued(&self, bytes: c_uint) -> c_uint {
        // SAFETY: By the type invariants, the queue is valid. The one number changes with the lock
        // of the queue held, the other one only here.
        let queued = unsafe {
            let dql = &raw const (*self.raw).dql;
            let queued = (&raw const (*dql).num_queued).read_volatile();

            queued.wrapping_sub((*dql).num_completed)
        };
        if bytes <= queued {
            return bytes;
        }
        // SAFETY: By the type invariants, the queue is one of a device, which outlives `self`.
        report_too_many(unsafe { Device::from_raw((*self.raw).dev) });
        queued
    }

    #[cfg(not(CONFIG_BQL))]
    #[inline(always)]
    fn limit_to_queued(&self, bytes: c_uint) -> c_uint {
        bytes
    }

    /// Accounts for packets that the NIC has sent, and wakes the queue if there is room again.
    ///
    /// To be called once per batch, after its descriptors were freed. `free` returns the number of
    /// free descriptors; the queue is woken if there are at least `restart`.
    #[inline]
    pub fn completed(
        &self,
        packets: usize,
        bytes: usize,
        free: impl Fn() -> usize,
        restart: usize,
    ) {
        if packets == 0 {
            return;
        }

        // CAST: The bytes are limited to those that were queued.
        let bytes = self.limit_to_queued(bytes as c_uint);

        // Either includes a full barrier, since packets of no bytes have room in the ring, too: a
        // CPU that stops the queue after this sees the new consumer index. Pairs with the barrier
        // in `TxQueue::stop_and_recheck()`.
        if bytes != 0 {
            // CAST: A batch has no more packets than the ring has descriptors.
            //
            // SAFETY: By the type invariants, the queue is valid and packets are only completed
            // here.
            unsafe { bindings::netdev_txq_completed_mb(self.raw, packets as c_uint, bytes) };
        } else {
            smp_mb(Full);
        }

        // SAFETY: By the type invariants, the queue is valid.
        if unsafe { bindings::netif_tx_queue_stopped(self.raw) } && free() >= restart {
            // SAFETY: By the type invariants, the queue is valid.
            unsafe { bindings::netif_tx_wake_queue(self.raw) };
        }
    }
}

#[cfg(CONFIG_BQL)]
#[cold]
fn report_too_many(dev: &Device) {
    crate::do_once_lite!(crate::netdev_err!(
        dev,
        "BQL: more bytes completed than queued\n"
    ));
}
