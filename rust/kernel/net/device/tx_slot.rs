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
    Driver, //
};

use crate::{
    bindings,
    net::queue::TxQueue,
    prelude::*, //
};

use core::{
    cell::UnsafeCell,
    mem, //
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
    /// An empty slot for a transmit queue.
    pub(super) fn new(queue: QueueRef) -> Self {
        const { assert!(T::HAS_KICK || !T::Doorbell::NEEDS_KICK) };

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
    /// `raw` must be the queue of the device to which this slot belongs. The caller must hold its
    /// lock, with bottom halves disabled, for as long as it uses the result.
    #[inline]
    pub(super) unsafe fn tx_queue(
        &self,
        raw: *mut bindings::netdev_queue,
    ) -> TxQueue<'_, T::Doorbell> {
        // SAFETY: By the safety requirements, and as the doorbell was made for this queue.
        unsafe { TxQueue::from_raw(raw, &self.doorbell) }
    }

    /// Rings the doorbell of the queue if that was put off.
    ///
    /// # Safety
    ///
    /// As for [`Self::producer`]. `data` must be that of the device.
    pub(super) unsafe fn flush(&self, data: Pin<&T::Data<'static>>) {
        // SAFETY: By the safety requirements.
        if let Some(tx) = unsafe { self.producer() } {
            if T::HAS_KICK && self.doorbell.take() {
                T::kick(data, tx);
            }
        }
    }

    /// Exchanges the producer.
    ///
    /// # Safety
    ///
    /// As for [`Self::producer`].
    pub(super) unsafe fn exchange(&self, tx: &mut Option<T::Tx<'static>>) {
        // SAFETY: By the type invariants, we are the only one to access it.
        mem::swap(unsafe { &mut *self.tx.get() }, tx);
    }
}
