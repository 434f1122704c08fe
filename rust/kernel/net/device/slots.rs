// SPDX-License-Identifier: GPL-2.0

//! Access to the slots of a device's transmit queues, other than by the stack.

use super::{
    doorbell::QueueRef,
    shared::Shared,
    tx_slot::TxSlot,
    Driver, //
};

use crate::{
    bindings,
    prelude::*, //
};

/// The transmit queue `index` of a device of driver `T`, which need not be valid yet.
///
/// # Safety
///
/// The device must have such a queue.
pub(super) unsafe fn queue<T: Driver>(device: *const Shared<T>, index: u16) -> QueueRef {
    // SAFETY: The function is the one for devices of this driver. The rest is by the safety
    // requirements.
    unsafe { QueueRef::new(device.cast(), index, ring::<T>) }
}

/// Rings the doorbell of a transmit queue of a device of driver `T`, if that was put off.
///
/// # Safety
///
/// `device` must be a `Shared<T>`, which must exist until this returns. Bottom halves must be
/// disabled, and the queue must not be locked by this CPU.
unsafe fn ring<T: Driver>(device: *const c_void, queue: u16) {
    // SAFETY: By the safety requirements.
    let shared = unsafe { &*device.cast::<Shared<T>>() };

    // SAFETY: By the safety requirements. The closure does not take the lock: it is held, and the
    // slot has been entered.
    unsafe { shared.with_slot(queue, |slot| slot.flush(shared.data())) };
}

impl<T: Driver> Shared<T> {
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

    /// Exchanges the producer of a transmit queue, after its doorbell was rung if that was put off.
    pub(super) fn exchange_tx(&self, index: u16, tx: &mut Option<T::Tx<'static>>) {
        let exchange = |slot: &TxSlot<T>| {
            // SAFETY: The lock is held, and the slot has been entered.
            unsafe {
                slot.flush(self.data());
                slot.exchange(tx);
            }
        };

        // SAFETY: Neither do our callers hold the lock, nor does the above take it.
        unsafe { self.with_slot(index, exchange) };
    }
}
