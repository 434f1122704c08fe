// SPDX-License-Identifier: GPL-2.0

//! The receive ring (datasheet 7.1, Receive Functionality).

use kernel::{
    device::{
        self,
        Bound, //
    },
    io::register::Array,
    net::{
        device::{
            Feature,
            Features, //
        },
        napi::{
            Napi,
            Poll,
            RxClosed,
            RxStopped, //
        },
        page_pool::AnyRxRing,
        queue::RingSize,
        rx_list::RxList,
        xdp::Attachment, //
    },
    prelude::*,
    sync::Arc, //
};

use crate::{
    irq,
    mmio::Bar0,
    ptp::RxStamps,
    regs::queue::*,
    stats::PollCounters,
    tx::{
        self,
        TxRegisters, //
    }, //
};

mod buffers;
mod frames;
mod lro;
mod plain;
mod registers;
mod xdp;
mod xsk;

use self::{
    buffers::{
        Buffers,
        Halves,
        Pages, //
    },
    lro::LroRing,
    plain::Plain,
    xdp::XdpSource,
    xsk::XskQueue, //
};

pub(crate) use self::{
    buffers::{
        FrameLimit,
        Xdp,
        MAX_XDP_MTU, //
    },
    registers::{
        set_drop,
        RxRegisters, //
    },
    xsk::max_mtu, //
};

/// Refill when this many buffers are missing: a batch is cheaper than single buffers.
const REFILL_BATCH: usize = 32;

/// Totals of one batch, added to the counters before it is delivered.
#[derive(Default)]
pub(crate) struct Received {
    packets: usize,
    /// Those of them that the stack does not get.
    consumed: usize,
    /// Frames that there was no memory for. They are part of the budget as well.
    lost: usize,
    /// Whether the NIC had not written back any more.
    has_drained: bool,
    bytes: u64,
    csum_good: u64,
}

/// The work of the NIC that gives descriptors another meaning. A ring has it from one start to the
/// next, whatever features the device has meanwhile.
#[derive(Clone, Copy)]
pub(crate) struct Offloads {
    /// It aggregates packets of TCP connections.
    lro: bool,
    /// It strips VLAN tags.
    strips: bool,
}

impl Offloads {
    /// Those for a device with these features.
    pub(crate) fn of(features: Features) -> Self {
        Self {
            lro: features.contains(Feature::Lro),
            strips: features.contains(Feature::VlanStrip),
        }
    }

    /// The same, but aggregating packets as others do.
    pub(crate) fn with_lro(self, lro: bool) -> Self {
        Self { lro, ..self }
    }
}

/// Number of buffers that the pool can cache.
///
/// The pages of forwarded packets return in batches, from a transmit ring, also when the receive
/// ring is full. Pages that do not fit in the pool are unmapped and freed, and others have to be
/// allocated and mapped later.
fn pool_buffers(len: RingSize) -> u32 {
    // CAST: At most `RingSize::MAX`.
    2 * len.get() as u32
}

/// The receive ring of a queue, with buffers for the frame limit that it was made for.
pub(crate) enum RxRing {
    Halves(Ring<Plain<Halves>>),
    Pages(Ring<Plain<Pages>>),
    /// The NIC aggregates frames.
    Lro(Ring<LroRing>),
    /// A program sees the frames, if there is one.
    Xdp(Ring<XdpSource>),
    /// The same, with memory of users.
    Xsk(XskQueue),
}

impl RxRing {
    /// Allocates a ring and its buffers. With `whole`, it fails if there is not memory for all of
    /// them. It is one for programs if `program` is in use.
    #[expect(clippy::too_many_arguments, reason = "all of them describe the ring")]
    pub(crate) fn new(
        dev: &device::Device<Bound>,
        napi: &Napi,
        pair: Pair,
        len: RingSize,
        limit: FrameLimit,
        offloads: Offloads,
        program: &Arc<Attachment>,
        whole: bool,
        counters: &PollCounters,
    ) -> Result<Self> {
        let Offloads { lro, strips } = offloads;

        if let Some(pool) = napi.xsk_pool() {
            XskQueue::new(dev, napi, pair, len, limit, strips, program, &pool).map(Self::Xsk)
        } else if lro {
            let source = LroRing::new(dev, napi, len)?;
            Ring::new(source, pair, len, strips, whole, counters).map(Self::Lro)
        } else if program.is_in_use() {
            let source = XdpSource::new(dev, napi, len, program)?;
            Ring::new(source, pair, len, strips, whole, counters).map(Self::Xdp)
        } else if limit.fits_halves() {
            let source = Plain::new(dev, napi, len)?;
            Ring::new(source, pair, len, strips, whole, counters).map(Self::Halves)
        } else {
            let source = Plain::new(dev, napi, len)?;
            Ring::new(source, pair, len, strips, whole, counters).map(Self::Pages)
        }
    }

    /// Stops the queue while others are running, and waits until the NIC accesses neither its ring
    /// nor its buffers.
    pub(crate) fn stop(&self, bar: &Bar0<'_>, pair: Pair) -> Result {
        registers::stop(bar, pair)?;
        match self {
            Self::Xdp(_) => tx::stop(bar, pair.xdp_tx())?,
            Self::Xsk(_) => {
                tx::stop(bar, pair.xdp_tx())?;
                irq::set_xdp_tx(bar, pair, false)?;
            }
            _ => (),
        }
        Ok(())
    }

    /// Returns the register values that describe the ring to the NIC.
    pub(crate) fn registers(&mut self, napi: &Napi) -> Result<RxRegisters> {
        match self {
            Self::Halves(ring) => ring.registers(napi),
            Self::Pages(ring) => ring.registers(napi),
            Self::Lro(ring) => ring.registers(napi),
            Self::Xdp(ring) => ring.registers(napi),
            Self::Xsk(ring) => ring.registers(napi),
        }
    }

    /// As [`Self::registers`], of a ring that may have been in use: the NIC begins with the first
    /// descriptor, with all buffers that it has, and strips tags or not. What it has completed is
    /// not received.
    pub(crate) fn rewind(
        &mut self,
        stopped: RxStopped<'_>,
        strips: bool,
        counters: &PollCounters,
    ) -> Result<RxRegisters> {
        match self {
            Self::Halves(ring) => ring.rewind(stopped, strips, counters),
            Self::Pages(ring) => ring.rewind(stopped, strips, counters),
            Self::Lro(ring) => ring.rewind(stopped, strips, counters),
            Self::Xdp(ring) => ring.rewind(stopped, strips, counters),
            Self::Xsk(ring) => ring.rewind(stopped, strips),
        }
    }

    /// Counts the frames that programs have sent back, and that are lost with the ring.
    pub(crate) fn count_lost(&self, closed: &RxClosed<'_>, counters: &PollCounters) {
        if let Self::Xdp(ring) = self {
            counters.rx_xdp_lost.add(ring.source.unsent(closed) as u64);
        }
    }

    /// Receives up to `budget` frames.
    ///
    /// Returns their number, and whether the ring has been drained and refilled.
    // The choice is one per poll: what depends on the buffers are constants in the ring's loops.
    #[inline]
    pub(crate) fn poll(
        &mut self,
        stamps: RxStamps<'_>,
        cx: &Poll<'_>,
        counters: &PollCounters,
    ) -> (usize, bool) {
        match self {
            Self::Halves(ring) => ring.poll(stamps, cx, counters),
            Self::Pages(ring) => ring.poll(stamps, cx, counters),
            Self::Lro(ring) => ring.poll(stamps, cx, counters),
            Self::Xdp(ring) => ring.poll(stamps, cx, counters),
            Self::Xsk(ring) => ring.poll(stamps, cx, counters),
        }
    }
}

/// The descriptors and buffers of a ring, and the frames that have not ended.
pub(crate) trait Source: Sized {
    /// The buffers.
    type Format: Buffers;
    /// The ring for them.
    type Ring: AnyRxRing<Format = Self::Format>;
    /// Whether the NIC aggregates frames.
    const LRO: bool;

    /// The ring.
    fn ring(&self) -> &Self::Ring;

    /// The same.
    fn ring_mut(&mut self) -> &mut Self::Ring;

    /// Whether there may be something to take.
    #[inline(always)]
    fn has_work(&self, cx: &Poll<'_>) -> bool {
        self.ring().as_rx_ring().may_have_completed(cx)
    }

    /// Forgets a frame whose rest is not to come.
    fn forget_frame(&mut self) {}

    /// The address of the transmit ring for frames that programs send back, if there is one: see
    /// [`AnyRxRing::dma_address`].
    fn tx_address(&mut self, _napi: &Napi) -> Result<Option<u64>> {
        Ok(None)
    }

    /// As [`Self::tx_address`], of a ring that may have been in use, whose frames are lost.
    fn rewind_tx(
        &mut self,
        _stopped: &RxStopped<'_>,
        _counters: &PollCounters,
    ) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Number of frames in that ring that the NIC has not sent, which are lost.
    fn unsent(&self, _closed: &RxClosed<'_>) -> usize {
        0
    }

    /// Rings the doorbell of that ring, if there are new frames.
    #[inline(always)]
    fn doorbell(&mut self, _bar: &Bar0<'_>, _pair: Pair, _counters: &PollCounters) {}

    /// Moves completed frames to the list, up to `budget`. With `strips`, the NIC has stripped
    /// their VLAN tags.
    fn take(
        &mut self,
        cx: &Poll<'_>,
        list: &mut RxList<'_>,
        strips: bool,
        stamps: RxStamps<'_>,
        budget: usize,
        counters: &PollCounters,
    ) -> Received;
}

/// A receive ring of one sort.
pub(crate) struct Ring<S: Source> {
    pair: Pair,
    len: RingSize,
    /// The NIC strips VLAN tags, and reports them by descriptors.
    strips: bool,
    source: S,
}

impl<S: Source> Ring<S> {
    /// See [`RxRing::new`].
    fn new(
        source: S,
        pair: Pair,
        len: RingSize,
        strips: bool,
        whole: bool,
        counters: &PollCounters,
    ) -> Result<Self> {
        if source.ring().as_rx_ring().missing() > 0 {
            if whole {
                return Err(ENOMEM);
            }
            counters.rx_no_buffer.add(1);
        }
        Ok(Self {
            pair,
            len,
            strips,
            source,
        })
    }

    /// See [`RxRing::rewind`].
    fn rewind(
        &mut self,
        stopped: RxStopped<'_>,
        strips: bool,
        counters: &PollCounters,
    ) -> Result<RxRegisters> {
        self.source.forget_frame();
        self.strips = strips;
        let tx = self.source.rewind_tx(&stopped, counters)?;
        let base = self.source.ring_mut().rewind(stopped)?;

        Ok(self.registers_at(base, tx))
    }

    fn registers(&mut self, napi: &Napi) -> Result<RxRegisters> {
        let tx = self.source.tx_address(napi)?;
        let base = self.source.ring_mut().dma_address(napi)?;

        Ok(self.registers_at(base, tx))
    }

    fn registers_at(&self, base: u64, tx: Option<u64>) -> RxRegisters {
        RxRegisters {
            pair: self.pair,
            base,
            bytes: self.len.bytes(),
            buffer_kib: S::Format::KIB,
            longest: S::Format::LONGEST,
            lro: S::LRO,
            strips: self.strips,
            tail: self.source.ring().as_rx_ring().tail() as u32,
            xdp_tx: tx.map(|base| TxRegisters::new(self.pair.xdp_tx(), base, self.len.bytes())),
            xsk: false,
        }
    }

    /// Replaces used buffers and moves the tail register, if that is worth it. Returns false if so
    /// few buffers are left that polling has to continue.
    #[inline(always)]
    fn refill(&mut self, bar: &Bar0<'_>, cx: &Poll<'_>, counters: &PollCounters) -> bool {
        let ring = self.source.ring();
        let missing = ring.as_rx_ring().missing() + ring.recycled();

        missing < REFILL_BATCH || self.refill_missing(missing, bar, cx, counters)
    }

    /// As [`Self::refill`], of so many buffers.
    #[inline(never)]
    fn refill_missing(
        &mut self,
        missing: usize,
        bar: &Bar0<'_>,
        cx: &Poll<'_>,
        counters: &PollCounters,
    ) -> bool {
        let ring = self.source.ring_mut();
        let added = ring.refill(cx).unwrap_or(0);
        if added < missing {
            counters.rx_no_buffer.add(1);
        }
        if added > 0 {
            // The register write is ordered after the writes to the descriptors.
            let tail = ring.as_rx_ring().tail() as u32;
            bar.write(RDT::at(self.pair.at()), tail.into());
        }

        // With hardly any buffers left, the NIC may raise no interrupt, and nothing would retry.
        ring.as_rx_ring().in_use() >= REFILL_BATCH
    }

    /// See [`RxRing::poll`].
    #[inline]
    fn poll(
        &mut self,
        stamps: RxStamps<'_>,
        cx: &Poll<'_>,
        counters: &PollCounters,
    ) -> (usize, bool) {
        let bar = stamps.bar;
        let mut left = cx.budget();
        let mut packets = 0;

        let has_drained = loop {
            // In most polls that follow few frames, or that are for sent ones, there is nothing.
            if !self.source.has_work(cx) {
                break self.refill(bar, cx, counters);
            }
            let (received, filled) = {
                let mut list = RxList::new(cx);
                let received = self
                    .source
                    .take(cx, &mut list, self.strips, stamps, left, counters);
                let filled = self.refill(bar, cx, counters);

                if received.packets > 0 {
                    counters.rx_packets.add(received.packets as u64);
                    counters.rx_bytes.add(received.bytes);
                    counters.rx_csum_good.add(received.csum_good);
                }
                // The end of this block delivers the list: the NIC can fill its new buffers while
                // the stack handles these frames.
                (received, filled)
            };

            packets += received.packets;
            left = left.saturating_sub(received.packets + received.lost);
            // It has, if the sender waits for answers of the stack and got the first ones: these
            // frames need no interrupt.
            if left == 0 || received.packets == received.consumed || !filled {
                break received.has_drained && filled;
            }
        };
        self.source.doorbell(bar, self.pair, counters);
        (packets, has_drained)
    }
}

impl Received {
    /// The totals of a budget of which there are `left`, with the frames on the list.
    #[inline(always)]
    fn of(
        list: &mut RxList<'_>,
        counters: &PollCounters,
        budget: usize,
        left: usize,
        bytes: u64,
        unverified: u64,
    ) -> Self {
        let lost = list.build();
        if lost.frames != 0 {
            counters.rx_no_skb.add(lost.frames as u64);
        }
        let packets = (budget - left).saturating_sub(lost.frames);
        Self {
            packets,
            consumed: 0,
            lost: lost.frames,
            // Else the budget has ended the loop.
            has_drained: left != 0,
            bytes: bytes.saturating_sub(lost.bytes as u64),
            csum_good: (packets as u64)
                .saturating_sub(unverified.saturating_sub(lost.unverified as u64)),
        }
    }
}
