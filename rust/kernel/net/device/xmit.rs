// SPDX-License-Identifier: GPL-2.0

//! The way of a packet from the stack to the driver: the core holds the lock of the transmit queue,
//! and each packet goes to [`Driver::start_xmit`] at once.

use super::{
    shared::Shared,
    tx_slot::TxSlot,
    Device,
    Driver, //
};

use crate::{
    bindings,
    net::{
        queue::Xmit,
        skbuff::{
            DropReason,
            SkBuff,
            TxSkBuff, //
        }, //
    },
    prelude::*, //
};

/// A transmit queue that is locked by this CPU.
///
/// # Invariants
///
/// `raw` is the queue of the device that `slot` belongs to.
struct LockedQueue<'a, T: Driver> {
    slot: &'a TxSlot<T>,
    raw: *mut bindings::netdev_queue,
}

impl<'a, T: Driver> LockedQueue<'a, T> {
    /// The queue of this number, if there is one, and if this CPU holds its lock. Bottom halves are
    /// disabled.
    #[inline(always)]
    fn of(shared: &'a Shared<T>, dev: &Device, index: u16) -> Option<Self> {
        let slot = shared.slot(index)?;
        // SAFETY: There is a slot, so the device has this queue.
        let raw = unsafe { bindings::netdev_get_tx_queue(dev.as_raw(), c_uint::from(index)) };

        // SAFETY: The queue is valid. Bottom halves are disabled.
        if unsafe { !bindings::netif_tx_owned(raw) } {
            return None;
        }
        // INVARIANT: This is how we have found it.
        Some(Self { slot, raw })
    }

    /// The queue that the core has locked for a packet that is mapped to another one, or to none.
    ///
    /// If this CPU holds the lock of yet another one, there is no telling which it is: one of them
    /// may belong to code that was interrupted.
    #[cold]
    fn find(shared: &'a Shared<T>, dev: &Device) -> Option<Self> {
        // CAST: The number of queues is a `u16`.
        let queues = 0..shared.queues() as u16;
        let mut owned = queues.filter_map(|index| Self::of(shared, dev, index));
        let found = owned.next()?;

        owned.next().is_none().then_some(found)
    }

    /// Hands a packet to the driver. The core unlocks the queue later.
    #[inline(always)]
    fn transmit(self, shared: &Shared<T>, skb: SkBuff) -> bindings::netdev_tx_t {
        let Self { slot, raw } = self;

        // Netpoll keeps the packet, and tries again.
        let Some(_entered) = slot.enter() else {
            return busy(skb);
        };
        // SAFETY: The queue is locked by this CPU, and we have entered. The core unlocks it after
        // we have returned.
        let Some(tx) = (unsafe { slot.producer() }) else {
            return drop_unsent(shared, skb);
        };
        // SAFETY: As above; `slot` belongs to this queue.
        let queue = unsafe { slot.tx_queue(raw) };
        // SAFETY: We are called for a packet that is being transmitted.
        let more = unsafe { bindings::netdev_xmit_more() };

        match T::start_xmit(shared.data(), tx, &queue, TxSkBuff::new(skb), more) {
            Xmit::Taken => bindings::netdev_tx::NETDEV_TX_OK,
            Xmit::Busy(skb) if queue.was_stopped() => busy(skb.into()),
            Xmit::Busy(skb) => drop_unsent(shared, skb.into()),
        }
    }

    /// Hands a packet to the driver that is mapped to a queue which is not locked, or to none.
    #[cold]
    #[inline(never)]
    fn transmit_by_another(
        shared: &'a Shared<T>,
        dev: &Device,
        skb: SkBuff,
    ) -> bindings::netdev_tx_t {
        match Self::find(shared, dev) {
            Some(queue) => queue.transmit(shared, skb),
            None => drop_unsent(shared, skb),
        }
    }
}

/// Transmits a packet, or returns it to the core with `NETDEV_TX_BUSY`.
///
/// # Safety
///
/// To be called by `ndo_start_xmit()` of `dev`, for a packet of that device, with bottom halves
/// disabled. `shared` must be the private part of `dev`.
#[inline(always)]
pub(super) unsafe fn start_xmit<T: Driver>(
    shared: &Shared<T>,
    dev: &Device,
    skb: SkBuff,
) -> bindings::netdev_tx_t {
    // The core locks the queue of the first of several packets, and believes that the others are
    // mapped to the same one. A filter of a queueing discipline can change that. They go the way of
    // the first one: it may rely on them for the doorbell.
    match LockedQueue::of(shared, dev, skb.queue_mapping()) {
        Some(queue) => queue.transmit(shared, skb),
        None => LockedQueue::transmit_by_another(shared, dev, skb),
    }
}

/// Drops a packet that cannot be transmitted, and counts it.
#[cold]
fn drop_unsent<T: Driver>(shared: &Shared<T>, skb: SkBuff) -> bindings::netdev_tx_t {
    skb.drop_with(DropReason::DeviceNotReady);

    // SAFETY: The device is valid.
    unsafe { bindings::dev_core_stats_tx_dropped_inc(shared.dev().as_raw()) };
    bindings::netdev_tx::NETDEV_TX_OK
}

/// Returns a packet to the core, which keeps it and tries again.
#[inline]
fn busy(skb: SkBuff) -> bindings::netdev_tx_t {
    let _ = skb.into_raw();
    bindings::netdev_tx::NETDEV_TX_BUSY
}
