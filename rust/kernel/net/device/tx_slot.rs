// SPDX-License-Identifier: GPL-2.0

//! The slots in which the producers of a device's transmit queues lie while it is up.

use super::{
    doorbell::{
        Doorbell,
        QueueRef, //
    },
    gate::{
        TxEntered,
        TxGate, //
    },
    registration::Inner,
    Driver, //
};

use crate::{
    bindings,
    net::queue::TxQueue,
    prelude::*, //
};

use core::{
    cell::UnsafeCell,
    ptr, //
};

/// The producer of a transmit queue, while the device is up, and its doorbell.
///
/// # Invariants
///
/// `tx` and `doorbell` are only accessed with the lock of the queue held, by code that has entered
/// `gate`.
#[repr(align(64))]
pub(super) struct TxSlot<T: Driver> {
    tx: UnsafeCell<Option<T::Tx<'static>>>,
    doorbell: T::Doorbell,
    gate: TxGate,
}

impl<T: Driver> TxSlot<T> {
    /// An empty slot for the transmit queue `queue` of a device.
    pub(super) fn new(device: *const Inner<T>, queue: u16) -> Self {
        const { assert!(T::HAS_KICK || !T::Doorbell::NEEDS_KICK) };

        // SAFETY: The function is the one for devices of this driver, and the slot is for a queue
        // that the device has.
        let queue = unsafe { QueueRef::new(device.cast(), queue, ring::<T>) };

        Self {
            tx: UnsafeCell::new(None),
            doorbell: T::Doorbell::new(queue),
            gate: TxGate::new(),
        }
    }

    /// Lets the holder of the queue's lock through, unless it has interrupted another one.
    #[inline]
    pub(super) fn enter(&self) -> Option<TxEntered<'_>> {
        self.gate.enter(0)
    }

    /// The producer.
    ///
    /// # Safety
    ///
    /// For as long as it uses the result, the caller must hold the lock of the queue, and what
    /// [`Self::enter`] returns.
    #[inline]
    #[expect(clippy::mut_from_ref)]
    pub(super) unsafe fn producer(&self) -> Option<&mut T::Tx<'static>> {
        // SAFETY: By the type invariants, we are the only one to access it.
        unsafe { (*self.tx.get()).as_mut() }
    }

    /// The transmit side of the queue, for one call of [`Driver::start_xmit`].
    ///
    /// # Safety
    ///
    /// `raw` must be the queue `index` of the device, to which this slot belongs. The caller must
    /// hold its lock, with bottom halves disabled, for as long as it uses the result.
    #[inline]
    pub(super) unsafe fn tx_queue(
        &self,
        raw: *mut bindings::netdev_queue,
        index: u16,
    ) -> TxQueue<'_, T::Doorbell> {
        // SAFETY: By the safety requirements, and as the doorbell was made for this queue.
        unsafe { TxQueue::from_raw(raw, index, &self.doorbell) }
    }
}

/// Rings the doorbell of a transmit queue of a device of driver `T`, if that was put off.
///
/// # Safety
///
/// `device` must be an `Inner<T>`, which must exist until this returns. Bottom halves must be
/// disabled, and the queue must not be locked by this CPU.
unsafe fn ring<T: Driver>(device: *const c_void, queue: u16) {
    // SAFETY: By the safety requirements.
    let inner = unsafe { &*device.cast::<Inner<T>>() };

    // SAFETY: By the safety requirements. The function does not take the lock.
    unsafe { inner.with_slot(queue, |slot| inner.flush_doorbell(slot)) };
}

impl<T: Driver> Inner<T> {
    /// Runs `f` with the lock of a transmit queue held, if there is one of that number.
    ///
    /// # Safety
    ///
    /// The lock must not be held by this CPU, nor be taken by `f`.
    pub(super) unsafe fn with_slot(&self, index: u16, f: impl FnOnce(&TxSlot<T>)) {
        let Some(slot) = self.slot(index) else {
            return;
        };

        // SAFETY: There is a slot, so the device has this queue.
        unsafe {
            let queue = bindings::netdev_get_tx_queue(self.dev().as_raw(), c_uint::from(index));

            bindings::__netif_tx_lock_bh(queue);
            // No other code is inside: this is not an interrupt.
            if let Some(_entered) = slot.enter() {
                f(slot);
            }
            bindings::__netif_tx_unlock_bh(queue);
        }
    }

    /// Rings the doorbell of a queue if that was put off. To be called within
    /// [`Self::with_slot`].
    fn flush_doorbell(&self, slot: &TxSlot<T>) {
        // SAFETY: The lock is held, and we have entered.
        if let Some(tx) = unsafe { slot.producer() } {
            if T::HAS_KICK && slot.doorbell.take() {
                T::kick(self.data(), tx);
            }
        }
    }

    /// Exchanges the producer of a transmit queue, after its doorbell was rung if that was put off.
    pub(super) fn exchange_tx(&self, index: u16, tx: &mut Option<T::Tx<'static>>) {
        let exchange = |slot: &TxSlot<T>| {
            self.flush_doorbell(slot);
            // SAFETY: With the lock held, we are the only one to access the slot.
            unsafe { ptr::swap(slot.tx.get(), tx) };
        };

        // SAFETY: Neither do our callers hold the lock, nor does the above take it.
        unsafe { self.with_slot(index, exchange) };
    }
}
