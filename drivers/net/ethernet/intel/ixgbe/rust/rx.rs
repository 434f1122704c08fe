// SPDX-License-Identifier: GPL-2.0

//! The receive ring (datasheet 7.1, Receive Functionality).

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
        device::{
            Feature,
            Features, //
        },
        napi::{
            Napi,
            Poll, //
        },
        page_pool::{
            self,
            CpuBuffer,
            Layout,
            RxFormat, //
        },
        queue::RingLen,
        rx_list::{
            RxList,
            RxOffloads, //
        },
        skbuff::UniqueSkBuff, //
    },
    num::Bounded,
    prelude::*,
    time::Delta, //
};

use crate::{
    desc::{
        RxInfo,
        RxStatus, //
    },
    hw::{
        self,
        Bar0, //
    },
    regs::queue::*,
    stats::PollCounters, //
};

/// Number of bytes that the card may write into a buffer, a multiple of 1 KiB.
///
/// The rest of the page holds the headroom and `struct skb_shared_info`, so that an SKB is built
/// around the page without copying.
const BUFFER_LEN: u16 = 3072;

/// Room in front of a frame, for headers added on forwarding.
const HEADROOM: u16 = 128;

/// Length of an Ethernet header. The card does not receive shorter frames.
const HEADER_LEN: u16 = 14;

/// Advanced receive descriptors, see [`RxStatus`].
struct Format;

impl RxFormat for Format {
    const LAYOUT: Layout = match Layout::new(HEADROOM, BUFFER_LEN) {
        Some(layout) => layout,
        None => panic!("the buffer does not fit into a page"),
    };

    const DONE: u64 = RxStatus::DD_MASK;

    #[inline(always)]
    fn len(status: u64) -> u16 {
        RxStatus::from_raw(status).pkt_len().cast::<u16>().get()
    }
}

/// Refill when this many buffers are missing: a batch is cheaper than single buffers.
const REFILL_BATCH: usize = 32;

/// A frame whose last buffer has not arrived yet.
enum Frame {
    /// No frame is pending: the next buffer starts one.
    None,
    /// The buffers so far.
    Partial(UniqueSkBuff),
    /// The frame had an error: drop its remaining buffers.
    Discard,
}

/// The words of a descriptor that the card has completed.
#[derive(Clone, Copy)]
struct Words {
    status: RxStatus,
    info: RxInfo,
}

/// The results of the card's work that the stack wants, as the bits of descriptors that tell of
/// them.
#[derive(Clone, Copy)]
struct Wanted {
    hash: u64,
    tag: u64,
    checksum: u64,
}

impl Wanted {
    /// Those of the features that are on.
    fn of(features: Features) -> Self {
        let mask = |feature, mask| if features.contains(feature) { mask } else { 0 };

        Self {
            hash: mask(Feature::RxHash, RxInfo::RSS_TYPE_MASK),
            tag: mask(Feature::VlanStrip, RxStatus::VP_MASK),
            // With the feature off, the stack verifies all checksums itself.
            checksum: mask(Feature::RxChecksum, RxStatus::L4I_MASK),
        }
    }

    /// Returns whether the card has verified the checksum of a frame without errors.
    #[inline(always)]
    fn is_verified(self, status: RxStatus) -> bool {
        status.into_raw() & self.checksum != 0
    }

    /// Reads the hash and the VLAN tag.
    fn offloads(self, words: Words) -> RxOffloads {
        RxOffloads {
            hash: if self.hash != 0 {
                words.info.hash()
            } else {
                None
            },
            vlan: if self.tag != 0 {
                words.status.vlan_tag()
            } else {
                None
            },
        }
    }
}

/// Totals of one [`RxRing::poll`], added to the counters once at its end.
#[derive(Default)]
struct Received {
    packets: usize,
    bytes: u64,
    csum_good: u64,
}

/// Number of pages that the pool can cache.
///
/// The pages of forwarded packets return in batches, from a transmit ring, also when the receive
/// ring is full. Pages that do not fit in the pool are unmapped and freed, and others have to be
/// allocated and mapped later.
fn pool_pages(len: RingLen) -> u32 {
    // CAST: At most `RingLen::MAX`.
    2 * len.get() as u32
}

/// The receive ring of a queue.
pub(crate) struct RxRing {
    pair: Pair,
    ring: page_pool::RxRing<Format>,
    len: RingLen,
    frame: Frame,
}

impl RxRing {
    /// Allocates a ring and its buffers. With `whole`, it fails if there is not memory for all of
    /// them.
    pub(crate) fn new(
        dev: &device::Device<Bound>,
        napi: &Napi,
        pair: Pair,
        len: RingLen,
        whole: bool,
        counters: &PollCounters,
    ) -> Result<Self> {
        let ring = page_pool::RxRing::new(dev, napi, len, pool_pages(len))?;

        if ring.missing() > 0 {
            if whole {
                return Err(ENOMEM);
            }
            counters.rx_no_buffer.add(1);
        }
        Ok(Self {
            pair,
            ring,
            len,
            frame: Frame::None,
        })
    }

    /// Returns the register values that describe the ring to the card.
    pub(crate) fn registers(&self) -> RxRegisters {
        RxRegisters {
            pair: self.pair,
            base: self.ring.dma_address(),
            bytes: self.len.bytes(),
            tail: self.ring.tail() as u32,
        }
    }

    /// Replaces used buffers and moves the tail register. Returns false if so few buffers are left
    /// that polling has to continue.
    #[inline(never)]
    fn refill(&mut self, bar: &Bar0<'_>, cx: &Poll<'_>, counters: &PollCounters) -> bool {
        let missing = self.ring.missing();
        if missing < REFILL_BATCH {
            return true;
        }

        let added = self.ring.refill(cx).unwrap_or(0);
        if added < missing {
            counters.rx_no_buffer.add(1);
        }
        if added > 0 {
            // The register write is ordered after the writes to the descriptors.
            bar.write(RDT::at(self.pair.at()), (self.ring.tail() as u32).into());
        }

        // With hardly any buffers left, the card may raise no interrupt, and nothing would retry.
        self.ring.in_use() >= REFILL_BATCH
    }

    /// Receives up to `budget` frames.
    ///
    /// Returns their number, and whether the ring has been drained and refilled.
    #[inline]
    pub(crate) fn poll(
        &mut self,
        bar: &Bar0<'_>,
        cx: &Poll<'_>,
        counters: &PollCounters,
    ) -> (usize, bool) {
        let mut left = cx.budget().packets();
        let mut packets = 0;

        loop {
            let mut list = RxList::new(cx);

            let received = self.take(cx, &mut list, left, counters);
            let filled = self.refill(bar, cx, counters);

            if received.packets > 0 {
                counters.rx_packets.add(received.packets as u64);
                counters.rx_bytes.add(received.bytes);
                counters.rx_csum_good.add(received.csum_good);
            }
            // The card can fill its new buffers while the stack handles these frames.
            list.deliver();

            packets += received.packets;
            left = left.saturating_sub(received.packets);
            // It has, if the sender waits for answers and got the first ones: these frames need no
            // interrupt.
            if left == 0 || received.packets == 0 || !filled {
                return (packets, left > 0 && filled);
            }
        }
    }

    /// Moves completed frames to the list, up to `budget`.
    // Not inlined: in a function of its own, the loop's variables stay in registers.
    #[inline(never)]
    fn take(
        &mut self,
        cx: &Poll<'_>,
        list: &mut RxList<'_>,
        budget: usize,
        counters: &PollCounters,
    ) -> Received {
        let wanted = Wanted::of(cx.device().features());
        let Ok(mut ring) = self.ring.poll(cx) else {
            // This is not the poll function of this ring, or it runs from netpoll. Neither happens.
            return Received::default();
        };
        let mut left = budget;
        let mut bytes = 0;
        // Hardly any: these are counted, rather than the others.
        let mut unverified = 0;

        while left != 0 {
            let Some(done) = ring.next() else {
                break;
            };
            let words = Words {
                status: RxStatus::from_raw(done.status),
                info: RxInfo::from_raw(done.info),
            };

            match done.buffer {
                // Fast path: nearly all frames have one buffer, no error, and nothing to report but
                // their checksum.
                Some(buffer)
                    if words.status.is_ordinary()
                        && !words.info.has_hash()
                        && buffer.len() >= HEADER_LEN
                        && matches!(self.frame, Frame::None) =>
                {
                    let verified = wanted.is_verified(words.status);

                    left -= 1;
                    bytes += u64::from(buffer.len());
                    unverified += u64::from(!verified);
                    list.push_buffer(buffer, words.info.protocol(), verified);
                }
                Some(buffer) => {
                    let frame = &mut self.frame;
                    let taken = Self::take_other(frame, buffer, words, wanted, list, counters);
                    if let Some((len, verified)) = taken {
                        left -= 1;
                        bytes += u64::from(len);
                        unverified += u64::from(!verified);
                    }
                }
                // The buffer went back to the pool. Its frame is lost.
                None => {
                    counters.rx_bad_descriptors.add(1);
                    Self::discard(&mut self.frame, words.status);
                }
            }
        }

        let lost = list.build();
        if lost.frames != 0 {
            counters.rx_no_skb.add(lost.frames as u64);
        }
        let packets = (budget - left).saturating_sub(lost.frames);
        Received {
            packets,
            bytes: bytes.saturating_sub(lost.bytes as u64),
            csum_good: (packets as u64).saturating_sub(unverified),
        }
    }

    /// Takes a buffer that is not a frame as most are. Returns the length of the frame that it
    /// completes, if that is received, and whether the card has verified its checksum.
    // Not inlined: the way of other frames stays short.
    #[inline(never)]
    fn take_other(
        frame: &mut Frame,
        buffer: CpuBuffer<'_>,
        words: Words,
        wanted: Wanted,
        list: &mut RxList<'_>,
        counters: &PollCounters,
    ) -> Option<(u32, bool)> {
        let Words { status, info } = words;
        let offloads = wanted.offloads(words);

        if status.is_whole_and_good() && buffer.len() >= HEADER_LEN && matches!(frame, Frame::None)
        {
            let len = buffer.len();
            let verified = wanted.is_verified(status);
            list.push_buffer_with(buffer, info.protocol(), verified, offloads);
            return Some((len.into(), verified));
        }

        let mut skb = Self::assemble(frame, buffer, status, counters)?;
        let len = skb.len();
        offloads.apply(&mut skb);
        let trusted = wanted.checksum != 0;
        let verified = Self::receive(skb, status, info, list, counters, trusted)?;
        Some((len, verified))
    }

    /// Adds a buffer to the current frame, and returns the frame when it is complete.
    #[inline(never)]
    fn assemble(
        current: &mut Frame,
        buffer: CpuBuffer<'_>,
        status: RxStatus,
        counters: &PollCounters,
    ) -> Option<UniqueSkBuff> {
        let frame = match core::mem::replace(current, Frame::Discard) {
            // The card fills a buffer before it uses the next one, so a whole header must be here.
            Frame::None if buffer.len() < HEADER_LEN => {
                counters.rx_bad_descriptors.add(1);
                Frame::Discard
            }
            Frame::None => match buffer.into_skb() {
                Some(skb) => Frame::Partial(skb),
                None => {
                    counters.rx_no_skb.add(1);
                    Frame::Discard
                }
            },
            Frame::Partial(mut skb) => {
                if buffer.add_to(&mut skb).is_ok() {
                    Frame::Partial(skb)
                } else {
                    // More buffers than the largest frame needs.
                    counters.rx_bad_descriptors.add(1);
                    Frame::Discard
                }
            }
            Frame::Discard => Frame::Discard,
        };

        if !status.eop() {
            *current = frame;
            return None;
        }

        *current = Frame::None;
        match frame {
            Frame::Partial(skb) => Some(skb),
            Frame::None | Frame::Discard => None,
        }
    }

    /// Drops the current frame, including its buffers still to come.
    #[cold]
    fn discard(frame: &mut Frame, status: RxStatus) {
        *frame = if status.eop() {
            Frame::None
        } else {
            Frame::Discard
        };
    }

    /// Hands a complete frame to the stack. Returns whether the card verified its checksum, or
    /// [`None`] if the frame was damaged and dropped.
    #[inline(never)]
    fn receive(
        mut skb: UniqueSkBuff,
        status: RxStatus,
        info: RxInfo,
        list: &mut RxList<'_>,
        counters: &PollCounters,
        trusted: bool,
    ) -> Option<bool> {
        if status.rxe() {
            counters.rx_frame_errors.add(1);
            return None;
        }

        let mut verified = false;
        match Checksum::of(status) {
            _ if !trusted => (),
            Checksum::Unknown => (),
            Checksum::Good => {
                skb.set_checksum_verified();
                verified = true;
            }
            Checksum::Bad => Self::bad_checksum(info, counters),
        }

        list.push(skb, info.protocol());
        Some(verified)
    }

    /// Counts a bad checksum. The stack checks it again, and drops the frame.
    #[cold]
    fn bad_checksum(info: RxInfo, counters: &PollCounters) {
        // The card reports UDP without a checksum as a checksum error.
        if !info.udp() {
            counters.rx_csum_errors.add(1);
        }
    }
}

/// The card's verdict on the checksums of a frame.
enum Checksum {
    /// The card did not check all of them.
    Unknown,
    /// They are correct.
    Good,
    /// One of them is wrong.
    Bad,
}

impl Checksum {
    #[inline]
    fn of(status: RxStatus) -> Self {
        if status.ipcs() && status.ipe() {
            Self::Bad
        } else if !status.l4i() {
            Self::Unknown
        } else if status.l4e() {
            Self::Bad
        } else {
            Self::Good
        }
    }
}

/// Sets whether these many queues, which are running, drop frames when they have no buffers left.
pub(crate) fn set_drop(bar: &Bar0<'_>, pairs: u16, drop: bool) {
    for pair in Pair::first(pairs) {
        bar.update(SRRCTL::at(pair.at()), |r| r.with_drop_en(drop));
    }
}

/// The register values that describe a receive ring to the card.
#[derive(Clone, Copy)]
pub(crate) struct RxRegisters {
    pair: Pair,
    base: u64,
    bytes: u32,
    tail: u32,
}

impl RxRegisters {
    /// Sets up the ring's registers and enables the queue (datasheet 4.6.7.1).
    ///
    /// All buffers pass to the card. With `drop`, the queue drops frames when it has no buffers
    /// left, rather than stalling the other queues. With `strip`, it strips VLAN tags.
    pub(crate) fn start(
        self,
        dev: &device::Device<Bound>,
        bar: &Bar0<'_>,
        drop: bool,
        strip: bool,
    ) -> Result {
        let at = self.pair.at();

        bar.write(RXDCTL::at(at), RXDCTL::zeroed());
        bar.write(RDBAL::at(at), ((self.base & 0xffff_ffff) as u32).into());
        bar.write(RDBAH::at(at), ((self.base >> 32) as u32).into());
        bar.write(RDLEN::at(at), self.bytes.into());
        bar.write(RDH::at(at), RDH::zeroed());
        bar.write(RDT::at(at), RDT::zeroed());

        bar.write(
            SRRCTL::at(at),
            SRRCTL::zeroed()
                .with_drop_en(drop)
                .with_const_desctype::<1>()
                .with_const_bsizeheader::<4>()
                .with_bsizepacket(Bounded::<u32, 5>::new::<{ BUFFER_LEN as u32 / 1024 }>()),
        );

        bar.write(
            RXDCTL::at(at),
            RXDCTL::zeroed().with_enable(true).with_vme(strip),
        );
        hw::poll(
            || bar.read(RXDCTL::at(at)),
            |r| r.enable(),
            Delta::from_micros(100),
            Delta::from_millis(100),
        )
        .inspect_err(|_| dev_err!(dev, "receive queue {} does not start\n", at))?;

        // The tail may only be written when the queue is enabled.
        bar.write(RDT::at(at), self.tail.into());
        Ok(())
    }
}
