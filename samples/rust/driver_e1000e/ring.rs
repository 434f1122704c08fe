// SPDX-License-Identifier: GPL-2.0

//! The descriptor rings (datasheet chapter 7).
//!
//! A descriptor is two 64-bit words. The NIC writes the second one when it is done. That word is
//! read once, and everything is decided on the copy.

use kernel::{
    bitfield,
    device::{
        self,
        Bound, //
    },
    net::{
        device::{
            Feature,
            RingRange, //
        },
        inflight::{
            self,
            Completed,
            Descriptors,
            Limits,
            Refusal,
            Refused,
            Segment,
            Submitted,
            TxConsumer,
            TxDesc,
            TxProducer, //
        },
        napi::{
            Napi,
            Poll, //
        },
        page_pool::{
            AnyRxRing,
            Layout,
            RxFormat, //
        },
        queue::{
            RingSize,
            Xmit, //
        },
        rx_list::{
            Protocol,
            RxList,
            RxOffloads, //
        },
        skb_free::{
            BulkStats,
            SkbFreeList, //
        },
        skbuff::{
            ChecksumKind,
            DropReason,
            PartialChecksum,
            SkBuff,
            TxSkBuff, //
        },
        xdp::{
            Program,
            Verdict,
            XdpFormat,
            XdpRing, //
        }, //
    },
    prelude::*, //
};

use crate::{
    hw::{
        self,
        Bar0, //
    },
    TxQueue, //
};

/// The numbers of descriptors that rings can have.
pub(crate) const RINGS: RingRange = RingRange {
    min: RingSize::of::<64>(),
    max: RingSize::of::<4096>(),
    default: RingSize::of::<256>(),
};

/// Size of a receive buffer: the one that the NIC assumes unless told otherwise. A frame takes as
/// many as it needs.
const BUFFER_LEN: u16 = 2048;

/// Room in front of a frame, which programs expect.
const HEADROOM: u16 = 256;

bitfield! {
    /// Second word of an extended receive descriptor, as the NIC writes it back.
    struct RxStatus(u64) {
        /// Number of bytes in the buffer.
        47:32   len;
        /// The checksum of the IPv4 header is wrong.
        30:30   ipe => bool;
        /// The checksum of TCP or UDP is wrong.
        29:29   l4e => bool;
        /// The NIC has verified the checksum of TCP or UDP.
        5:5     l4cs => bool;
        /// That was UDP.
        4:4     udp => bool;
        /// This is the frame's last buffer.
        1:1     end => bool;
        /// The NIC is done with the descriptor.
        0:0     done => bool;
    }
}

impl RxStatus {
    /// Errors of the data, carrier, sequence, symbol, check sequence.
    #[inline(always)]
    fn is_damaged(self) -> bool {
        self.into_raw() & 0x9700_0000 != 0
    }

    #[inline(always)]
    fn is_verified(self) -> bool {
        const ERRORS: u64 = RxStatus::L4E_MASK | RxStatus::IPE_MASK;

        self.into_raw() & (Self::L4CS_MASK | ERRORS) == Self::L4CS_MASK
    }

    #[inline(always)]
    fn protocol(self) -> Protocol {
        if self.udp() {
            Protocol::Udp
        } else {
            Protocol::Other
        }
    }
}

/// The NIC's receive descriptors.
pub(crate) struct RxDescriptor;

impl RxFormat for RxDescriptor {
    const LAYOUT: Layout = match Layout::new(HEADROOM, BUFFER_LEN) {
        Some(layout) => layout,
        None => panic!("the buffer does not fit into a page"),
    };

    const DONE: u64 = RxStatus::DONE_MASK;

    #[inline(always)]
    fn len(status: u64) -> u16 {
        RxStatus::from_raw(status).len().cast::<u16>().get()
    }
}

impl XdpFormat for RxDescriptor {
    const MIN_LEN: u16 = MIN_LEN as u16;
    const MAX_LEN: u16 = LIMITS.packet_len as u16;

    fn is_end(status: u64) -> bool {
        RxStatus::from_raw(status).end()
    }

    fn tx_descriptor(address: u64, len: u16, _total: u16, is_last: bool) -> [u64; 2] {
        let word = TxWord::legacy()
            .with_len(len)
            .with_end(is_last)
            .with_report(is_last);

        [address, word.into_raw()]
    }

    fn is_sent(status: u64) -> bool {
        TxWord::from_raw(status).done()
    }

    fn goes_on(status: u64) -> bool {
        !TxWord::from_raw(status).end()
    }
}

/// Frames that a poll has received.
#[derive(Default)]
pub(crate) struct Received {
    pub(crate) packets: usize,
    pub(crate) bytes: usize,
    /// Damaged frames, and those that were lost for want of memory.
    pub(crate) dropped: usize,
    /// Those that a program has sent back.
    pub(crate) returned: Completed,
    /// The ring has no more of them.
    pub(crate) has_drained: bool,
}

/// The receive ring. Only the poll function uses it.
pub(crate) struct RxRing {
    pub(crate) ring: XdpRing<RxDescriptor>,
    /// The next descriptor goes on with a frame that was dropped.
    is_lost: bool,
    /// Number of missing buffers from which on they are replaced: a batch is cheaper.
    batch: usize,
}

impl RxRing {
    /// Makes the ring, and fills it with buffers as far as there is memory.
    pub(crate) fn new(dev: &device::Device<Bound>, napi: &Napi, len: RingSize) -> Result<Self> {
        // Buffers at hand: those of forwarded packets come back in batches.
        let pages = 2 * len.get() as u32;

        Ok(Self {
            ring: XdpRing::new(dev, napi, len, pages)?,
            is_lost: false,
            batch: (len.get() / 4).clamp(1, 32),
        })
    }

    /// Puts frames on the list, as many as the budget allows, or has a program see them first.
    // Not inlined: in a function of its own, the loop's variables stay in registers.
    #[inline(never)]
    pub(crate) fn receive(
        &mut self,
        program: Option<Program<'_>>,
        cx: &Poll<'_>,
        list: &mut RxList<'_>,
    ) -> Received {
        let mut sum = Received::default();
        // With the feature off, the stack verifies checksums itself.
        let trusted = cx.device().features().contains(Feature::RxChecksum);
        let Ok(mut ring) = self.ring.poll(cx) else {
            return sum;
        };

        while sum.packets < cx.budget() {
            let Some(done) = ring.next() else {
                sum.has_drained = true;
                break;
            };
            let status = RxStatus::from_raw(done.status);
            // There is no frame if a length that the NIC has reported makes no sense.
            let whole = done.buff.filter(|_| !self.is_lost && !status.is_damaged());
            self.is_lost = whole.is_none() && !status.end();
            let Some(buff) = whole else {
                // Else the frame goes on.
                sum.dropped += usize::from(status.end());
                continue;
            };

            sum.packets += 1;
            sum.bytes += buff.len() as usize;
            let verdict = match program {
                Some(program) => ring.run(program, buff, [done.info, done.status]),
                None => Verdict::Pass(buff),
            };
            match verdict {
                Verdict::Pass(buff) => {
                    let verified = trusted && status.is_verified();
                    list.push_xdp(buff, status.protocol(), verified, RxOffloads::default());
                }
                Verdict::Transmitted(len) => {
                    sum.returned.packets += 1;
                    sum.returned.bytes += len as usize;
                }
                _ => (),
            }
        }
        let lost = list.build();
        sum.packets = sum.packets.saturating_sub(lost.frames);
        sum.bytes = sum.bytes.saturating_sub(lost.bytes);
        sum.dropped += lost.frames;
        sum
    }

    /// Replaces used buffers if there are many, as far as there is memory. Returns whether the NIC
    /// has enough to go on: if not, it may raise no interrupt.
    #[inline]
    pub(crate) fn refill(&mut self, bar: &Bar0<'_>, cx: &Poll<'_>) -> bool {
        if self.ring.missing() + self.ring.recycled() < self.batch {
            return true;
        }
        if self.ring.refill(cx).is_ok_and(|added| added > 0) {
            hw::rx_doorbell(bar, self.ring.tail());
        }
        self.ring.in_use() >= self.batch
    }
}

bitfield! {
    /// Second word of a transmit descriptor. The fields of legacy ones are a part of those of
    /// extended ones.
    struct TxWord(u64) {
        /// Of extended ones, for data: insert the checksum of the transport layer.
        41:41   insert_l4 => bool;
        /// The NIC has sent the packet; it writes this.
        32:32   done => bool;
        /// This is an extended descriptor.
        29:29   extended => bool;
        /// Report when the packet has been sent.
        27:27   report => bool;
        /// Insert the frame check sequence.
        25:25   insert_fcs => bool;
        /// This is the packet's last descriptor.
        24:24   end => bool;
        /// Kind of an extended descriptor; 1 for data, 0 for the context.
        23:20   kind;
        /// Length of the buffer.
        15:0    len;
    }
}

impl TxWord {
    /// Data as it is.
    #[inline(always)]
    fn legacy() -> Self {
        Self::zeroed().with_insert_fcs(true)
    }

    /// Data into which a checksum is to be inserted, as the context before says.
    fn with_checksum() -> Self {
        Self::legacy()
            .with_extended(true)
            .with_const_kind::<1>()
            .with_insert_l4(true)
    }

    /// The descriptor of a segment.
    #[inline(always)]
    fn of(self, segment: Segment) -> [u64; 2] {
        let word = self
            .with_len(segment.len as u16)
            .with_end(segment.last)
            .with_report(segment.last);

        [segment.addr, word.into_raw()]
    }
}

bitfield! {
    /// First word of a context descriptor: places in the packet, from its first byte.
    struct TxContext(u64) {
        /// Where the checksum goes.
        47:40   offset;
        /// Where summing starts. It ends with the packet.
        39:32   start;
    }
}

impl TxContext {
    /// The context for a checksum; an error if its places are out of the NIC's reach.
    fn new(checksum: PartialChecksum) -> Result<Self> {
        if checksum.kind != ChecksumKind::Internet {
            return Err(EOPNOTSUPP);
        }
        Self::zeroed()
            .try_with_start(checksum.start)?
            .try_with_offset(checksum.start.saturating_add(checksum.offset.into()))
    }
}

/// Whether the NIC can insert the checksum that a packet asks for, if it does.
#[inline(always)]
pub(crate) fn can_insert_checksum(skb: &SkBuff) -> bool {
    !matches!(skb.partial_checksum().map(TxContext::new), Some(Err(_)))
}

/// The limits of the NIC. It can take longer segments, but they would delay others. A packet has a
/// context, a linear part and up to 17 fragments, and the longest is hardly longer than a segment.
const LIMITS: Limits = Limits {
    segment_len: 0x2000,
    // With a header, and the tag of a VLAN.
    packet_len: hw::MAX_MTU + 14 + 4,
    descriptors: 24,
};

/// The greatest MTU with which a frame fits into a buffer, with two tags.
pub(crate) const MAX_XDP_MTU: u32 = BUFFER_LEN as u32 - 14 - 8;

/// Minimum length of a packet; the NIC does not send shorter ones.
const MIN_LEN: u32 = 17;

/// Makes both ends of the transmit ring.
pub(crate) fn transmit<'a>(
    dev: &'a device::Device<Bound>,
    napi: &Napi,
    len: RingSize,
) -> Result<(TxRing<'a>, TxCompletion<'a>)> {
    let desc = Descriptors::new(dev, napi, len)?;
    let (producer, consumer) = inflight::pair(dev, napi, len, LIMITS)?;

    Ok((
        TxRing {
            desc: desc.clone(),
            producer,
            context: None,
        },
        TxCompletion { desc, consumer },
    ))
}

/// The completing end of the transmit ring, for the poll function.
pub(crate) struct TxCompletion<'a> {
    desc: Descriptors<'a>,
    consumer: TxConsumer<'a>,
}

impl TxCompletion<'_> {
    /// Frees the packets that the NIC has sent, in bulk.
    #[inline(never)]
    pub(crate) fn complete(&mut self, cx: &Poll<'_>, freed: &BulkStats) -> Completed {
        let desc = &self.desc;
        let sent = {
            // The end of this block frees the list.
            let mut list = SkbFreeList::new(cx, freed);
            self.consumer.complete(&mut list, desc.len(), |index| {
                TxWord::from_raw(desc.status(index)).done()
            })
        };

        cx.tx_queue().completed(
            sent.packets,
            sent.bytes,
            || self.consumer.free(),
            LIMITS.wake_at(desc.len()),
        );
        sent
    }
}

/// The filling end, for the holder of the queue's lock.
pub(crate) struct TxRing<'a> {
    desc: Descriptors<'a>,
    producer: TxProducer<'a>,
    /// The context that the NIC has: packets with the same one need not repeat it.
    context: Option<u64>,
}

impl TxRing<'_> {
    /// The address of the ring for the NIC.
    pub(crate) fn dma_address(&self) -> u64 {
        self.desc.dma_address()
    }

    /// Tells the NIC how far the ring is filled.
    #[inline]
    pub(crate) fn doorbell(&self, bar: &Bar0<'_>) {
        hw::tx_doorbell(bar, 0, self.producer.next_slot());
    }

    /// Puts a packet into the ring, or drops it.
    ///
    /// This is the fast path for a linear packet without a checksum to insert, as forwarding
    /// produces.
    #[inline(always)]
    pub(crate) fn xmit<'call>(
        &mut self,
        bar: &Bar0<'_>,
        queue: &TxQueue<'_>,
        skb: TxSkBuff<'call>,
        more: bool,
    ) -> Xmit<'call> {
        if skb.len() < MIN_LEN || skb.partial_checksum().is_some() {
            return self.xmit_any(bar, queue, skb, more);
        }

        let desc = &self.desc;
        match self.producer.submit_one(skb, |index, segment| {
            desc.write(index, TxWord::legacy().of(segment));
        }) {
            Err(Refused {
                reason: Refusal::Several,
                skb,
            }) => self.xmit_any(bar, queue, skb, more),
            submitted => self.finish(bar, queue, submitted, more),
        }
    }

    /// Puts any packet into the ring, or drops it.
    #[inline(never)]
    fn xmit_any<'call>(
        &mut self,
        bar: &Bar0<'_>,
        queue: &TxQueue<'_>,
        skb: TxSkBuff<'call>,
        more: bool,
    ) -> Xmit<'call> {
        let Ok(skb) = skb.pad_to(MIN_LEN) else {
            return self.finish_dropped(bar, queue, more);
        };
        let context = match skb.partial_checksum().map(TxContext::new).transpose() {
            Ok(context) => context.map(TxContext::into_raw),
            // It was asked, see `can_insert_checksum()`.
            Err(_) => {
                skb.drop_with(DropReason::NotSpecified);
                return self.finish_dropped(bar, queue, more);
            }
        };
        let word = match context {
            Some(_) => TxWord::with_checksum(),
            None => TxWord::legacy(),
        };
        let contexts = usize::from(context.is_some() && context != self.context);

        let desc = &self.desc;
        let submitted = self.producer.submit(skb, contexts, |index, entry| {
            let words = match entry {
                TxDesc::Context(_) => {
                    let word = TxWord::zeroed().with_extended(true);
                    [context.unwrap_or(0), word.into_raw()]
                }
                TxDesc::Segment(segment) => word.of(segment),
            };
            desc.write(index, words);
        });
        if contexts > 0 && submitted.is_ok() {
            self.context = context;
        }
        self.finish(bar, queue, submitted, more)
    }

    /// Accounts for a packet in the ring, stops the queue if there might be too little room for
    /// those that follow, and rings the doorbell unless that can wait; or handles a refusal.
    #[inline(always)]
    fn finish<'call>(
        &self,
        bar: &Bar0<'_>,
        queue: &TxQueue<'_>,
        submitted: Result<Submitted, Refused<TxSkBuff<'call>>>,
        more: bool,
    ) -> Xmit<'call> {
        let submitted = match submitted {
            Ok(submitted) => submitted,
            Err(refused) => return self.refuse(bar, queue, refused, more),
        };
        let len = self.desc.len();
        let stop = LIMITS.stop_below(len, more);

        queue.stop_if_low(
            || self.producer.free_or_enough(stop),
            stop,
            LIMITS.wake_at(len),
        );
        if queue.sent(submitted.bytes, more) {
            // Ordered after the writes to the descriptors.
            self.doorbell(bar);
        }
        Xmit::Taken
    }

    /// Rings the doorbell that earlier packets have left to one that was dropped.
    #[cold]
    fn finish_dropped<'call>(
        &self,
        bar: &Bar0<'_>,
        queue: &TxQueue<'_>,
        more: bool,
    ) -> Xmit<'call> {
        if !more || queue.is_stopped() {
            self.doorbell(bar);
        }
        Xmit::Taken
    }

    /// Returns a packet that does not fit to the stack, and drops any other.
    #[cold]
    fn refuse<'call>(
        &self,
        bar: &Bar0<'_>,
        queue: &TxQueue<'_>,
        Refused { reason, skb }: Refused<TxSkBuff<'call>>,
        more: bool,
    ) -> Xmit<'call> {
        if reason != Refusal::Full {
            skb.drop_with(DropReason::NotSpecified);
            return self.finish_dropped(bar, queue, more);
        }

        // A safety net: the queue should have been stopped.
        self.doorbell(bar);
        let wake = LIMITS.wake_at(self.desc.len());
        if queue.stop_if_low(|| self.producer.free(), wake, wake) {
            return Xmit::Busy(skb);
        }
        // There is room by now, so the queue is not stopped: the stack would retry in a tight loop.
        skb.drop_with(DropReason::FullRing);
        Xmit::Taken
    }
}

#[kunit_tests(rust_driver_e1000e_ring)]
mod tests {
    use super::*;

    #[test]
    fn context_holds_places_within_reach() {
        let of = |start, offset, kind| {
            let checksum = PartialChecksum {
                start,
                offset,
                kind,
            };
            TxContext::new(checksum).ok().map(TxContext::into_raw)
        };
        let at = |start, offset| of(start, offset, ChecksumKind::Internet);

        assert_eq!(at(34, 16), Some(0x3222_0000_0000));
        assert!(at(256, 6).is_none());
        assert!(at(250, 6).is_none());
        assert!(of(34, 8, ChecksumKind::Crc32c).is_none());
    }

    #[test]
    fn checksums_count_if_all_are_right() {
        let verified = |status| RxStatus::from_raw(status).is_verified();

        assert!(verified(0x23));
        assert!(!verified(0x03));
        assert!(!verified(0x23 | 1 << 29));
        assert!(!verified(0x23 | 1 << 30));
    }
}
