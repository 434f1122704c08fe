// SPDX-License-Identifier: GPL-2.0

//! The end of a transmission: flow control and the doorbell, or the fate of a refused packet.

use super::{
    stop_below,
    wake_at,
    Refusal,
    Refused,
    Submitted,
    TxProducer, //
};
use crate::{
    net::{
        device::Doorbell,
        queue::{
            TxQueue,
            Xmit, //
        },
        skbuff::{
            DropReason,
            Outgoing, //
        }, //
    },
    prelude::*, //
};

impl TxProducer<'_> {
    /// Ends a transmission with the result of [`Self::submit`].
    ///
    /// The packet is accounted for. `queue` is stopped if there might be too little room for those
    /// that follow, see [`Limits::stop_below`](super::Limits::stop_below); it should be woken at
    /// [`Limits::wake_at`](super::Limits::wake_at). A packet that was refused is dropped, or
    /// returned to the stack if the ring is full and the packet is still a
    /// [`TxSkBuff`](crate::net::skbuff::TxSkBuff).
    ///
    /// `doorbell` tells the card how far the ring is filled, and is called unless that can wait:
    /// for the next packet, which `more` announces, or for [`Driver::Doorbell`].
    ///
    /// [`Driver::Doorbell`]: crate::net::device::Driver::Doorbell
    #[inline(always)]
    pub fn finish<'call>(
        &self,
        queue: &TxQueue<'_, impl Doorbell>,
        submitted: Result<Submitted, Refused<impl Outgoing<'call>>>,
        more: bool,
        doorbell: impl FnOnce(usize),
    ) -> Xmit<'call> {
        match submitted {
            Ok(submitted) => {
                let stop = stop_below(self.max_descriptors, self.capacity(), more);
                let wake = self.wake_at();

                queue.stop_if_low(|| self.free_or_enough(stop), stop, wake);
                if queue.sent(submitted.bytes, more) {
                    doorbell(self.next_slot());
                }
                Xmit::Taken
            }
            Err(refused) => self.refused(queue, refused, more, doorbell),
        }
    }

    /// Ends a transmission whose packet was dropped, so that earlier packets, whose doorbell was
    /// left to it, do not wait.
    #[cold]
    pub fn finish_dropped<'call>(
        &self,
        queue: &TxQueue<'_, impl Doorbell>,
        more: bool,
        doorbell: impl FnOnce(usize),
    ) -> Xmit<'call> {
        if !more || queue.is_stopped() {
            doorbell(self.next_slot());
        }
        Xmit::Taken
    }

    #[cold]
    fn refused<'call>(
        &self,
        queue: &TxQueue<'_, impl Doorbell>,
        Refused { reason, skb }: Refused<impl Outgoing<'call>>,
        more: bool,
        doorbell: impl FnOnce(usize),
    ) -> Xmit<'call> {
        if reason != Refusal::Full {
            skb.into().drop_with(DropReason::NotSpecified);
            return self.finish_dropped(queue, more, doorbell);
        }

        // A safety net: the queue should have been stopped.
        doorbell(self.next_slot());
        if queue.stop_if_low(|| self.free(), self.wake_at(), self.wake_at()) {
            return skb.give_back().unwrap_or_else(|skb| {
                skb.drop_with(DropReason::FullRing);
                Xmit::Taken
            });
        }
        // There is room by now, so the queue is not stopped. If the packet were returned, the stack
        // would retry in a tight loop.
        skb.into().drop_with(DropReason::FullRing);
        Xmit::Taken
    }

    fn wake_at(&self) -> usize {
        wake_at(self.max_descriptors, self.capacity())
    }
}
