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
        napi::{
            Napi,
            Poll, //
        },
        page_pool,
        queue::RingLen,
        rx_list::RxList, //
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

mod buffers;
mod frames;

use self::{
    buffers::{
        Buffers,
        Halves,
        Pages,
        HEADER_LEN, //
    },
    frames::{
        Frame,
        Wanted,
        Words, //
    }, //
};

pub(crate) use self::buffers::FrameLimit;

/// Refill when this many buffers are missing: a batch is cheaper than single buffers.
const REFILL_BATCH: usize = 32;

/// Totals of one [`Ring::poll`], added to the counters once at its end.
#[derive(Default)]
struct Received {
    packets: usize,
    bytes: u64,
    csum_good: u64,
}

/// Number of buffers that the pool can cache.
///
/// The pages of forwarded packets return in batches, from a transmit ring, also when the receive
/// ring is full. Pages that do not fit in the pool are unmapped and freed, and others have to be
/// allocated and mapped later.
fn pool_buffers(len: RingLen) -> u32 {
    // CAST: At most `RingLen::MAX`.
    2 * len.get() as u32
}

/// The receive ring of a queue, with buffers for the frame limit that it was made for.
pub(crate) enum RxRing {
    Halves(Ring<Halves>),
    Pages(Ring<Pages>),
}

impl RxRing {
    /// Allocates a ring and its buffers. With `whole`, it fails if there is not memory for all of
    /// them.
    pub(crate) fn new(
        dev: &device::Device<Bound>,
        napi: &Napi,
        pair: Pair,
        len: RingLen,
        limit: FrameLimit,
        whole: bool,
        counters: &PollCounters,
    ) -> Result<Self> {
        if limit.fits_half() {
            Ring::new(dev, napi, pair, len, whole, counters).map(Self::Halves)
        } else {
            Ring::new(dev, napi, pair, len, whole, counters).map(Self::Pages)
        }
    }

    /// Returns the register values that describe the ring to the card.
    pub(crate) fn registers(&self) -> RxRegisters {
        match self {
            Self::Halves(ring) => ring.registers(),
            Self::Pages(ring) => ring.registers(),
        }
    }

    /// Receives up to `budget` frames.
    ///
    /// Returns their number, and whether the ring has been drained and refilled.
    // The choice is one per poll: what depends on the buffers are constants in the ring's loops.
    #[inline]
    pub(crate) fn poll(
        &mut self,
        bar: &Bar0<'_>,
        cx: &Poll<'_>,
        counters: &PollCounters,
    ) -> (usize, bool) {
        match self {
            Self::Halves(ring) => ring.poll(bar, cx, counters),
            Self::Pages(ring) => ring.poll(bar, cx, counters),
        }
    }
}

/// A receive ring with buffers of one sort.
pub(crate) struct Ring<F: Buffers> {
    pair: Pair,
    ring: page_pool::RxRing<F>,
    len: RingLen,
    frame: Frame,
}

impl<F: Buffers> Ring<F> {
    /// See [`RxRing::new`].
    fn new(
        dev: &device::Device<Bound>,
        napi: &Napi,
        pair: Pair,
        len: RingLen,
        whole: bool,
        counters: &PollCounters,
    ) -> Result<Self> {
        let ring = page_pool::RxRing::new(dev, napi, len, pool_buffers(len))?;

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

    fn registers(&self) -> RxRegisters {
        RxRegisters {
            pair: self.pair,
            base: self.ring.dma_address(),
            bytes: self.len.bytes(),
            buffer_kib: F::KIB,
            needs_limit: F::NEEDS_LIMIT,
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

    /// See [`RxRing::poll`].
    #[inline]
    fn poll(&mut self, bar: &Bar0<'_>, cx: &Poll<'_>, counters: &PollCounters) -> (usize, bool) {
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
                    let taken = self.frame.take(buffer, words, wanted, list, counters);
                    if let Some((len, verified)) = taken {
                        left -= 1;
                        bytes += u64::from(len);
                        unverified += u64::from(!verified);
                    }
                }
                // The buffer went back to the pool. Its frame is lost.
                None => {
                    counters.rx_bad_descriptors.add(1);
                    self.frame.discard(words.status);
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
    buffer_kib: u32,
    needs_limit: bool,
}

impl RxRegisters {
    /// Whether the ring has buffers for all frames up to a limit.
    pub(crate) fn takes(&self, limit: FrameLimit) -> bool {
        !self.needs_limit || limit.fits_half()
    }

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
                .with_bsizepacket(Bounded::<u32, 5>::from_expr(self.buffer_kib & 0x1f)),
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
