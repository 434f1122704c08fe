// SPDX-License-Identifier: GPL-2.0

//! Transmit queues: flow control between the stack, the driver and the card.
//!
//! C headers: [`include/linux/netdevice.h`](srctree/include/linux/netdevice.h),
//! [`include/net/netdev_queues.h`](srctree/include/net/netdev_queues.h)

use super::{
    device::Device,
    doorbell::Waiting,
    skbuff::SkBuff, //
};

use crate::{
    bindings,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        barrier::{
            smp_mb,
            Full, //
        }, //
    },
    types::NotThreadSafe, //
};

use core::{
    cell::Cell,
    marker::PhantomData, //
};

/// What became of a packet that was to be transmitted.
#[must_use]
pub enum Xmit {
    /// The driver has taken it: it is queued to the card, or was dropped.
    Taken,
    /// There is no room. The stack keeps the packet and tries again when the queue is woken.
    ///
    /// The queue must have been stopped, which [`TxQueue::stop_if_low`] does: a queue that accepts
    /// packets only to return them makes the stack spin. If it is not stopped, the packet is
    /// dropped and counted.
    Busy(SkBuff),
}

/// The transmit side of a queue, for [`Driver::start_xmit`].
///
/// Accounts for what goes into the ring, and stops the queue when the ring has run full. The other
/// side is [`Completions`]. The barriers that keep a queue from staying stopped for ever are in
/// here.
///
/// [`Driver::start_xmit`]: super::device::Driver::start_xmit
///
/// # Invariants
///
/// `raw` is a transmit queue of a device that outlives `'a`, and is locked by this CPU.
pub struct TxQueue<'a> {
    raw: *mut bindings::netdev_queue,
    index: u16,
    /// The driver has stopped the queue since this was created.
    has_stopped: Cell<bool>,
    /// What to do for the doorbell to wait, if it may.
    wait: Option<&'a Waiting>,
    _not_send: NotThreadSafe,
    _device: PhantomData<&'a Device>,
}

impl<'a> TxQueue<'a> {
    /// Creates a reference to the transmit side of a queue.
    ///
    /// # Safety
    ///
    /// `raw` must be the transmit queue `index` of a device, and both must outlive `'a`, for which
    /// the caller holds the lock of the queue. If there is something in `wait`, it must belong to
    /// that queue, and [`may_wait`](super::doorbell::may_wait) must have allowed it.
    #[inline]
    pub(super) unsafe fn from_raw(
        raw: *mut bindings::netdev_queue,
        index: u16,
        wait: Option<&'a Waiting>,
    ) -> Self {
        // INVARIANT: The safety requirements are the type invariants.
        Self {
            raw,
            index,
            has_stopped: Cell::new(false),
            wait,
            _not_send: NotThreadSafe,
            _device: PhantomData,
        }
    }

    /// The number of the queue.
    #[inline]
    pub fn index(&self) -> u16 {
        self.index
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
    /// This must happen before the card, and thus the completion side, can know of them. `more`
    /// says that another packet follows at once. Returns whether the card has to be told now: if
    /// not, there will be another packet, or a call of [`Driver::kick`].
    ///
    /// [`Driver::kick`]: super::device::Driver::kick
    #[inline]
    #[must_use]
    pub fn sent(&self, bytes: u32, more: bool) -> bool {
        // More than this, which no packet has, stops the machine.
        let bytes = bytes.min(u32::MAX / 16);

        // SAFETY: By the type invariants, the queue is valid and locked.
        if unsafe { !bindings::__netdev_tx_sent_queue(self.raw, bytes, more) } {
            return false;
        }
        let Some(waiting) = self.wait else {
            return true;
        };

        // A queue that has been stopped, here or by its limit, needs completions to go on.
        //
        // SAFETY: By the type invariants, the queue is valid.
        if unsafe { bindings::netif_xmit_stopped(self.raw) } {
            waiting.end();
            return true;
        }
        !waiting.wait()
    }

    /// Stops the queue if fewer than `stop` descriptors are free. Returns whether it is stopped.
    ///
    /// `free` counts free descriptors and must give a current value each time. It is asked again
    /// after the queue has been stopped: if the other side has made room for `restart` descriptors
    /// in the meantime, the queue goes on.
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
            // From here on the other side may wake it at any time.
            self.has_stopped.set(true);
            return true;
        }

        // Who does not need the lock to see that the queue was stopped, may wait to be told by now.
        //
        // SAFETY: By the type invariants, the queue is valid.
        unsafe { bindings::netif_tx_wake_queue(self.raw) };
        false
    }
}

/// A queue that should be woken, by somebody who has more to do for that than completions know.
///
/// Only poll functions of one queue vector use it, and who has disabled them.
pub(super) struct WakeUp(Atomic<i32>);

impl WakeUp {
    /// There is nothing to wake.
    pub(super) const fn new() -> Self {
        Self(Atomic::new(0))
    }

    /// Asks for it.
    fn ask(&self) {
        self.0.store(1, Relaxed);
    }

    /// Whether somebody has asked for it, and not been heard.
    #[inline]
    pub(super) fn is_asked(&self) -> bool {
        self.0.load(Relaxed) != 0
    }

    /// Whoever has asked has been heard.
    pub(super) fn clear(&self) {
        self.0.store(0, Relaxed);
    }
}

/// The completion side of a transmit queue, for the poll function, see
/// [`Poll::tx_queue`](super::napi::Poll::tx_queue).
///
/// Accounts for what the card has sent, and wakes the queue when there is room again.
///
/// # Invariants
///
/// `raw` is a transmit queue of a device that outlives `'a`, during which nobody else completes
/// packets of this queue.
pub struct Completions<'a> {
    raw: *mut bindings::netdev_queue,
    /// Whom to ask to wake the queue, unless it is to be done at once.
    wake_up: Option<&'a WakeUp>,
    _not_send: NotThreadSafe,
    _device: PhantomData<&'a Device>,
}

impl<'a> Completions<'a> {
    /// Creates a reference to the completion side of a queue.
    ///
    /// # Safety
    ///
    /// `raw` must be a transmit queue of a device that outlives `'a`. The caller must be in the
    /// poll function of the vector that this queue belongs to.
    #[inline]
    pub(super) unsafe fn from_raw(
        raw: *mut bindings::netdev_queue,
        wake_up: Option<&'a WakeUp>,
    ) -> Self {
        // INVARIANT: The safety requirements are the type invariants.
        Self {
            raw,
            wake_up,
            _not_send: NotThreadSafe,
            _device: PhantomData,
        }
    }

    /// Accounts for what the card has sent, and wakes the queue if there is room again.
    ///
    /// To be called once per batch, after its descriptors have been given free. `free` counts free
    /// descriptors; the queue is woken when there are at least `restart`.
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

        // Includes a full barrier: whoever stops the queue after this sees the new consumer index.
        // Pairs with the barrier in `TxQueue::stop_and_recheck()`.
        //
        // CAST: A batch has no more packets than the ring has descriptors. The helper cuts off what
        // has never been queued.
        //
        // SAFETY: By the type invariants, the queue is valid and nobody else completes packets.
        unsafe { bindings::netdev_txq_completed(self.raw, packets as c_uint, bytes as c_uint) };

        // SAFETY: By the type invariants, the queue is valid.
        if unsafe { bindings::netif_tx_queue_stopped(self.raw) } && free() >= restart {
            match self.wake_up {
                Some(wake_up) => wake_up.ask(),
                // SAFETY: As above.
                None => unsafe { bindings::netif_tx_wake_queue(self.raw) },
            }
        }
    }
}
