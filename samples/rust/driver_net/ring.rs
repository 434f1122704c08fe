// SPDX-License-Identifier: GPL-2.0

//! The descriptor rings.
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
        inflight::{
            self,
            Completed,
            Descriptors,
            Limits,
            Refusal,
            TxConsumer,
            TxDesc,
            TxProducer, //
        },
        napi::{
            Napi,
            Poll, //
        },
        page_pool::{
            self,
            Layout,
            RxFormat, //
        },
        queue::{
            RingSize,
            TxQueue,
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
            DropReason,
            TxSkBuff, //
        }, //
    },
    prelude::*, //
};

use crate::hw::{
    self,
    Bar0, //
};

/// Number of descriptors of a ring.
pub(crate) const LEN: RingSize = RingSize::of::<256>();

// [rx]
bitfield! {
    /// Second word of a receive descriptor, as the NIC writes it back.
    struct RxStatus(u64) {
        /// Number of bytes in the buffer.
        47:32   len;
        /// The frame is damaged.
        29:29   error => bool;
        /// This is the frame's last buffer.
        1:1     end => bool;
        /// The NIC is done with the descriptor.
        0:0     done => bool;
    }
}

/// The NIC's receive descriptors.
struct Format;

impl RxFormat for Format {
    /// Behind the part of a page that the NIC writes to, there is room to build an SKB.
    const LAYOUT: Layout = match Layout::new(64, hw::BUFFER_KIB * 1024) {
        Some(layout) => layout,
        None => panic!("the buffer does not fit into a page"),
    };

    const DONE: u64 = RxStatus::DONE_MASK;

    fn len(status: u64) -> u16 {
        RxStatus::from_raw(status).len().cast::<u16>().get()
    }
}

/// Packets and bytes that a poll has received.
#[derive(Default)]
pub(crate) struct Received {
    pub(crate) packets: usize,
    pub(crate) bytes: usize,
    /// The ring has no more of them.
    pub(crate) has_drained: bool,
}

/// Tells frames of one buffer from parts of longer ones.
#[derive(Default)]
struct Frames {
    /// The next buffer belongs to a frame that has begun before.
    goes_on: bool,
}

impl Frames {
    /// Whether the buffer with this status, which follows the one before, holds a whole frame.
    fn is_whole(&mut self, status: RxStatus) -> bool {
        let begins = !core::mem::replace(&mut self.goes_on, !status.end());

        begins && status.end()
    }
}

/// The receive ring. Only the poll function uses it.
pub(crate) struct RxRing {
    ring: page_pool::RxRing<Format>,
    frames: Frames,
}

impl RxRing {
    /// Allocates the ring and all of its buffers.
    pub(crate) fn new(dev: &device::Device<Bound>, napi: &Napi) -> Result<Self> {
        let ring = page_pool::RxRing::new(dev, napi, LEN, LEN.get() as u32)?;

        if ring.missing() > 0 {
            return Err(ENOMEM);
        }
        Ok(Self {
            ring,
            frames: Frames::default(),
        })
    }

    /// The address of the ring for the NIC.
    pub(crate) fn dma_address(&mut self, napi: &Napi) -> Result<u64> {
        self.ring.dma_address(napi)
    }

    /// Replaces the used buffers. Returns whether the NIC has any.
    pub(crate) fn refill(&mut self, bar: &Bar0<'_>, cx: &Poll<'_>) -> bool {
        if self.ring.refill(cx).is_ok_and(|added| added > 0) {
            // Ordered after the writes to the descriptors.
            hw::rx_doorbell(bar, self.ring.tail());
        }
        self.ring.in_use() > 0
    }

    /// Receives frames, as many as the budget allows.
    pub(crate) fn receive(&mut self, cx: &Poll<'_>) -> Received {
        let mut received = Received::default();
        // Its packets go to the stack when it is dropped.
        let mut list = RxList::new(cx);
        let Ok(mut ring) = self.ring.poll(cx) else {
            return received;
        };

        while received.packets < cx.budget() {
            let Some(done) = ring.next() else {
                received.has_drained = true;
                break;
            };
            let status = RxStatus::from_raw(done.status);
            // No frame within the MTU takes more than one buffer. All buffers of others are
            // dropped: the last one looks like a frame, with contents that a sender chose.
            let is_whole = self.frames.is_whole(status);

            // The NIC is not to be trusted: there is no buffer if its length makes no sense.
            let Some(buffer) = done.buffer else {
                continue;
            };
            if status.error() || !is_whole {
                continue;
            }
            received.packets += 1;
            received.bytes += usize::from(buffer.len());
            list.push_buffer(buffer, Protocol::Other, false, RxOffloads::default());
        }

        // Frames that there is no memory for.
        let lost = list.build();
        received.packets = received.packets.saturating_sub(lost.frames);
        received.bytes = received.bytes.saturating_sub(lost.bytes);
        received
    }
}
// [/rx]

// [tx]
bitfield! {
    /// Second word of a transmit descriptor.
    struct TxWord(u64) {
        /// Length of the packet.
        63:46   packet_len;
        /// The NIC has sent the packet; it writes this.
        32:32   done => bool;
        /// This is an advanced descriptor.
        29:29   advanced => bool;
        /// Report when the packet has been sent.
        27:27   report => bool;
        /// Insert the frame check sequence.
        25:25   insert_fcs => bool;
        /// This is the packet's last descriptor.
        24:24   end => bool;
        /// Kind of the descriptor; 3 for data.
        23:20   kind;
        /// Length of the buffer.
        15:0    len;
    }
}

/// The most descriptors that a packet takes.
const MOST: usize = 40;

/// The limits of the NIC.
const LIMITS: Limits = Limits {
    segment_len: 0x8000,
    // 15.5 KiB, with the check sequence.
    packet_len: 15 * 1024 + 512 - 4,
    descriptors: MOST,
};

/// The queue is woken when there is room for two packets.
const WAKE_AT: usize = 2 * MOST;

/// Makes both ends of the transmit ring.
pub(crate) fn transmit<'a>(
    dev: &'a device::Device<Bound>,
    napi: &Napi,
) -> Result<(TxRing<'a>, TxCompletion<'a>)> {
    let desc = Descriptors::new(dev, napi, LEN)?;
    let (producer, consumer) = inflight::pair(dev, napi, LEN, LIMITS)?;

    Ok((
        TxRing {
            desc: desc.clone(),
            producer,
        },
        TxCompletion { desc, consumer },
    ))
}

/// The filling end of the transmit ring, for the holder of the queue's lock.
pub(crate) struct TxRing<'a> {
    desc: Descriptors<'a>,
    producer: TxProducer<'a>,
}

impl TxRing<'_> {
    /// The address of the ring for the NIC.
    pub(crate) fn dma_address(&self) -> u64 {
        self.desc.dma_address()
    }

    /// Puts a packet into the ring, or drops it.
    pub(crate) fn xmit<'call>(
        &mut self,
        bar: &Bar0<'_>,
        queue: &TxQueue<'_>,
        skb: TxSkBuff<'call>,
        more: bool,
    ) -> Xmit<'call> {
        let Ok(packet) = TxWord::zeroed().try_with_packet_len(skb.len()) else {
            return self.refuse(bar, queue, skb, more);
        };
        let packet = packet
            .with_advanced(true)
            .with_insert_fcs(true)
            .with_const_kind::<3>();

        // Maps the packet and takes it over. The closure writes the descriptors.
        let desc = &self.desc;
        let submitted = self.producer.submit(skb, 0, |index, entry| {
            if let TxDesc::Segment(segment) = entry {
                let word = packet
                    .with_len(segment.len as u16)
                    .with_end(segment.last)
                    .with_report(segment.last);
                desc.write(index, [segment.addr, word.into_raw()]);
            }
        });

        match submitted {
            Ok(submitted) => {
                // Stops in time, so that there is always room for another packet.
                queue.stop_if_low(|| self.producer.free(), MOST, WAKE_AT);
                if queue.sent(submitted.bytes, more) {
                    hw::tx_doorbell(bar, self.producer.next_slot());
                }
                Xmit::Taken
            }
            Err(refused) if refused.reason == Refusal::Full && queue.is_stopped() => {
                Xmit::Busy(refused.skb)
            }
            Err(refused) => self.refuse(bar, queue, refused.skb, more),
        }
    }

    /// Drops a packet, but not the doorbell that earlier ones have deferred.
    fn refuse<'call>(
        &self,
        bar: &Bar0<'_>,
        queue: &TxQueue<'_>,
        skb: TxSkBuff<'call>,
        more: bool,
    ) -> Xmit<'call> {
        skb.drop_with(DropReason::NotSpecified);
        if !more || queue.is_stopped() {
            hw::tx_doorbell(bar, self.producer.next_slot());
        }
        Xmit::Taken
    }
}

/// The completing end of the transmit ring, for the poll function.
pub(crate) struct TxCompletion<'a> {
    desc: Descriptors<'a>,
    consumer: TxConsumer<'a>,
}

impl TxCompletion<'_> {
    /// Frees the packets that the NIC has sent, in bulk.
    pub(crate) fn complete(&mut self, cx: &Poll<'_>, freed: &BulkStats) -> Completed {
        let desc = &self.desc;
        let mut list = SkbFreeList::new(cx, freed);
        let sent = self.consumer.complete(&mut list, LEN.get(), |index| {
            TxWord::from_raw(desc.status(index)).done()
        });

        cx.tx_queue()
            .completed(sent.packets, sent.bytes, || self.consumer.free(), WAKE_AT);
        sent
    }
}
// [/tx]

#[kunit_tests(rust_driver_net_ring)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_frame_is_no_frame() {
        let mut frames = Frames::default();
        let ends = [true, false, false, true, true, false, true, true];
        let whole = ends.map(|end| frames.is_whole(RxStatus::zeroed().with_end(end)));

        assert_eq!(whole, [true, false, false, false, true, false, false, true]);
    }
}
