// SPDX-License-Identifier: GPL-2.0

//! A transmit queue on the combining path, and the operations on it while it is locked.

use super::{
    super::{
        registration::Inner,
        tx_slot::TxSlot, //
    },
    Combine,
    Combining,
    QueueState,
    DOORBELL_LIMIT,
    TURN_LIMIT, //
};

use crate::{
    bindings,
    net::{
        combiner::Turn,
        queue::{
            TxQueue,
            Xmit, //
        },
        skbuff::{
            SkBuff,
            TxSkBuff,
            UnsharedSkBuff, //
        }, //
    },
    prelude::*,
    sync::atomic::Relaxed,
    types::NotThreadSafe, //
};

use core::cell::Cell;

/// A transmit queue on the combining path.
///
/// # Invariants
///
/// `raw` is the queue `index` of the device of `inner`, to which `slot` and `state` belong.
pub(super) struct CombiningQueue<'a, T: Combine> {
    inner: &'a Inner<T>,
    slot: &'a TxSlot<T>,
    pub(super) state: &'a QueueState,
    raw: *mut bindings::netdev_queue,
    index: u16,
}

impl<'a, T: Combine> CombiningQueue<'a, T> {
    /// The queue of that number, if there is one. `path` must be that of the device of `inner`.
    #[inline]
    pub(super) fn new(path: &'a Combining, inner: &'a Inner<T>, index: u16) -> Option<Self> {
        let state = path.queues.get(usize::from(index))?;
        let slot = inner.slot(index)?;

        // SAFETY: There is a slot, so the device has this queue.
        let raw =
            unsafe { bindings::netdev_get_tx_queue(inner.dev().as_raw(), c_uint::from(index)) };
        // INVARIANT: All of them are of this device and number.
        Some(Self {
            inner,
            slot,
            state,
            raw,
            index,
        })
    }

    /// Whether the driver has stopped the queue, or the device goes down.
    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        // SAFETY: By the type invariants, the queue is valid.
        unsafe { bindings::netif_tx_queue_stopped(self.raw) }
    }

    /// Whether this CPU holds the lock. Bottom halves must be disabled.
    #[inline]
    pub(super) fn is_owned(&self) -> bool {
        // SAFETY: By the type invariants, the queue is valid.
        unsafe { bindings::netif_tx_owned(self.raw) }
    }

    /// Waits for the lock.
    ///
    /// # Safety
    ///
    /// Bottom halves must be disabled until the result is dropped, interrupts must not be. This CPU
    /// must not hold the lock.
    #[inline]
    pub(super) unsafe fn lock(self) -> LockedQueue<'a, T> {
        // SAFETY: By the type invariants, the queue is valid, and by the safety requirements.
        unsafe { bindings::__netif_tx_lock(self.raw) };
        // INVARIANT: It is locked now.
        LockedQueue {
            queue: self,
            has_sent: Cell::new(false),
            _not_send: NotThreadSafe,
        }
    }

    /// Takes the lock if it is free.
    ///
    /// # Safety
    ///
    /// Bottom halves must be disabled until the result is dropped.
    pub(super) unsafe fn try_lock(self) -> Option<LockedQueue<'a, T>> {
        // Without SMP, to try a spinlock succeeds even on the CPU that holds it.
        //
        // SAFETY: By the type invariants, the queue is valid, and by the safety requirements.
        if self.is_owned() || unsafe { !bindings::__netif_tx_trylock(self.raw) } {
            return None;
        }
        // INVARIANT: It is locked now.
        Some(LockedQueue {
            queue: self,
            has_sent: Cell::new(false),
            _not_send: NotThreadSafe,
        })
    }
}

/// A queue that is locked until this is dropped.
///
/// # Invariants
///
/// This CPU holds the lock of `queue`, and bottom halves are disabled. It did not hold the lock
/// before.
pub(super) struct LockedQueue<'a, T: Combine> {
    queue: CombiningQueue<'a, T>,
    has_sent: Cell<bool>,
    _not_send: NotThreadSafe,
}

impl<T: Combine> Drop for LockedQueue<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let raw = self.queue.raw;

        // SAFETY: By the type invariants, the queue is valid, and locked by this CPU.
        unsafe {
            // The core does this if it holds the lock.
            if self.has_sent.get() {
                bindings::txq_trans_cond_update(raw);
            }
            bindings::__netif_tx_unlock(raw);
        }
    }
}

/// [`Driver::start_xmit`](crate::net::device::Driver::start_xmit), out of line: the one copy that
/// is inlined is that of the default path.
#[inline(never)]
fn start_xmit_apart<'call, T: Combine>(
    data: Pin<&T::Data<'static>>,
    tx: &mut T::Tx<'static>,
    queue: &TxQueue<'_, T::Doorbell>,
    skb: TxSkBuff<'call>,
    more: bool,
) -> Xmit<'call> {
    T::start_xmit(data, tx, queue, skb, more)
}

impl<T: Combine> LockedQueue<'_, T> {
    /// Whether the device is up, as far as this queue is concerned.
    pub(super) fn has_producer(&self) -> bool {
        // SAFETY: By the type invariants, the queue is locked, and was not locked by this CPU
        // before.
        unsafe { self.queue.slot.producer() }.is_some()
    }

    /// Gives a packet to the driver, or drops it and counts it if the device is down.
    ///
    /// Returns it if the driver has no room for it, and has stopped the queue.
    pub(super) fn send(&self, skb: SkBuff, more: bool) -> Result<(), SkBuff> {
        let CombiningQueue {
            inner,
            slot,
            state,
            raw,
            index,
        } = self.queue;

        // SAFETY: By the type invariants, the queue is locked, and was not locked by this CPU
        // before. The reference does not outlive this function, which does not call itself.
        let Some(tx) = (unsafe { slot.producer() }) else {
            state.drop_accepted(inner, skb);
            return Ok(());
        };
        let packets = state.rest.without_doorbell.get() + 1;
        let more = more && packets < DOORBELL_LIMIT;
        state
            .rest
            .without_doorbell
            .set(if more { packets } else { 0 });

        // SAFETY: By the type invariants, the queue is locked, with bottom halves disabled, and
        // `slot` belongs to it.
        let queue = unsafe { slot.tx_queue(raw, index) };

        self.has_sent.set(true);
        match start_xmit_apart::<T>(inner.data(), tx, &queue, TxSkBuff::new(skb), more) {
            Xmit::Taken => Ok(()),
            Xmit::Busy(skb) if queue.is_stopped() => Err(skb.into()),
            Xmit::Busy(skb) => {
                // Earlier packets may rely on it for the doorbell.
                T::kick(inner.data(), tx);
                state.drop_accepted(inner, skb.into());
                Ok(())
            }
        }
    }

    /// Holds a packet, behind the others.
    #[cold]
    fn hold(&self, skb: UnsharedSkBuff) {
        let state = self.queue.state;

        // SAFETY: By the type invariants, the queue is locked. The reference does not outlive this
        // statement.
        unsafe { state.held() }.new.push(skb);
        self.count_held();
        state.rest.ever_held.add(1);
    }

    /// Holds a packet, before the others.
    #[cold]
    fn hold_first(&self, skb: SkBuff) {
        match UnsharedSkBuff::new(skb) {
            Ok(skb) => {
                // SAFETY: As above.
                unsafe { self.queue.state.held() }.old.push(skb);
                self.count_held();
            }
            // The driver has kept a reference.
            Err(skb) => self.queue.state.drop_accepted(self.queue.inner, skb),
        }
    }

    fn count_held(&self) {
        let holding = &self.queue.state.rest.holding;

        // INVARIANT: There is one more.
        holding.store(holding.load(Relaxed) + 1, Relaxed);
    }

    /// Whether packets have to wait. If the device is down, there is nothing to wait for.
    #[inline]
    pub(super) fn is_blocked(&self) -> bool {
        (self.queue.is_stopped() || self.queue.state.holds_any()) && self.has_producer()
    }

    /// Sends a packet, or holds it if others are held, or if there is no room.
    #[inline]
    fn put(&self, skb: UnsharedSkBuff, more: bool) {
        if self.is_blocked() {
            self.hold(skb);
        } else if let Err(skb) = self.send(skb.into(), more) {
            self.queue.state.rest.ever_held.add(1);
            self.hold_first(skb);
        }
    }

    /// Sends the packets that are held, as long as the queue is not stopped.
    fn flush(&self) {
        while !self.queue.is_stopped() {
            // SAFETY: By the type invariants, the queue is locked.
            let Some(skb) = (unsafe { self.queue.state.release() }) else {
                return;
            };
            if let Err(skb) = self.send(skb.into(), self.queue.state.holds_any()) {
                self.hold_first(skb);
            }
        }
    }

    /// Wakes the queue.
    pub(super) fn wake(&self) {
        // SAFETY: By the type invariants, the queue is valid.
        unsafe { bindings::netif_tx_wake_queue(self.queue.raw) };
    }

    /// Sends the packets that are held, and wakes the queue if there was room for all.
    pub(super) fn resume(&self) {
        let raw = self.queue.raw;

        // Senders still get `NETDEV_TX_BUSY`, as packets are held.
        //
        // SAFETY: By the type invariants, the queue is valid.
        unsafe { bindings::netif_tx_start_queue(raw) };
        self.flush();
        // Starting the queue has not scheduled the qdisc that waits for it. This does, unless the
        // queue was stopped again.
        //
        // SAFETY: As above.
        unsafe { bindings::netif_schedule_queue(raw) };
    }

    /// Sends the packet with which a turn begins, and those that other CPUs add meanwhile.
    ///
    /// `promised` says that another packet from this CPU follows at once.
    pub(super) fn work(&self, turn: Turn<'_, UnsharedSkBuff>, promised: bool) {
        let mut turn = Some(turn);
        let mut last = None;
        let mut done = 0;

        // None are, unless the queue was woken by other code than ours.
        if self.queue.state.holds_any() {
            self.flush();
        }
        while let Some(mut ours) = turn.take() {
            let batch = if done < TURN_LIMIT && !self.queue.is_stopped() {
                let Some(batch) = ours.take() else { break };
                turn = Some(ours);
                batch
            } else {
                ours.take_last()
            };

            done += batch.len();
            for skb in batch {
                // Until the next one is known, it might be the last.
                if let Some(skb) = last.replace(skb) {
                    self.put(skb, true);
                }
            }
        }
        if let Some(skb) = last {
            self.put(skb, promised);
        }

        let counters = &self.queue.state.rest;
        counters.turns.add(1);
        counters.combined.add(done.saturating_sub(1));
    }
}
