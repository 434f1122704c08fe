// SPDX-License-Identifier: GPL-2.0

//! The descriptor rings (datasheet chapter 7).
//!
//! A descriptor is two 64-bit words. The card writes the second one when it is done. That word is
//! read once, and everything is decided on the copy.

use kernel::{
    bitfield,
    net::{
        device::{
            RingRange,
            Rings, //
        },
        inflight::{
            self,
            Entry,
            Limits,
            Refusal,
            Refused,
            Segment,
            TxFormat, //
        },
        page_pool::{
            self,
            FrameFormat,
            Layout,
            RxFormat, //
        },
        queue::{
            RingLen,
            Xmit, //
        },
        rx_list::Protocol,
        skbuff::{
            ChecksumKind,
            DropReason,
            PartialChecksum,
            SkBuff,
            TxSkBuff, //
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
pub(crate) const RINGS: Rings = Rings::alike(RingRange {
    least: RingLen::of::<64>(),
    most: RingLen::of::<4096>(),
    at_first: RingLen::of::<256>(),
});

/// Number of receive buffers at hand: those of forwarded packets come back in batches.
pub(crate) fn pool_pages(len: RingLen) -> u32 {
    2 * len.get() as u32
}

/// Size of a receive buffer: the one that the card assumes unless told otherwise. A frame takes as
/// many as it needs.
const BUFFER_LEN: u16 = 2048;

/// Room in front of a frame, for headers added on forwarding.
const HEADROOM: u16 = 128;

bitfield! {
    /// Second word of an extended receive descriptor, as the card writes it back.
    struct RxStatus(u64) {
        /// Number of bytes in the buffer.
        47:32   len;
        /// The checksum of the IPv4 header is wrong.
        30:30   ipe => bool;
        /// The checksum of TCP or UDP is wrong.
        29:29   l4e => bool;
        /// The card has verified the checksum of TCP or UDP.
        5:5     l4cs => bool;
        /// That was UDP.
        4:4     udp => bool;
        /// This is the frame's last buffer.
        1:1     end => bool;
        /// The card is done with the descriptor.
        0:0     done => bool;
    }
}

/// The card's receive descriptors.
pub(crate) struct RxDescriptor;

pub(crate) type RxRing = page_pool::FrameRing<RxDescriptor>;

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

impl FrameFormat for RxDescriptor {
    #[inline(always)]
    fn is_last(status: u64) -> bool {
        RxStatus::from_raw(status).end()
    }

    /// Errors of the data, carrier, sequence, symbol, check sequence.
    #[inline(always)]
    fn is_damaged(status: u64) -> bool {
        status & 0x9700_0000 != 0
    }

    #[inline(always)]
    fn is_verified(status: u64) -> bool {
        const ERRORS: u64 = RxStatus::L4E_MASK | RxStatus::IPE_MASK;

        status & (RxStatus::L4CS_MASK | ERRORS) == RxStatus::L4CS_MASK
    }

    #[inline(always)]
    fn protocol(_info: u64, status: u64) -> Protocol {
        if RxStatus::from_raw(status).udp() {
            Protocol::Udp
        } else {
            Protocol::Other
        }
    }
}

bitfield! {
    /// Second word of a transmit descriptor. The fields of legacy ones are a part of those of
    /// extended ones.
    struct TxWord(u64) {
        /// Of extended ones, for data: insert the checksum of the transport layer.
        41:41   insert_l4 => bool;
        /// The card has sent the packet; it writes this.
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
    /// The context for a checksum; an error if its places are out of the card's reach.
    fn new(checksum: PartialChecksum) -> Result<Self> {
        if checksum.kind != ChecksumKind::Internet {
            return Err(EOPNOTSUPP);
        }
        Self::zeroed()
            .try_with_start(checksum.start)?
            .try_with_offset(checksum.start.saturating_add(checksum.offset.into()))
    }
}

/// Whether the card can insert the checksum that a packet asks for, if it does.
#[inline(always)]
pub(crate) fn can_insert_checksum(skb: &SkBuff) -> bool {
    !matches!(skb.partial_checksum().map(TxContext::new), Some(Err(_)))
}

/// The card's transmit descriptors.
pub(crate) struct TxDescriptor;

impl TxFormat for TxDescriptor {
    /// The card can take longer segments, but they would delay others. A packet has a context, a
    /// linear part and up to 17 fragments, and the longest is hardly longer than a segment.
    const LIMITS: Limits = Limits {
        segment_len: 0x2000,
        descriptors: 24,
    };

    const DONE: u64 = TxWord::DONE_MASK;
}

/// Minimum length of a packet; the card does not send shorter ones.
const MIN_LEN: u32 = 17;

/// The completing end of the transmit ring, for the poll function.
pub(crate) type TxCompletion<'a> = inflight::TxCompletion<'a, TxDescriptor>;

/// The filling end, for the holder of the queue's lock.
pub(crate) struct TxRing<'a> {
    pub(crate) ring: inflight::TxRing<'a, TxDescriptor>,
    /// The context that the card has: packets with the same one need not repeat it.
    pub(crate) context: Option<u64>,
}

impl TxRing<'_> {
    /// Tells the card how far the ring is filled.
    #[inline]
    pub(crate) fn doorbell(&self, bar: &Bar0<'_>) {
        hw::tx_doorbell(bar, self.ring.next_slot());
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

        match (self.ring).submit_one(skb, |segment| TxWord::legacy().of(segment)) {
            Err(Refused {
                reason: Refusal::Several,
                skb,
            }) => self.xmit_any(bar, queue, skb, more),
            // The doorbell is ordered after the writes to the descriptors.
            submitted => {
                (self.ring).finish(queue, submitted, more, |tail| hw::tx_doorbell(bar, tail))
            }
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
        let doorbell = |tail| hw::tx_doorbell(bar, tail);
        let Ok(skb) = skb.pad_to(MIN_LEN) else {
            return self.ring.finish_dropped(queue, more, doorbell);
        };
        let context = match skb.partial_checksum().map(TxContext::new).transpose() {
            Ok(context) => context.map(TxContext::into_raw),
            // It was asked, see `can_insert_checksum()`.
            Err(_) => {
                skb.drop_with(DropReason::NotSpecified);
                return self.ring.finish_dropped(queue, more, doorbell);
            }
        };
        let word = match context {
            Some(_) => TxWord::with_checksum(),
            None => TxWord::legacy(),
        };
        let contexts = usize::from(context.is_some() && context != self.context);

        let submitted = self.ring.submit(skb, contexts, |entry| match entry {
            Entry::Context(_) => {
                let word = TxWord::zeroed().with_extended(true);
                [context.unwrap_or(0), word.into_raw()]
            }
            Entry::Segment(segment) => word.of(segment),
        });
        if contexts > 0 && submitted.is_ok() {
            self.context = context;
        }
        self.ring.finish(queue, submitted, more, doorbell)
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
        let verified = RxDescriptor::is_verified;

        assert!(verified(0x23));
        assert!(!verified(0x03));
        assert!(!verified(0x23 | 1 << 29));
        assert!(!verified(0x23 | 1 << 30));
    }
}
