// SPDX-License-Identifier: GPL-2.0

//! The transmit ring (datasheet 7.2, Transmit Functionality).
//!
//! The two sides of the ring run concurrently: [`TxRing`] adds packets, under the lock of the
//! transmit queue; [`TxCompletion`] removes sent packets, in the poll function.
//! [`kernel::net::inflight`] synchronizes the two.

use kernel::{
    device::{
        self,
        Bound, //
    },
    io::register::Array,
    net::{
        device::deferring::Deferring,
        device::DmaStopped,
        inflight::{
            self,
            Descriptors,
            Refused,
            Submitted,
            TxConsumer,
            TxDesc,
            TxProducer, //
        },
        napi::{
            Napi,
            Poll, //
        },
        queue::{
            self,
            Completions,
            RingSize,
            Xmit, //
        },
        skb_free::SkbFreeList,
        skbuff::{
            DropReason,
            SkBuff,
            TxSkBuff, //
        }, //
    },
    prelude::*,
    sync::atomic::Relaxed, //
};

use core::num::NonZero;

use crate::{
    atr::Sampler,
    desc::{
        self,
        TxTemplate,
        TX_LIMITS as LIMITS,
        TX_MAX_PACKET,
        TX_MIN_LEN, //
    },
    mmio::Bar0,
    offload::Offload,
    port::Port,
    regs::{
        medium::LINKS,
        queue::*, //
    },
    stats::{
        PairStats,
        PollCounters,
        XmitCounters, //
    }, //
};

mod registers;

/// A transmit queue, with the doorbell of this driver.
pub(crate) type TxQueue<'a> = queue::TxQueue<'a, Deferring>;

pub(crate) use self::registers::{
    stop,
    TxRegisters, //
};

/// With more free descriptors, no queue is stopped. A constant, since the fast path compares each
/// packet's room with it: a ring of 128 descriptors or fewer is mostly below.
const ENOUGH: usize = LIMITS.stop_below(usize::MAX, false);

/// Wake a queue that was stopped when most of the ring is free: one that stops again at once would
/// return packets to the stack, which are kept there and sent in small portions. Enough packets
/// are left for the NIC until others follow. In a short ring, room for two packets takes more.
fn wake_at(len: usize) -> usize {
    LIMITS.wake_at(len).max(len / 8 * 5)
}

/// Maximum number of packets that one poll completes: as many as it receives. More if it has fallen
/// behind, see [`most_completed`].
///
/// The CPU's cache of SKBs holds twice as many. While a vector that receives and one that completes
/// take turns, all SKBs come from there and return there; more at a time would go to the slab
/// allocator and back. Completions that are left are handled in the next poll, without an
/// interrupt, so a busy ring has room in time.
const MAX_COMPLETED: usize = 64;

/// Minimum length of a packet, in bytes.
const MIN_LEN: u32 = TX_MIN_LEN as u32;

/// Creates both sides of a ring of `napi`.
pub(crate) fn ring<'a>(
    dev: &'a device::Device<Bound>,
    napi: &Napi,
    pair: Pair,
    len: RingSize,
) -> Result<(TxRing<'a>, TxCompletion<'a>)> {
    let desc = Descriptors::new(dev, napi, len)?;
    let (producer, consumer) = inflight::pair(dev, napi, len, LIMITS)?;

    Ok((
        TxRing {
            pair,
            producer,
            desc: desc.clone(),
            sampler: Sampler::new(),
        },
        TxCompletion {
            consumer,
            desc,
            wake_at: wake_at(len.get()),
        },
    ))
}

/// The side that adds packets to the ring.
pub(crate) struct TxRing<'a> {
    pair: Pair,
    producer: TxProducer<'a>,
    desc: Descriptors<'a>,
    sampler: Sampler,
}

impl TxRing<'_> {
    /// Returns the register values that describe the ring to the NIC.
    pub(crate) fn registers(&self) -> TxRegisters {
        TxRegisters::new(self.pair.tx(), self.desc.dma_address(), self.desc.bytes())
    }

    /// Adds a packet to the ring, or drops it.
    ///
    /// This is the fast path for a linear packet of ordinary length without a checksum or a VLAN
    /// tag to insert, nor a check sequence of its own, as forwarding produces, while there is
    /// plenty of room. [`Self::xmit_any`] handles all others.
    #[inline(always)]
    pub(crate) fn xmit<'call>(
        &mut self,
        port: &Port<'_>,
        queue: &TxQueue<'_>,
        counters: &XmitCounters,
        skb: TxSkBuff<'call>,
        more: bool,
    ) -> Xmit<'call> {
        let len = skb.len();
        let is_ordinary = (MIN_LEN..=TX_MAX_PACKET).contains(&len)
            && skb.partial_checksum().is_none()
            && skb.vlan_tag().is_none()
            && !skb.has_fcs()
            // The queue need not be stopped after this packet.
            && self.producer.free_seen() > ENOUGH;
        if !is_ordinary {
            return self.xmit_any(port, queue, counters, skb, more);
        }
        let Some(template) = TxTemplate::new(len, false) else {
            return self.xmit_any(port, queue, counters, skb, more);
        };

        let ring = &self.desc;
        let submitted = self.producer.submit_one(skb, |slot, segment| {
            // CAST: Segments are at most `LIMITS.segment_len` bytes long.
            template.write(ring, slot, segment.addr, segment.len as u16, segment.last)
        });

        match submitted {
            Ok(submitted) => self.sent(&port.bar, queue, counters, submitted.bytes, more),
            // It takes several descriptors, or a time stamp, or is refused there, too.
            Err(refused) => self.xmit_any(port, queue, counters, refused.skb, more),
        }
    }

    /// Adds any packet to the ring, or drops it.
    // Cold to [`Self::xmit`]: after several branches in a row, the compiler would take the fast
    // path for rare, and call functions there that it inlines otherwise.
    #[cold]
    fn xmit_any<'call>(
        &mut self,
        port: &Port<'_>,
        queue: &TxQueue<'_>,
        counters: &XmitCounters,
        skb: TxSkBuff<'call>,
        more: bool,
    ) -> Xmit<'call> {
        let bar = &port.bar;
        let most = LIMITS.descriptors;
        // First, as a packet whose headers have been prepared cannot be returned to the stack.
        if self.producer.free_or_enough(most) < most {
            // A safety net: with so little room, the queue should have been stopped.
            return self.full(bar, queue, counters, skb);
        }

        let Ok(skb) = skb.pad_to(MIN_LEN) else {
            counters.tx_refused.add(1);
            self.doorbell_if_last(bar, queue, counters, more);
            return Xmit::Taken;
        };
        let Ok((mut skb, offload)) = Offload::prepare(skb.into()) else {
            counters.tx_refused.add(1);
            self.doorbell_if_last(bar, queue, counters, more);
            return Xmit::Taken;
        };
        if port.filters.is_open.load(Relaxed) {
            if let Some(flow) = self.sampler.sample(&skb) {
                flow.direct_to(bar, &port.director, &port.filters, self.pair);
            }
        }
        let Offload {
            context,
            mut template,
            split,
        } = offload;
        // The NIC would stamp only one of the parts of a packet that is split.
        let stamped =
            split.is_none() && port.ptp.is_wanted(&skb) && port.ptp.begin_tx(bar, &mut skb);
        if stamped {
            template = template.with_timestamp();
        }

        let ring = &self.desc;
        let emit = |slot, entry| match entry {
            TxDesc::Segment(segment) => {
                // CAST: As in `xmit()`.
                template.write(ring, slot, segment.addr, segment.len as u16, segment.last)
            }
            TxDesc::Context(_) => {
                if let Some(context) = context {
                    context.write(ring, slot);
                }
            }
        };
        let submitted = match split {
            Some(split) => self
                .producer
                .submit_split(skb, NonZero::<usize>::MIN, split, emit),
            None => self
                .producer
                .submit(skb, usize::from(context.is_some()), emit),
        };
        let failed = submitted.is_err();
        let xmit = self.finish(bar, queue, counters, submitted, more);
        if stamped {
            if failed {
                port.ptp.cancel_tx();
            } else {
                port.ptp.sent();
            }
        }
        xmit
    }

    /// Completes a transmit: accounts the packet, stops the queue if the ring is nearly full, and
    /// rings the doorbell; or handles the refusal.
    #[inline]
    fn finish<'call>(
        &mut self,
        bar: &Bar0<'_>,
        queue: &TxQueue<'_>,
        counters: &XmitCounters,
        submitted: Result<Submitted, Refused>,
        more: bool,
    ) -> Xmit<'call> {
        let submitted = match submitted {
            Ok(submitted) => submitted,
            Err(refused) => {
                self.refuse(bar, queue, counters, refused.skb, more);
                return Xmit::Taken;
            }
        };

        let len = self.desc.len();
        let stop = LIMITS.stop_below(len, more);
        if queue.stop_if_low(|| self.producer.free_or_enough(stop), stop, wake_at(len)) {
            counters.tx_ring_full.add(1);
        }

        self.sent(bar, queue, counters, submitted.bytes, more)
    }

    /// Accounts for a packet that is in the ring, and rings the doorbell unless that can wait.
    #[inline(always)]
    fn sent<'call>(
        &self,
        bar: &Bar0<'_>,
        queue: &TxQueue<'_>,
        counters: &XmitCounters,
        bytes: u32,
        more: bool,
    ) -> Xmit<'call> {
        if queue.sent(bytes, more) {
            self.doorbell(bar, counters);
        }
        Xmit::Taken
    }

    /// Rings the doorbell: passes all descriptors added so far to the NIC.
    #[inline]
    pub(crate) fn doorbell(&self, bar: &Bar0<'_>, counters: &XmitCounters) {
        counters.tx_doorbells.add(1);
        // The register write is ordered after the writes to the descriptors.
        bar.write(
            TDT::at(self.pair.at()),
            (self.producer.next_slot() as u32).into(),
        );
    }

    /// Rings the doorbell that earlier packets deferred because `more` was set.
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

    /// Drops a packet that the NIC cannot send.
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

    /// Returns a packet that does not fit in the ring to the stack.
    #[cold]
    fn full<'call>(
        &mut self,
        bar: &Bar0<'_>,
        queue: &TxQueue<'_>,
        counters: &XmitCounters,
        skb: TxSkBuff<'call>,
    ) -> Xmit<'call> {
        counters.tx_ring_full.add(1);
        self.doorbell(bar, counters);
        let wake = wake_at(self.desc.len());
        if queue.stop_if_low(|| self.producer.free(), wake, wake) {
            return Xmit::Busy(skb);
        }

        // The NIC freed descriptors in the meantime, so the queue is not stopped. With BUSY, the
        // stack would retry in a tight loop.
        counters.tx_refused.add(1);
        skb.drop_with(DropReason::FullRing);
        Xmit::Taken
    }
}

/// Returns the maximum number of packets that a poll completes.
///
/// While vectors take turns, as many packets arrive as are completed. So a backlog would not
/// shrink: when the queue has been stopped, packets wait in the queueing discipline, and those that
/// follow wait behind them. Nor would byte queue limits grow, as they do when everything that was
/// sent is completed: they would take our portions for the speed of the NIC. The same holds for
/// the ring itself, which would be full at last.
fn most_completed(is_stopped: bool, free: usize, wake_at: usize) -> usize {
    if is_stopped || free < wake_at {
        2 * MAX_COMPLETED
    } else {
        MAX_COMPLETED
    }
}

/// The side that removes sent packets from the ring.
pub(crate) struct TxCompletion<'a> {
    consumer: TxConsumer<'a>,
    desc: Descriptors<'a>,
    wake_at: usize,
}

impl TxCompletion<'_> {
    /// Frees packets that the NIC has sent, up to [`most_completed`]. Returns whether these were
    /// all.
    // Most polls of a vector that receives find nothing in flight.
    #[inline(always)]
    pub(crate) fn poll(
        &mut self,
        queue: Completions<'_>,
        cx: &Poll<'_>,
        stats: &PairStats,
    ) -> bool {
        self.consumer.is_empty() || self.poll_some(queue, cx, stats)
    }

    /// As [`Self::poll`].
    // Not inlined: in a function of its own, the loop's variables stay in registers.
    #[inline(never)]
    fn poll_some(&mut self, queue: Completions<'_>, cx: &Poll<'_>, stats: &PairStats) -> bool {
        let limit = most_completed(queue.is_stopped(), self.consumer.free(), self.wake_at);
        let ring = &self.desc;
        let done = {
            // The end of this block frees the list: passing it to `drop()` would copy it.
            let mut free = SkbFreeList::new(cx, &stats.bulk_free);
            self.consumer
                .complete(&mut free, limit, |slot| desc::is_tx_done(ring, slot))
        };

        if done.packets == 0 {
            return true;
        }
        stats.poll.add_sent(&done);
        queue.completed(
            done.packets,
            done.bytes,
            || self.consumer.free(),
            self.wake_at,
        );
        done.packets < limit
    }

    /// Frees the remaining packets after the NIC was stopped, and counts them as sent or lost.
    pub(crate) fn finish(self, stopped: &DmaStopped<'_>, counters: &PollCounters) {
        let ring = &self.desc;
        let finished = self
            .consumer
            .finish(stopped, |slot| desc::is_tx_done(ring, slot));

        counters.add_sent(&finished.sent);
        counters.tx_lost.add(finished.lost.packets as u64);
    }
}

/// Logs the state of a transmit queue that makes no progress.
pub(crate) fn report_hang(dev: &device::Device<Bound>, bar: &Bar0<'_>, queue: u16) {
    let links = bar.read_atomic(LINKS);
    if links.into_raw() == u32::MAX {
        dev_err!(dev, "transmit queue {} hangs: device removed\n", queue);
        return;
    }
    let Some(at) = Pair::new(queue).map(Pair::at) else {
        return;
    };
    dev_err!(
        dev,
        "transmit queue {} hangs: head {}, tail {}, control 0x{:08x}, link 0x{:08x}; restarting\n",
        queue,
        bar.read_atomic(TDH::at(at)).into_raw(),
        bar.read_atomic(TDT::at(at)).into_raw(),
        bar.read_atomic(TXDCTL::at(at)).into_raw(),
        links.into_raw()
    );
}

#[kunit_tests(ixgbe_rust_tx)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_that_is_behind_catches_up() {
        assert_eq!(most_completed(false, 511, 256), 64);
        assert_eq!(most_completed(false, 256, 256), 64);
        assert_eq!(most_completed(false, 255, 256), 128);
        assert_eq!(most_completed(true, 511, 256), 128);
    }
}
