// SPDX-License-Identifier: GPL-2.0

//! CPUs that transmit to the same queue at the same time, and combine.
//!
//! As a rule the core holds the lock of a queue around `ndo_start_xmit()`, and CPUs that transmit
//! to it at the same time wait for each other. If a device [combines](super::Info::combining), the
//! core takes no lock. CPUs leave their packets on a [`Combiner`]; the one that finds nobody at
//! work takes the lock of the queue, and puts the packets of all of them into the ring, with a
//! doorbell at the end. The others go on without waiting.
//!
//! # What finds no room
//!
//! When the driver stops the queue, the rest of what was combined cannot be given back: those whom
//! it came from have been told that it was taken. It is held, and the queue stays stopped. When
//! completions have made room, they do not wake the queue, they ask for that, and the poll function
//! does it at its end, [`wake_up`]: what is held goes into the ring first, with the lock held, and
//! then the queue is woken if there is still room. So nothing is held while the queue is not
//! stopped, but for the time in which that is changed under the lock.
//!
//! Who finds the queue stopped, or something held, is told to come again later. Who was late to
//! see it has its packet held, too. These are as many as there were on the list, at most
//! [`LIST`], and one of each CPU.
//!
//! # Order
//!
//! Packets of one sender leave in the order in which they came. The list keeps it, the last batch
//! of a turn is sent under the lock that the next one waits for, and what is held goes first. When
//! [`Driver::combines`] changes to no, who finds somebody at work combines nevertheless, since the
//! list may have a packet of the same sender.
//!
//! # Doorbells
//!
//! The last packet of a turn is the one that rings, or each 32nd. If the core promises that
//! another packet follows from the same CPU, that one will. It finds somebody at work who rings or
//! gives such a promise in turn, or becomes the one. A queue with others beside it cannot rely on
//! that: the next packet may be for another one.
//!
//! # Netpoll
//!
//! It comes with interrupts disabled, and may have interrupted whoever holds the lock on the same
//! CPU. It is never the one who works for others: it gets the lock at once, or is told to come
//! again.

use super::{
    ethtool::Statistics,
    ops,
    registration::Inner,
    Driver, //
};

use crate::{
    bindings,
    net::{
        combiner::{
            Combiner,
            Pushed, //
        },
        queue::WakeUp,
        skbuff::{
            SkBuff,
            UniqueSkBuff, //
        }, //
    },
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        llist::Chain, //
    }, //
};

use core::{
    cell::{
        Cell,
        UnsafeCell, //
    },
    mem,
    ptr::NonNull, //
};

mod queue;

use queue::Locked;
pub(super) use queue::Queue;

/// The most packets on the list behind the one that is being worked on.
pub(super) const LIST: usize = 256;

/// A counter that is written under the lock of the queue.
struct Counter(Atomic<u64>);

impl Counter {
    const fn new() -> Self {
        Self(Atomic::new(0))
    }

    #[inline]
    fn add(&self, count: usize) {
        // CAST: Packets in memory.
        self.0
            .store(self.0.load(Relaxed).wrapping_add(count as u64), Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Packets in the order in which they came.
struct Fifo {
    /// The oldest ones, the oldest first.
    old: Chain<UniqueSkBuff>,
    /// The others, the newest first.
    new: Chain<UniqueSkBuff>,
}

impl Fifo {
    fn pop(&mut self) -> Option<UniqueSkBuff> {
        if self.old.is_empty() {
            self.old = mem::take(&mut self.new).reverse();
        }
        self.old.pop()
    }
}

/// What those who transmit to a queue need to combine.
///
/// # Invariants
///
/// `held` and `untold` are only accessed with the lock of the queue held, as are the counters for
/// writing, with the exception of `refused`. `holding` is the number of packets in `held`.
#[repr(align(64))]
pub(super) struct Combining {
    pub(super) list: Combiner<UniqueSkBuff>,
    refused: Atomic<u64>,
    /// What everybody reads is not next to what everybody writes.
    rest: Rest,
}

#[repr(align(64))]
struct Rest {
    holding: Atomic<usize>,
    wake_up: WakeUp,
    held: UnsafeCell<Fifo>,
    /// Packets of which the card has not been told, because others were to follow.
    untold: Cell<u32>,
    turns: Counter,
    combined: Counter,
    ever_held: Counter,
    dropped: Counter,
}

impl Combining {
    /// Nothing to send.
    pub(super) const fn new() -> Self {
        // INVARIANT: There are no packets.
        Self {
            list: Combiner::new(),
            refused: Atomic::new(0),
            rest: Rest {
                holding: Atomic::new(0),
                wake_up: WakeUp::new(),
                held: UnsafeCell::new(Fifo {
                    old: Chain::new(),
                    new: Chain::new(),
                }),
                untold: Cell::new(0),
                turns: Counter::new(),
                combined: Counter::new(),
                ever_held: Counter::new(),
                dropped: Counter::new(),
            },
        }
    }

    /// Whom completions ask to wake the queue.
    #[inline]
    pub(super) fn wake_up(&self) -> &WakeUp {
        &self.rest.wake_up
    }

    /// Whether packets are held. Without the lock, this may have changed already.
    #[inline]
    fn holds_any(&self) -> bool {
        self.rest.holding.load(Relaxed) != 0
    }

    /// The packets that are held.
    ///
    /// # Safety
    ///
    /// The lock of the queue must be held for as long as the result is used, of which there must
    /// be one at a time.
    #[expect(clippy::mut_from_ref)]
    unsafe fn held(&self) -> &mut Fifo {
        // SAFETY: By the safety requirements and the type invariants, nobody else accesses it.
        unsafe { &mut *self.rest.held.get() }
    }

    /// Takes a packet out of those that are held.
    ///
    /// # Safety
    ///
    /// The lock of the queue must be held.
    unsafe fn release(&self) -> Option<UniqueSkBuff> {
        // SAFETY: The lock is held. The reference does not outlive this statement.
        let skb = unsafe { self.held() }.pop()?;

        // INVARIANT: There is one less.
        let holding = self.rest.holding.load(Relaxed);
        self.rest.holding.store(holding.wrapping_sub(1), Relaxed);
        Some(skb)
    }

    /// Drops a packet that was taken, and cannot be sent. The lock of the queue must be held.
    #[cold]
    fn lose<T: Driver>(&self, inner: &Inner<T>, skb: SkBuff) {
        self.rest.dropped.add(1);
        ops::lost(inner, skb);
    }

    /// Drops what is held, since the producer has changed.
    ///
    /// # Safety
    ///
    /// The lock of the queue must be held.
    pub(super) unsafe fn abandon<T: Driver>(&self, inner: &Inner<T>) {
        // SAFETY: The lock is held.
        while let Some(skb) = unsafe { self.release() } {
            self.lose(inner, skb.into());
        }
        self.rest.untold.set(0);
        self.rest.wake_up.clear();
    }
}

impl<T: Driver> Inner<T> {
    /// Adds what combining has to tell to the statistics of the driver.
    pub(super) fn combining_statistics(&self, statistics: &mut Statistics<'_>) {
        if self.combining(0).is_none() {
            return;
        }
        let queues = || (0..=u16::MAX).map_while(|index| self.combining(index));
        let mut add = |name, get: fn(&Combining) -> u64| {
            statistics.add(fmt!("{}", name), queues().map(get).sum());
        };

        add("tx_combine_turns", |queue| queue.rest.turns.get());
        add("tx_combined", |queue| queue.rest.combined.get());
        add("tx_combine_held", |queue| queue.rest.ever_held.get());
        add("tx_combine_dropped", |queue| queue.rest.dropped.get());
        add("tx_combine_refused", |queue| queue.refused.load(Relaxed));
    }
}

/// Gives a packet back to the core, which will try again.
#[cold]
fn busy(skb: SkBuff) -> bindings::netdev_tx_t {
    let _ = skb.into_raw();
    bindings::netdev_tx_NETDEV_TX_BUSY
}

/// Sends a packet as if there were no combining.
fn alone<T: Driver>(queue: &Locked<'_, T>, skb: SkBuff, more: bool) -> bindings::netdev_tx_t {
    if queue.is_blocked() {
        return busy(skb);
    }
    match queue.send(skb, more) {
        Ok(()) => bindings::netdev_tx_NETDEV_TX_OK,
        Err(skb) => busy(skb),
    }
}

/// `ndo_start_xmit` of a device that combines.
///
/// To return `NETDEV_TX_BUSY` although the queue is not stopped, as this does when the list is full
/// or the lock is taken, makes the core queue the packet again, and try again soon.
///
/// # Safety
///
/// To be called by the core only, for a device of driver `T` between the beginning of its
/// registration and the end of its unregistration, with bottom halves disabled. `skb` is ours.
pub(super) unsafe extern "C" fn start_xmit<T: Driver>(
    skb: *mut bindings::sk_buff,
    dev: *mut bindings::net_device,
) -> bindings::netdev_tx_t {
    // SAFETY: The device is registered.
    let inner = unsafe { ops::inner::<T>(dev) };
    // SAFETY: The core gives us a valid packet, and with it its reference.
    let skb = unsafe { SkBuff::from_raw(NonNull::new_unchecked(skb)) };

    let Some(queue) = Queue::new(inner, skb.queue_mapping()) else {
        return ops::lost(inner, skb);
    };
    if queue.is_owned() {
        // Called from within the driver, or by who has interrupted it.
        return busy(skb);
    }

    // SAFETY: We are called for a packet that is being transmitted.
    let more = inner.queues() == 1 && unsafe { bindings::netdev_xmit_more() };
    // SAFETY: There are no requirements.
    if unsafe { bindings::irqs_disabled() } {
        // SAFETY: Bottom halves are disabled.
        return match unsafe { queue.try_lock() } {
            Some(locked) => alone(&locked, skb, more),
            None => busy(skb),
        };
    }
    // What the same sender has put on the list before, is sent before the list is idle, or with the
    // lock held.
    if !T::combines(inner.data()) && !queue.combining.list.is_busy() {
        // SAFETY: Bottom halves are disabled and interrupts are not. We do not hold the lock.
        return alone(&unsafe { queue.lock() }, skb, more);
    }

    if queue.is_stopped() || queue.combining.holds_any() {
        return busy(skb);
    }
    // The core does not transmit a packet that others have, since we have told it not to.
    let skb = match UniqueSkBuff::new(skb) {
        Ok(skb) => skb,
        Err(skb) => return ops::lost(inner, skb),
    };
    let combining = queue.combining;
    match combining.list.push(skb, LIST) {
        Pushed::Behind => bindings::netdev_tx_NETDEV_TX_OK,
        Pushed::Refused(skb) => {
            combining.refused.fetch_add(1, Relaxed);
            busy(skb.into())
        }
        Pushed::First(turn) => {
            // SAFETY: As above.
            unsafe { queue.lock() }.work(turn, more);
            bindings::netdev_tx_NETDEV_TX_OK
        }
    }
}

/// Wakes a queue if completions have asked for that, and what is held leaves room.
///
/// Returns `false` if that could not be done, but should be.
///
/// # Safety
///
/// Bottom halves must be disabled. The lock must not be held by this CPU, unless `netpoll`.
#[inline]
pub(super) unsafe fn wake_up<T: Driver>(inner: &Inner<T>, index: u16, netpoll: bool) -> bool {
    match inner.combining(index) {
        // SAFETY: By the safety requirements.
        Some(combining) if combining.wake_up().is_asked() => unsafe {
            wake_up_now(inner, index, netpoll)
        },
        _ => true,
    }
}

/// # Safety
///
/// As for [`wake_up`].
#[cold]
unsafe fn wake_up_now<T: Driver>(inner: &Inner<T>, index: u16, netpoll: bool) -> bool {
    let Some(queue) = Queue::new(inner, index) else {
        return true;
    };
    let combining = queue.combining;
    let locked = if netpoll {
        // SAFETY: Bottom halves are disabled.
        match unsafe { queue.try_lock() } {
            Some(locked) => locked,
            None => return false,
        }
    } else {
        // SAFETY: By the safety requirements. Poll functions run with interrupts enabled.
        unsafe { queue.lock() }
    };

    combining.wake_up().clear();
    if !locked.has_producer() {
        // The device goes down.
        return true;
    }
    if !combining.holds_any() {
        locked.wake();
    } else {
        locked.resume();
    }
    true
}
