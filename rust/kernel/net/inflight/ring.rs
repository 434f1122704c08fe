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
    net::{
        napi::{
            Napi,
            Poll, //
        },
        queue::RingLen,
        skb_free::{
            BulkStats,
            SkbFreeList, //
        },
        skbuff::Outgoing, //
    },
    prelude::*, //
};
use core::{
    marker::PhantomData,
    ops::Deref, //
};

/// The transmit descriptors of a card: two words of 64 bits, little endian.
pub trait TxFormat {
    /// The limits of the card.
    const LIMITS: Limits;

    /// The bit of the second word that the card sets in the last descriptor of a packet when it has
    /// sent it. No descriptor has it before.
    const DONE: u64;
}

/// The filling end of a ring, for the transmit function of a queue.
///
/// This is a [`TxProducer`] with its [`Descriptors`].
pub struct TxRing<'a, F: TxFormat> {
    desc: Descriptors<'a>,
    producer: TxProducer<'a>,
    _format: PhantomData<fn(F) -> F>,
}

/// The completing end of such a ring, for the poll function.
pub struct TxCompletion<'a, F: TxFormat> {
    desc: Descriptors<'a>,
    consumer: TxConsumer<'a>,
    _format: PhantomData<fn(F) -> F>,
}

/// Makes both ends of a ring of `napi` with `len` descriptors.
///
/// `dev` must be the parent of the network device. The memory of the descriptors is freed with the
/// queue vector, even if both ends are dropped before.
///
/// Context: process context, while `napi` is being set up.
///
/// # Errors
///
/// As [`Descriptors::new`] and [`pair`].
pub fn ring<'a, F: TxFormat>(
    dev: &'a Device<Bound>,
    napi: &Napi,
    len: RingLen,
) -> Result<(TxRing<'a, F>, TxCompletion<'a, F>)> {
    let desc = Descriptors::new(dev, napi, len)?;
    let (producer, consumer) = pair(dev, napi, len, F::LIMITS)?;

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

impl<F: TxFormat> TxRing<'_, F> {
    /// The address of the ring for the card.
    pub fn dma_address(&self) -> u64 {
        self.desc.dma_address()
    }

    /// Puts a packet into the ring, with the words that `describe` returns for each descriptor.
    ///
    /// As [`TxProducer::submit`].
    ///
    /// # Errors
    ///
    /// As there.
    #[inline]
    pub fn submit<'call, P: Outgoing<'call>>(
        &mut self,
        skb: P,
        contexts: usize,
        describe: impl Fn(Entry) -> [u64; 2],
    ) -> Result<Submitted, Refused<P>> {
        let desc = &self.desc;

        self.producer.submit(skb, contexts, |index, entry| {
            desc.write(index, describe(entry));
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
    pub fn submit_one<'call, P: Outgoing<'call>>(
        &mut self,
        skb: P,
        describe: impl FnOnce(Segment) -> [u64; 2],
    ) -> Result<Submitted, Refused<P>> {
        let desc = &self.desc;

        self.producer.submit_one(skb, |index, segment| {
            desc.write(index, describe(segment));
        })
    }
}

impl<'a, F: TxFormat> Deref for TxRing<'a, F> {
    type Target = TxProducer<'a>;

    #[inline(always)]
    fn deref(&self) -> &TxProducer<'a> {
        &self.producer
    }
}

impl<F: TxFormat> TxCompletion<'_, F> {
    /// Frees the packets that the card has sent, in bulk, and wakes the queue if that makes room.
    #[inline(never)]
    pub fn complete(&mut self, cx: &Poll<'_>, freed: &BulkStats) -> Completed {
        const { assert!(F::DONE != 0, "a card sets a bit when it is done") };
        let desc = &self.desc;
        let sent = {
            // The end of this block frees the list.
            let mut list = SkbFreeList::new(cx, freed);
            self.consumer.complete(&mut list, desc.len(), |index| {
                desc.status(index) & F::DONE != 0
            })
        };

        cx.tx_queue().completed(
            sent.packets,
            sent.bytes,
            || self.consumer.free(),
            F::LIMITS.wake_at(desc.len()),
        );
        sent
    }
}
