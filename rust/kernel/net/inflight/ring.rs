// SPDX-License-Identifier: GPL-2.0

//! Transmit rings of descriptors that have two words.

use super::{
    pair,
    Completed,
    Descriptors,
    Entry,
    Limits,
    Refused,
    Segment,
    Submitted,
    TxConsumer,
    TxProducer, //
};
use crate::{
    device::{
        Bound,
        Device, //
    },
    dma::Coherent,
    io::{
        io_read,
        io_write, //
    },
    net::{
        device::Doorbell,
        napi::{
            Napi,
            Poll, //
        },
        queue::{
            bus_address,
            Le64,
            TxQueue,
            Xmit, //
        },
        skb_free::{
            BulkStats,
            SkbFreeList, //
        },
        skbuff::SkBuff, //
    },
    prelude::*, //
};
use core::marker::PhantomData;

/// The transmit descriptors of a card: two words of 64 bits, little endian.
pub trait TxFormat {
    /// The limits of the card.
    const LIMITS: Limits;

    /// The bit of the second word that the card sets in the last descriptor of a packet when it has
    /// sent it. No descriptor has it before.
    const DONE: u64;
}

/// The filling end of a ring of `N` descriptors, for the transmit function of a queue.
///
/// This is a [`TxProducer`] with its [`Descriptors`].
pub struct TxRing<'a, F: TxFormat, const N: usize> {
    desc: Descriptors<'a, N>,
    producer: TxProducer<'a>,
    _format: PhantomData<fn(F) -> F>,
}

/// The completing end of such a ring, for the poll function.
pub struct TxCompletion<'a, F: TxFormat, const N: usize> {
    desc: Descriptors<'a, N>,
    consumer: TxConsumer<'a>,
    _format: PhantomData<fn(F) -> F>,
}

/// Makes both ends of a ring of `napi`.
///
/// `dev` must be the parent of the network device. The memory of the descriptors is freed with the
/// queue vector, even if both ends are dropped before.
///
/// Context: process context, while `napi` is being set up.
///
/// # Errors
///
/// As [`Descriptors::new`] and [`pair`].
pub fn ring<'a, F: TxFormat, const N: usize>(
    dev: &'a Device<Bound>,
    napi: &Napi,
) -> Result<(TxRing<'a, F, N>, TxCompletion<'a, F, N>)> {
    let desc = Descriptors::new(dev, napi)?;
    let (producer, consumer) = pair(dev, napi, N, F::LIMITS)?;

    Ok((
        TxRing {
            desc: desc.clone(),
            producer,
            _format: PhantomData,
        },
        TxCompletion {
            desc,
            consumer,
            _format: PhantomData,
        },
    ))
}

impl<'a, F: TxFormat, const N: usize> TxRing<'a, F, N> {
    const MASK: usize = {
        assert!(N.is_power_of_two(), "a power of two");
        N - 1
    };

    /// The address of the ring for the card.
    pub fn dma_address(&self) -> u64 {
        bus_address(self.desc.dma_address())
    }

    /// Index of the next descriptor to be filled: the value for the card's tail register.
    #[inline(always)]
    pub fn tail(&self) -> usize {
        self.producer.next_slot()
    }

    #[inline(always)]
    fn write(desc: &Coherent<[[Le64; 2]; N]>, index: usize, [first, second]: [u64; 2]) {
        io_write!(desc, [build: index & Self::MASK][build: 0], Le64::new(first));
        io_write!(desc, [build: index & Self::MASK][build: 1], Le64::new(second));
    }

    /// Puts a packet into the ring, with the words that `describe` returns for each descriptor.
    ///
    /// As [`TxProducer::submit`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn submit(
        &mut self,
        skb: SkBuff,
        contexts: usize,
        describe: impl Fn(Entry) -> [u64; 2],
    ) -> Result<Submitted, Refused> {
        let desc = &*self.desc;

        self.producer.submit(skb, contexts, |index, entry| {
            Self::write(desc, index, describe(entry));
        })
    }

    /// Puts a packet into the ring that takes one descriptor.
    ///
    /// As [`TxProducer::submit_one`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline(always)]
    pub fn submit_one(
        &mut self,
        skb: SkBuff,
        describe: impl FnOnce(Segment) -> [u64; 2],
    ) -> Result<Submitted, Refused> {
        let desc = &*self.desc;

        self.producer.submit_one(skb, |index, segment| {
            Self::write(desc, index, describe(segment));
        })
    }

    /// Ends a transmission, see [`TxProducer::finish`].
    #[inline(always)]
    pub fn finish(
        &self,
        queue: &TxQueue<'_, impl Doorbell>,
        submitted: Result<Submitted, Refused>,
        more: bool,
        doorbell: impl FnOnce(usize),
    ) -> Xmit {
        self.producer.finish(queue, submitted, more, doorbell)
    }

    /// Ends a transmission whose packet was dropped, see [`TxProducer::finish_dropped`].
    #[inline]
    pub fn finish_dropped(
        &self,
        queue: &TxQueue<'_, impl Doorbell>,
        more: bool,
        doorbell: impl FnOnce(usize),
    ) -> Xmit {
        self.producer.finish_dropped(queue, more, doorbell)
    }
}

impl<F: TxFormat, const N: usize> TxCompletion<'_, F, N> {
    /// Frees the packets that the card has sent, in bulk, and wakes the queue if that makes room.
    #[inline(never)]
    pub fn complete(&mut self, cx: &Poll<'_>, freed: &BulkStats) -> Completed {
        const { assert!(F::DONE != 0, "a card sets a bit when it is done") };
        let desc = &*self.desc;
        let sent = {
            // The end of this block frees the list.
            let mut list = SkbFreeList::new(cx, freed);
            self.consumer.complete(&mut list, N, |index| {
                let at = index & TxRing::<'_, F, N>::MASK;
                io_read!(desc, [build: at][build: 1]).get() & F::DONE != 0
            })
        };

        cx.tx_queue().completed(
            sent.packets,
            sent.bytes,
            || self.consumer.free(),
            F::LIMITS.wake_at(),
        );
        sent
    }
}
