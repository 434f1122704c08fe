// SPDX-License-Identifier: GPL-2.0

//! The transmit ring (datasheet 7.2, Transmit Functionality).
//!
//! Two sides use it at the same time: [`TxRing`] puts packets in, under the lock of the transmit
//! queue; [`TxCompletion`] takes out what the card has sent, in the poll function. What lies
//! between them is in [`kernel::net::inflight`].

use kernel::{
    device::{
        self,
        Bound, //
    },
    io::{
        register::Array,
        Io, //
    },
    net::{
        inflight::{
            self,
            Entry,
            Limits,
            Refusal,
            Refused,
            Submitted,
            TxConsumer,
            TxProducer, //
        },
        napi::Poll,
        queue::{
            Completions,
            TxQueue,
            Xmit, //
        },
        skb_free::SkbFreeList,
        skbuff::{
            DropReason,
            SkBuff, //
        }, //
    },
    prelude::*,
    sync::Arc,
    time::Delta, //
};

use crate::{
    desc::{
        self,
        Ring,
        TxContext,
        TxTemplate,
        RING_SIZE,
        TX_MAX_SEGMENT, //
    },
    hw::{
        self,
        Bar0, //
    },
    regs::{
        queue::*,
        LINKS, //
    },
    stats::{
        PairStats,
        PollCounters,
        XmitCounters, //
    }, //
};

/// The most descriptors that a packet takes: a card has room for 40.
const MAX_DESCRIPTORS: usize = 40;

/// What the card takes.
const LIMITS: Limits = Limits {
    segment_len: TX_MAX_SEGMENT,
    descriptors: MAX_DESCRIPTORS,
};

/// Stop the queue when there may not be room for another packet.
const STOP_BELOW: usize = MAX_DESCRIPTORS;

/// Wake it when there is room for several.
const WAKE_AT: usize = 2 * MAX_DESCRIPTORS;

/// The shortest packet that the card takes.
const MIN_LEN: u32 = 17;

/// Creates both sides of a ring.
pub(crate) fn ring<'a>(
    dev: &'a device::Device<Bound>,
    pair: Pair,
) -> Result<(TxRing<'a>, TxCompletion<'a>)> {
    let desc = Arc::new(Ring::zeroed(dev, GFP_KERNEL)?, GFP_KERNEL)?;
    let (producer, consumer) = inflight::pair(dev, RING_SIZE, LIMITS)?;

    Ok((
        TxRing {
            pair,
            producer,
            desc: desc.clone(),
        },
        TxCompletion { consumer, desc },
    ))
}

/// The side that puts packets into the ring.
pub(crate) struct TxRing<'a> {
    pair: Pair,
    producer: TxProducer<'a>,
    desc: Arc<Ring>,
}

impl TxRing<'_> {
    /// What the card has to know about the ring.
    pub(crate) fn registers(&self) -> TxRegisters {
        TxRegisters {
            pair: self.pair,
            base: self.desc.dma_address(),
        }
    }

    /// Puts a packet into the ring, or drops it.
    ///
    /// What is forwarded is neither short nor long, has its checksum, and is in one piece: such a
    /// packet is done with here. [`Self::xmit_any`] takes the others.
    #[inline(always)]
    pub(crate) fn xmit(
        &mut self,
        bar: &Bar0<'_>,
        queue: &TxQueue<'_>,
        counters: &XmitCounters,
        skb: SkBuff,
        more: bool,
    ) -> Xmit {
        let len = skb.len();
        if !(MIN_LEN..=TX_MAX_SEGMENT).contains(&len) || skb.partial_checksum().is_some() {
            return self.xmit_any(bar, queue, counters, skb, more);
        }
        let Some(template) = TxTemplate::new(len, false) else {
            return self.xmit_any(bar, queue, counters, skb, more);
        };

        let ring = &*self.desc;
        let submitted = self.producer.submit_one(skb, |slot, segment| {
            // CAST: Segments are at most `TX_MAX_SEGMENT` bytes long.
            template.write(ring, slot, segment.addr, segment.len as u16, segment.last)
        });

        match submitted {
            Err(Refused {
                reason: Refusal::Several,
                skb,
            }) => self.xmit_any(bar, queue, counters, skb, more),
            submitted => self.finish(bar, queue, counters, submitted, more),
        }
    }

    /// Puts any packet into the ring, or drops it.
    #[inline(never)]
    fn xmit_any(
        &mut self,
        bar: &Bar0<'_>,
        queue: &TxQueue<'_>,
        counters: &XmitCounters,
        skb: SkBuff,
        more: bool,
    ) -> Xmit {
        let Ok(skb) = skb.pad_to(MIN_LEN) else {
            counters.tx_refused.add(1);
            self.doorbell_if_last(bar, queue, counters, more);
            return Xmit::Taken;
        };
        let context = skb
            .partial_checksum()
            .map(|checksum| TxContext::new(checksum, skb.network_offset()));
        if matches!(context, Some(None)) {
            // Not a TCP or UDP header, or out of the card's reach.
            self.refuse(bar, queue, counters, skb, more);
            return Xmit::Taken;
        }
        let context = context.flatten();
        let Some(template) = TxTemplate::new(skb.len(), context.is_some()) else {
            self.refuse(bar, queue, counters, skb, more);
            return Xmit::Taken;
        };

        let ring = &*self.desc;
        let submitted =
            self.producer.submit(
                skb,
                usize::from(context.is_some()),
                |slot, entry| match entry {
                    Entry::Segment(segment) => {
                        // CAST: As above.
                        template.write(ring, slot, segment.addr, segment.len as u16, segment.last)
                    }
                    Entry::Context(_) => {
                        if let Some(context) = context {
                            context.write(ring, slot);
                        }
                    }
                },
            );
        self.finish(bar, queue, counters, submitted, more)
    }

    /// Does what is left to do with a packet that was put into the ring, or could not be.
    #[inline(always)]
    fn finish(
        &mut self,
        bar: &Bar0<'_>,
        queue: &TxQueue<'_>,
        counters: &XmitCounters,
        submitted: Result<Submitted, Refused>,
        more: bool,
    ) -> Xmit {
        let submitted = match submitted {
            Ok(submitted) => submitted,
            Err(refused) if refused.reason == Refusal::Full => {
                // The queue is stopped before this can happen, unless a packet needs more than
                // what was kept free for it.
                return self.full(bar, queue, counters, refused.skb);
            }
            Err(refused) => {
                self.refuse(bar, queue, counters, refused.skb, more);
                return Xmit::Taken;
            }
        };

        if queue.stop_if_low(
            || self.producer.free_or_enough(STOP_BELOW),
            STOP_BELOW,
            WAKE_AT,
        ) {
            counters.tx_ring_full.add(1);
        }

        if queue.sent(submitted.bytes, more) {
            self.doorbell(bar, counters);
        }
        Xmit::Taken
    }

    /// Tells the card how far the ring is filled.
    #[inline]
    pub(crate) fn doorbell(&self, bar: &Bar0<'_>, counters: &XmitCounters) {
        counters.tx_doorbells.add(1);
        // The write is ordered after those to the descriptors.
        bar.write(
            TDT::at(self.pair.at()),
            (self.producer.next_slot() as u32).into(),
        );
    }

    /// Tells the card of earlier packets that were promised that this one would follow.
    #[cold]
    fn doorbell_if_last(
        &self,
        bar: &Bar0<'_>,
        queue: &TxQueue<'_>,
        counters: &XmitCounters,
        more: bool,
    ) {
        if !more || queue.is_stopped() {
            self.doorbell(bar, counters);
        }
    }

    /// Drops a packet that the card cannot take.
    #[cold]
    fn refuse(
        &self,
        bar: &Bar0<'_>,
        queue: &TxQueue<'_>,
        counters: &XmitCounters,
        skb: SkBuff,
        more: bool,
    ) {
        counters.tx_refused.add(1);
        skb.drop_with(DropReason::NotSpecified);
        self.doorbell_if_last(bar, queue, counters, more);
    }

    /// Gives a packet back for which there is no room.
    #[cold]
    fn full(
        &mut self,
        bar: &Bar0<'_>,
        queue: &TxQueue<'_>,
        counters: &XmitCounters,
        skb: SkBuff,
    ) -> Xmit {
        counters.tx_ring_full.add(1);
        self.doorbell(bar, counters);
        if queue.stop_if_low(|| self.producer.free(), WAKE_AT, WAKE_AT) {
            return Xmit::Busy(skb);
        }

        // The card has made room meanwhile, but the stack could not know: it would try at once.
        counters.tx_refused.add(1);
        skb.drop_with(DropReason::FullRing);
        Xmit::Taken
    }
}

/// The side that takes packets out of the ring.
pub(crate) struct TxCompletion<'a> {
    consumer: TxConsumer<'a>,
    desc: Arc<Ring>,
}

impl TxCompletion<'_> {
    /// Frees the packets that the card has sent, in bulk or not, and returns how many these were.
    // A function of its own has the registers for itself.
    #[inline(never)]
    pub(crate) fn poll(
        &mut self,
        queue: Completions<'_>,
        cx: &Poll<'_>,
        stats: &PairStats,
        bulk: bool,
    ) -> usize {
        let ring = &*self.desc;
        let done = {
            // Freed at the end of this block: passing the list to `drop()` would copy it.
            let mut free = SkbFreeList::with_bulk(cx, &stats.bulk_free, bulk);
            self.consumer
                .complete(&mut free, RING_SIZE, |slot| desc::is_tx_done(ring, slot))
        };

        if done.packets == 0 {
            return 0;
        }
        stats.poll.tx_packets.add(done.packets as u64);
        stats.poll.tx_bytes.add(done.bytes as u64);
        queue.completed(done.packets, done.bytes, || self.consumer.free(), WAKE_AT);
        done.packets
    }

    /// Frees what is left when the card has been stopped, and counts it as sent or lost.
    pub(crate) fn finish(self, counters: &PollCounters) {
        let ring = &*self.desc;
        let finished = self.consumer.finish(|slot| desc::is_tx_done(ring, slot));

        counters.tx_packets.add(finished.sent.packets as u64);
        counters.tx_bytes.add(finished.sent.bytes as u64);
        counters.tx_lost.add(finished.lost.packets as u64);
    }
}

/// Says what is known about a transmit queue that does not get on.
pub(crate) fn report_hang(dev: &device::Device<Bound>, bar: &Bar0<'_>, queue: u16) {
    if hw::is_gone(bar) {
        dev_err!(dev, "transmit queue {} hangs: the card is gone\n", queue);
        return;
    }

    let links = bar.read(LINKS);
    let Some(at) = Pair::new(queue).map(Pair::at) else {
        return;
    };
    dev_err!(
        dev,
        "transmit queue {} hangs: head {}, tail {}, control 0x{:08x}, link 0x{:08x}; restarting\n",
        queue,
        bar.read(TDH::at(at)).into_raw(),
        bar.read(TDT::at(at)).into_raw(),
        bar.read(TXDCTL::at(at)).into_raw(),
        links.into_raw()
    );
}

/// What the card has to know about a transmit ring.
#[derive(Clone, Copy)]
pub(crate) struct TxRegisters {
    pair: Pair,
    base: u64,
}

impl TxRegisters {
    /// Tells the card where the ring is and turns on the queue (datasheet 4.6.8.1).
    pub(crate) fn start(self, dev: &device::Device<Bound>, bar: &Bar0<'_>) -> Result {
        let at = self.pair.at();

        bar.write(TXDCTL::at(at), TXDCTL::zeroed());
        bar.write(TDBAL::at(at), ((self.base & 0xffff_ffff) as u32).into());
        bar.write(TDBAH::at(at), ((self.base >> 32) as u32).into());
        bar.write(
            TDLEN::at(at),
            (size_of::<[[u64; 2]; RING_SIZE]>() as u32).into(),
        );
        bar.write(TDH::at(at), TDH::zeroed());
        bar.write(TDT::at(at), TDT::zeroed());

        // Fetch descriptors early, and report each packet as soon as it was sent: thresholds that
        // gather reports could keep the last one back.
        bar.write(
            TXDCTL::at(at),
            TXDCTL::zeroed()
                .with_const_pthresh::<32>()
                .with_const_hthresh::<1>()
                .with_const_wthresh::<1>()
                .with_enable(true),
        );
        kernel::io::poll::read_poll_timeout(
            || Ok(bar.read(TXDCTL::at(at))),
            |r| r.enable(),
            Delta::from_micros(100),
            Delta::from_millis(10),
        )
        .inspect_err(|_| dev_err!(dev, "transmit queue {} does not start\n", at))?;
        Ok(())
    }
}
