// SPDX-License-Identifier: GPL-2.0

//! A transmit path on which CPUs combine.
//!
//! By default the core holds the lock of a transmit queue around `ndo_start_xmit()`, and CPUs that
//! transmit to the queue at the same time spin on it. For a device that was registered with
//! [`Combining`], the core takes no lock. CPUs put their packets on a [`Combiner`]; the CPU that
//! finds it idle takes the lock of the queue, and puts the packets of all CPUs into the ring, with
//! one doorbell at the end. The others go on without waiting.
//!
//! # Full ring
//!
//! When the driver stops the queue in the middle of a batch, the rest of the batch cannot be
//! returned: its senders have been told that it was accepted. It is held, and the queue stays
//! stopped. When completions have made room, they do not wake the queue but leave that to the poll
//! function, which does it last: the packets that are held go into the ring, under the lock, and
//! then the queue is woken if there is still room. So packets are only held while the queue is
//! stopped, except while the lock is held.
//!
//! A sender that finds the queue stopped, or packets held, gets `NETDEV_TX_BUSY`. If it raced with
//! the stop, its packet is held too. At most `LIST_LIMIT` packets are held, the number that fits
//! on the list, and one from each CPU.
//!
//! # Order
//!
//! Packets of one sender leave in the order in which they were sent. The list keeps it, the last
//! batch of a turn is sent under the lock that the next combiner waits for, and held packets go
//! first. When [`Combine::combines`] changes to `false`, a sender that finds the combiner busy
//! still puts its packet on the list, since the list may hold an earlier packet of the same sender.
//!
//! # Doorbells
//!
//! The last packet of a turn rings the doorbell, and so does each `DOORBELL_LIMIT`th. If the core
//! promises another packet from the same CPU, that one rings it: either it finds a combiner at
//! work, which rings at the end of its turn or has a promise in turn, or it begins a turn itself.
//! With several queues there is no such reliance: the next packet may be for another queue.
//!
//! # Netpoll
//!
//! Netpoll runs with interrupts disabled, and may have interrupted the holder of the lock on the
//! same CPU. It never becomes the combiner: it gets the lock at once, or `NETDEV_TX_BUSY`.

use super::{
    ethtool::Statistics,
    registration::Inner,
    tx_path::{
        busy,
        drop_unsent,
        Callbacks,
        DoorbellOf,
        TxPath, //
    },
    Device,
    Driver, //
};

use crate::{
    bindings,
    net::{
        combiner::{
            Combiner,
            Pushed, //
        },
        napi::{
            Poll,
            Polled, //
        },
        queue::{
            WakeNow,
            WakeQueue, //
        },
        skbuff::{
            SkBuff,
            UnsharedSkBuff, //
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
    mem, //
};

mod queue;

#[cfg(CONFIG_KUNIT)]
mod tests;

use queue::{
    CombiningQueue,
    LockedQueue, //
};

/// The most packets on the list behind the one that is being worked on.
const LIST_LIMIT: usize = 256;

/// A combiner with that many packets done hands over to the next CPU that comes.
const TURN_LIMIT: usize = 256;

/// The most packets that share a doorbell, so that the card need not idle during a long turn.
const DOORBELL_LIMIT: u32 = 32;

/// A driver whose devices can be registered with [`Combining`].
pub trait Combine: Driver {
    /// Whether CPUs that transmit to the same queue combine now.
    ///
    /// May change at any time. While it is `false`, they wait for each other's turn at the lock of
    /// the queue. Bottom halves off, the queue is not locked.
    fn combines<'bound>(data: Pin<&Self::Data<'bound>>) -> bool;

    /// Rings the doorbell for packets that are in the ring.
    ///
    /// Called if [`Driver::start_xmit`] was told that another packet follows, and did not take that
    /// one. Bottom halves off, queue locked.
    fn kick<'bound>(data: Pin<&Self::Data<'bound>>, tx: &mut Self::Tx<'bound>);
}

/// The transmit path on which CPUs combine, as long as [`Combine::combines`] says so.
///
/// It costs each packet more than the lock of the queue does if there is no other CPU to combine
/// with.
pub struct Combining {
    /// One for each transmit queue.
    queues: KVec<QueueState>,
}

/// A counter that is written under the lock of the queue.
struct LockedCounter(Atomic<u64>);

impl LockedCounter {
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

/// Packets that wait for room in the ring, in the order in which they were sent.
struct HeldPackets {
    /// The oldest ones, the oldest first.
    old: Chain<UnsharedSkBuff>,
    /// The others, the newest first.
    new: Chain<UnsharedSkBuff>,
}

impl HeldPackets {
    fn pop(&mut self) -> Option<UnsharedSkBuff> {
        if self.old.is_empty() {
            self.old = mem::take(&mut self.new).reverse();
        }
        self.old.pop()
    }
}

/// The state of a transmit queue on this path.
///
/// # Invariants
///
/// `held` and `without_doorbell` are only accessed with the lock of the queue held, as are the
/// counters for writing, with the exception of `refused`. `holding` is the number of packets in
/// `held`.
#[repr(align(64))]
struct QueueState {
    list: Combiner<UnsharedSkBuff>,
    refused: Atomic<u64>,
    /// Apart from the list, to which all CPUs write.
    rest: Rest,
}

#[repr(align(64))]
struct Rest {
    holding: Atomic<usize>,
    /// Whether the queue is to be woken. Poll functions of its vector set and clear it.
    wakeup_due: Atomic<i32>,
    held: UnsafeCell<HeldPackets>,
    /// Packets in the ring since the doorbell was rung, because others were to follow.
    without_doorbell: Cell<u32>,
    turns: LockedCounter,
    combined: LockedCounter,
    ever_held: LockedCounter,
    dropped: LockedCounter,
}

// SAFETY: By the type invariants, the lock of the queue protects all fields that are not atomic.
// Packets are `Send`.
unsafe impl Sync for QueueState {}

impl QueueState {
    /// Nothing to send.
    const fn new() -> Self {
        // INVARIANT: There are no packets.
        Self {
            list: Combiner::new(),
            refused: Atomic::new(0),
            rest: Rest {
                holding: Atomic::new(0),
                wakeup_due: Atomic::new(0),
                held: UnsafeCell::new(HeldPackets {
                    old: Chain::new(),
                    new: Chain::new(),
                }),
                without_doorbell: Cell::new(0),
                turns: LockedCounter::new(),
                combined: LockedCounter::new(),
                ever_held: LockedCounter::new(),
                dropped: LockedCounter::new(),
            },
        }
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
    unsafe fn held(&self) -> &mut HeldPackets {
        // SAFETY: By the safety requirements and the type invariants, this is the only access.
        unsafe { &mut *self.rest.held.get() }
    }

    /// Takes the oldest of the packets that are held.
    ///
    /// # Safety
    ///
    /// The lock of the queue must be held.
    unsafe fn release(&self) -> Option<UnsharedSkBuff> {
        // SAFETY: The lock is held. The reference does not outlive this statement.
        let skb = unsafe { self.held() }.pop()?;

        // INVARIANT: There is one less.
        let holding = self.rest.holding.load(Relaxed);
        self.rest.holding.store(holding.wrapping_sub(1), Relaxed);
        Some(skb)
    }

    /// Drops a packet that was accepted and cannot be sent. The lock of the queue must be held.
    #[cold]
    fn drop_accepted<T: Driver>(&self, inner: &Inner<T>, skb: SkBuff) {
        self.rest.dropped.add(1);
        drop_unsent(inner, skb);
    }
}

impl WakeQueue for QueueState {
    unsafe fn wake(&self, _queue: *mut bindings::netdev_queue) {
        // The poll function that we are called from does it before it returns.
        self.rest.wakeup_due.store(1, Relaxed);
    }
}

/// Sends a packet as if there were no combining.
fn send_alone<T: Combine>(
    queue: &LockedQueue<'_, T>,
    skb: SkBuff,
    more: bool,
) -> bindings::netdev_tx_t {
    if queue.is_blocked() {
        return busy(skb);
    }
    match queue.send(skb, more) {
        Ok(()) => bindings::netdev_tx::NETDEV_TX_OK,
        Err(skb) => busy(skb),
    }
}

impl Combining {
    /// Wakes a queue, after the packets that are held went into its ring.
    ///
    /// Returns `false` if that could not be done now.
    ///
    /// # Safety
    ///
    /// To be called by the poll function of the vector of the queue. Its lock must not be held by
    /// this CPU, except for code that netpoll has interrupted.
    #[cold]
    unsafe fn wake_up<T: Combine>(&self, inner: &Inner<T>, cx: &Poll<'_>) -> bool {
        let queue = cx
            .tx_index()
            .and_then(|index| CombiningQueue::new(self, inner, index));
        let Some(queue) = queue else {
            return true;
        };
        let state = queue.state;
        let locked = if cx.is_netpoll() {
            // SAFETY: Bottom halves are disabled.
            match unsafe { queue.try_lock() } {
                Some(locked) => locked,
                None => return false,
            }
        } else {
            // SAFETY: By the safety requirements. Poll functions run with interrupts enabled.
            unsafe { queue.lock() }
        };

        state.rest.wakeup_due.store(0, Relaxed);
        if !locked.has_producer() {
            // The device goes down.
            return true;
        }
        if !state.holds_any() {
            locked.wake();
        } else {
            locked.resume();
        }
        true
    }
}

impl<T: Combine> TxPath<T> for Combining {
    fn new(queues: u16) -> Result<Self> {
        let mut states = KVec::with_capacity(queues.into(), GFP_KERNEL)?;

        for _ in 0..queues {
            states.push(QueueState::new(), GFP_KERNEL)?;
        }
        Ok(Self { queues: states })
    }

    /// To return `NETDEV_TX_BUSY` although the queue is not stopped, as this does when the list is
    /// full or the lock is taken, makes the core queue the packet again, and try again soon.
    #[inline(always)]
    unsafe fn start_xmit(
        &self,
        inner: &Inner<T>,
        _dev: &Device,
        skb: SkBuff,
    ) -> bindings::netdev_tx_t {
        // The packet before may rely on this one for the doorbell, even if it is mapped to a queue
        // that there is not.
        let queue = CombiningQueue::new(self, inner, skb.queue_mapping());
        let Some(queue) = queue.or_else(|| CombiningQueue::new(self, inner, 0)) else {
            return drop_unsent(inner, skb);
        };
        if queue.is_owned() {
            // Called from within the driver, or by netpoll, which has interrupted the lock's owner.
            return busy(skb);
        }

        // SAFETY: We are called for a packet that is being transmitted.
        let more = inner.queues() == 1 && unsafe { bindings::netdev_xmit_more() };
        // SAFETY: There are no requirements.
        if unsafe { bindings::irqs_disabled() } {
            // SAFETY: Bottom halves are disabled.
            return match unsafe { queue.try_lock() } {
                Some(locked) => send_alone(&locked, skb, more),
                None => busy(skb),
            };
        }
        // Earlier packets of the same sender on the list are sent before the list is idle, or with
        // the lock held.
        if !T::combines(inner.data()) && !queue.state.list.is_busy() {
            // SAFETY: Bottom halves are disabled and interrupts are not. We do not hold the lock.
            return send_alone(&unsafe { queue.lock() }, skb, more);
        }

        if queue.is_stopped() || queue.state.holds_any() {
            return busy(skb);
        }
        // The core does not transmit a packet that has other owners: `prepare()` has told it so.
        let skb = match UnsharedSkBuff::new(skb) {
            Ok(skb) => skb,
            Err(skb) => return drop_unsent(inner, skb),
        };
        let state = queue.state;
        match state.list.push(skb, LIST_LIMIT) {
            Pushed::Behind => bindings::netdev_tx::NETDEV_TX_OK,
            Pushed::Refused(skb) => {
                state.refused.fetch_add(1, Relaxed);
                busy(skb.into())
            }
            Pushed::First(turn) => {
                // SAFETY: As above.
                unsafe { queue.lock() }.work(turn, more);
                bindings::netdev_tx::NETDEV_TX_OK
            }
        }
    }

    #[inline]
    fn waker(&self, index: u16) -> &dyn WakeQueue {
        match self.queues.get(usize::from(index)) {
            Some(state) => state,
            None => &WakeNow,
        }
    }

    #[inline]
    unsafe fn poll(
        &self,
        inner: &Inner<T>,
        cx: &Poll<'_>,
        poll: impl FnMut(&Poll<'_>) -> Polled,
    ) -> Polled {
        // SAFETY: By the safety requirements.
        let polled = unsafe { T::Doorbell::poll(cx, poll) };
        let due = cx
            .tx_index()
            .and_then(|index| self.queues.get(usize::from(index)))
            .is_some_and(|state| state.rest.wakeup_due.load(Relaxed) != 0);
        // SAFETY: This is the poll function of the vector.
        if due && unsafe { !self.wake_up(inner, cx) } {
            // It is still due when the instance is polled again.
            //
            // SAFETY: The instance is valid, and was enabled.
            unsafe { bindings::napi_schedule(cx.napi().as_raw()) };
        }
        polled
    }

    fn callbacks(&self) -> Callbacks {
        Callbacks::of::<T, Self>()
    }

    fn prepare(&self, dev: &Device) {
        // The lock is ours to take. This does not change while the device is registered.
        //
        // SAFETY: The device is valid, and is not registered yet.
        unsafe { bindings::netdev_set_lltx(dev.as_raw()) };
    }

    unsafe fn abandon(&self, inner: &Inner<T>, index: u16) {
        let Some(state) = self.queues.get(usize::from(index)) else {
            return;
        };

        // SAFETY: The lock is held.
        while let Some(skb) = unsafe { state.release() } {
            state.drop_accepted(inner, skb.into());
        }
        state.rest.without_doorbell.set(0);
        state.rest.wakeup_due.store(0, Relaxed);
    }

    fn statistics(&self, statistics: &mut Statistics<'_>) {
        let mut add = |name, get: fn(&QueueState) -> u64| {
            statistics.add(fmt!("{}", name), self.queues.iter().map(get).sum());
        };

        add("tx_combine_turns", |state| state.rest.turns.get());
        add("tx_combined", |state| state.rest.combined.get());
        add("tx_combine_held", |state| state.rest.ever_held.get());
        add("tx_combine_dropped", |state| state.rest.dropped.get());
        add("tx_combine_refused", |state| state.refused.load(Relaxed));
    }
}
