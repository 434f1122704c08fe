// SPDX-License-Identifier: GPL-2.0

//! A queue of a device that combines, and what can be done while it is locked.

use super::{
    super::{
        registration::{
            Inner,
            Slot, //
        },
        Driver, //
    },
    Combining, //
};

use crate::{
    bindings,
    net::{
        combiner::Turn,
        doorbell,
        queue::{
            TxQueue,
            Xmit, //
        },
        skbuff::{
            SkBuff,
            UniqueSkBuff, //
        }, //
    },
    prelude::*,
    sync::atomic::Relaxed,
    types::NotThreadSafe, //
};

use core::cell::Cell;

/// After that many packets the work is handed over to whoever comes next.
const BOUND: usize = 256;

/// After that many packets the card is told, so that it need not idle during a long turn.
const TELL: u32 = 32;

/// A transmit queue of a device that combines.
///
/// # Invariants
///
/// `raw` is the queue `index` of the device of `inner`, to which `slot` and `combining` belong.
pub(in crate::net::device) struct Queue<'a, T: Driver> {
    inner: &'a Inner<T>,
    slot: &'a Slot<T>,
    pub(in crate::net::device) combining: &'a Combining,
    raw: *mut bindings::netdev_queue,
    index: u16,
}

impl<'a, T: Driver> Queue<'a, T> {
    /// The queue of that number, if there is one.
    #[inline]
    pub(in crate::net::device) fn new(inner: &'a Inner<T>, index: u16) -> Option<Self> {
        let combining = inner.combining(index)?;
        let slot = inner.slot(index)?;

        // SAFETY: There is a slot, so the device has this queue.
        let raw =
            unsafe { bindings::netdev_get_tx_queue(inner.dev().as_raw(), c_uint::from(index)) };
        // INVARIANT: All of them are of this device and number.
        Some(Self {
            inner,
            slot,
            combining,
            raw,
            index,
        })
    }

    /// Whether the driver, or who takes the device down, has stopped the queue.
    #[inline]
    pub(in crate::net::device) fn is_stopped(&self) -> bool {
        // SAFETY: By the type invariants, the queue is valid.
        unsafe { bindings::netif_tx_queue_stopped(self.raw) }
    }

    /// Whether this CPU holds the lock. Bottom halves must be disabled.
    #[inline]
    pub(in crate::net::device) fn is_owned(&self) -> bool {
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
    pub(in crate::net::device) unsafe fn lock(self) -> Locked<'a, T> {
        // SAFETY: By the type invariants, the queue is valid, and by the safety requirements.
        unsafe { bindings::__netif_tx_lock(self.raw) };
        // INVARIANT: It is locked now.
        Locked {
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
    pub(super) unsafe fn try_lock(self) -> Option<Locked<'a, T>> {
        // Without SMP anybody gets a spinlock at any time.
        //
        // SAFETY: By the type invariants, the queue is valid, and by the safety requirements.
        if self.is_owned() || unsafe { !bindings::__netif_tx_trylock(self.raw) } {
            return None;
        }
        // INVARIANT: It is locked now.
        Some(Locked {
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
/// This CPU holds the lock of `queue`, and bottom halves are disabled.
pub(in crate::net::device) struct Locked<'a, T: Driver> {
    queue: Queue<'a, T>,
    has_sent: Cell<bool>,
    _not_send: NotThreadSafe,
}

impl<T: Driver> Drop for Locked<'_, T> {
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

/// As [`Driver::start_xmit`], which the compiler shall make part of the one function in which all
/// packets go through if nobody combines.
#[inline(never)]
fn start_xmit_apart<T: Driver>(
    data: Pin<&T::Data<'static>>,
    tx: &mut T::Tx<'static>,
    queue: &TxQueue<'_>,
    skb: SkBuff,
    more: bool,
) -> Xmit {
    T::start_xmit(data, tx, queue, skb, more)
}

impl<T: Driver> Locked<'_, T> {
    /// Whether the device is up, as far as this queue is concerned.
    pub(super) fn has_producer(&self) -> bool {
        // SAFETY: By the type invariants, the queue is locked.
        unsafe { self.queue.slot.producer() }.is_some()
    }

    /// Gives a packet to the driver, or drops it and counts it if the device is down.
    ///
    /// Returns it if the driver has no room for it, and has stopped the queue.
    pub(super) fn send(&self, skb: SkBuff, more: bool) -> Result<(), SkBuff> {
        let Queue {
            inner,
            slot,
            combining,
            raw,
            index,
        } = self.queue;

        // SAFETY: By the type invariants, the queue is locked. The reference does not outlive this
        // function, which does not call itself.
        let Some(tx) = (unsafe { slot.producer() }) else {
            combining.lose(inner, skb);
            return Ok(());
        };
        let untold = combining.rest.untold.get() + 1;
        let more = more && untold < TELL;
        combining.rest.untold.set(if more { untold } else { 0 });

        // SAFETY: By the type invariants, bottom halves are disabled.
        let wait = (T::HAS_KICK && unsafe { doorbell::may_wait() }).then(|| slot.waiting());
        // SAFETY: By the type invariants, the queue is valid and locked. `wait` is about it.
        let queue = unsafe { TxQueue::from_raw(raw, index, wait) };
        let original = skb.as_raw();

        self.has_sent.set(true);
        match start_xmit_apart::<T>(inner.data(), tx, &queue, skb, more) {
            Xmit::Taken => Ok(()),
            Xmit::Busy(skb) if queue.is_stopped() && skb.as_raw() == original => Err(skb),
            Xmit::Busy(skb) => {
                // What went before it may rely on it.
                if T::HAS_KICK {
                    T::kick(inner.data(), tx);
                }
                combining.lose(inner, skb);
                Ok(())
            }
        }
    }

    /// Holds a packet as the last one.
    #[cold]
    fn hold(&self, skb: UniqueSkBuff) {
        let combining = self.queue.combining;

        // SAFETY: By the type invariants, the queue is locked. The reference does not outlive this
        // statement.
        unsafe { combining.held() }.new.push(skb);
        self.count_held();
        combining.rest.ever_held.add(1);
    }

    /// Holds a packet as the first one.
    #[cold]
    fn hold_first(&self, skb: SkBuff) {
        match UniqueSkBuff::new(skb) {
            Ok(skb) => {
                // SAFETY: As above.
                unsafe { self.queue.combining.held() }.old.push(skb);
                self.count_held();
            }
            // The driver has given away a reference.
            Err(skb) => self.queue.combining.lose(self.queue.inner, skb),
        }
    }

    fn count_held(&self) {
        let holding = &self.queue.combining.rest.holding;

        // INVARIANT: There is one more.
        holding.store(holding.load(Relaxed) + 1, Relaxed);
    }

    /// Whether a packet has to wait. If the device is down, there is nothing to wait for.
    #[inline]
    pub(super) fn is_blocked(&self) -> bool {
        (self.queue.is_stopped() || self.queue.combining.holds_any()) && self.has_producer()
    }

    /// Sends a packet, or holds it if it is not its turn, or has no room.
    #[inline]
    fn put(&self, skb: UniqueSkBuff, more: bool) {
        if self.is_blocked() {
            self.hold(skb);
        } else if let Err(skb) = self.send(skb.into(), more) {
            self.queue.combining.rest.ever_held.add(1);
            self.hold_first(skb);
        }
    }

    /// Sends what is held, as long as the queue is not stopped.
    fn flush(&self) {
        while !self.queue.is_stopped() {
            // SAFETY: By the type invariants, the queue is locked.
            let Some(skb) = (unsafe { self.queue.combining.release() }) else {
                return;
            };
            if let Err(skb) = self.send(skb.into(), self.queue.combining.holds_any()) {
                self.hold_first(skb);
            }
        }
    }

    /// Wakes the queue.
    pub(super) fn wake(&self) {
        // SAFETY: By the type invariants, the queue is valid.
        unsafe { bindings::netif_tx_wake_queue(self.queue.raw) };
    }

    /// Sends what is held, and wakes the queue if all of it had room.
    pub(super) fn resume(&self) {
        let raw = self.queue.raw;

        // Others still keep away, as packets are held.
        //
        // SAFETY: By the type invariants, the queue is valid.
        unsafe { bindings::netif_tx_start_queue(raw) };
        self.flush();
        // Those who wait for it to be started have not been told. If it was stopped again, they
        // are not.
        //
        // SAFETY: As above.
        unsafe { bindings::netif_schedule_queue(raw) };
    }

    /// Sends the packet with which a turn begins, and those that others leave meanwhile.
    ///
    /// `promised` says that another packet from this CPU follows at once.
    pub(in crate::net::device) fn work(&self, turn: Turn<'_, UniqueSkBuff>, promised: bool) {
        let mut turn = Some(turn);
        let mut last = None;
        let mut done = 0;

        // Nothing is, unless somebody else has woken the queue.
        if self.queue.combining.holds_any() {
            self.flush();
        }
        while let Some(mut ours) = turn.take() {
            let batch = if done < BOUND && !self.queue.is_stopped() {
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

        let counters = &self.queue.combining.rest;
        counters.turns.add(1);
        counters.combined.add(done.saturating_sub(1));
    }
}
