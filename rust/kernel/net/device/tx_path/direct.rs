// SPDX-License-Identifier: GPL-2.0

//! The default path: straight into the driver.

use super::{
    super::{
        registration::Inner,
        Device,
        Driver, //
    },
    busy,
    drop_unsent,
    Callbacks,
    TxPath, //
};

use crate::{
    bindings,
    net::{
        queue::{
            WakeNow,
            WakeQueue,
            Xmit, //
        },
        skbuff::{
            SkBuff,
            TxSkBuff, //
        }, //
    },
    prelude::*, //
};

/// The core holds the lock of the transmit queue, and each packet goes to the driver at once.
pub struct Direct;

impl<T: Driver> TxPath<T> for Direct {
    fn new(_queues: u16) -> Result<Self> {
        Ok(Self)
    }

    #[inline(always)]
    unsafe fn start_xmit(
        &self,
        inner: &Inner<T>,
        dev: &Device,
        skb: SkBuff,
    ) -> bindings::netdev_tx_t {
        let index = skb.queue_mapping();
        let Some(slot) = inner.slot(index) else {
            return drop_unsent(inner, skb);
        };
        // SAFETY: There is a slot, so the device has this queue.
        let raw = unsafe { bindings::netdev_get_tx_queue(dev.as_raw(), c_uint::from(index)) };

        // The core locks the queue of the first of several packets, and believes that the others
        // are mapped to the same one. A filter of a queueing discipline can change that.
        //
        // SAFETY: The queue is valid. Bottom halves are disabled.
        if unsafe { !bindings::netif_tx_owned(raw) } {
            return drop_unsent(inner, skb);
        }

        // Netpoll keeps the packet, and tries again.
        let Some(_entered) = slot.enter() else {
            return busy(skb);
        };
        // SAFETY: The queue is locked by this CPU, and we have entered. The core unlocks it after
        // we have returned.
        let Some(tx) = (unsafe { slot.producer() }) else {
            return drop_unsent(inner, skb);
        };
        // SAFETY: As above; `slot` belongs to this queue.
        let queue = unsafe { slot.tx_queue(raw, index) };
        // SAFETY: We are called for a packet that is being transmitted.
        let more = unsafe { bindings::netdev_xmit_more() };

        match T::start_xmit(inner.data(), tx, &queue, TxSkBuff::new(skb), more) {
            Xmit::Taken => bindings::netdev_tx::NETDEV_TX_OK,
            Xmit::Busy(skb) if queue.was_stopped() => busy(skb.into()),
            Xmit::Busy(skb) => drop_unsent(inner, skb.into()),
        }
    }

    #[inline(always)]
    fn waker(&self, _index: u16) -> &dyn WakeQueue {
        &WakeNow
    }

    fn callbacks(&self) -> Callbacks {
        Callbacks::of::<T, Self>()
    }
}
