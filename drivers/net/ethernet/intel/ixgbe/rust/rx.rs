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
            RxStopped, //
        },
        page_pool::{
            self,
            Assembler,
            Polling, //
        },
        queue::RingSize,
        rx_list::{
            RxList,
            RxOffloads, //
        },
        xdp::Attachment, //
    },
    num::Bounded,
    prelude::*,
    sync::Arc,
    time::{
        delay::sleep_at_least,
        Delta, //
    }, //
};

use crate::{
    desc::{
        RxInfo,
        RxStatus, //
    },
    mmio::{
        self,
        Bar0, //
    },
    regs::queue::*,
    stats::PollCounters, //
};

mod buffers;
mod frames;
mod lro;
mod xdp;

use self::{
    buffers::{
        Buffers,
        Halves,
        Pages,
        HEADER_LEN, //
    },
    frames::{
        Wanted,
        Words, //
    },
    lro::LroRing,
    xdp::XdpSource, //
};

pub(crate) use self::buffers::{
    FrameLimit,
    MAX_XDP_MTU, //
};

/// Refill when this many buffers are missing: a batch is cheaper than single buffers.
const REFILL_BATCH: usize = 32;

/// Totals of one batch, added to the counters before it is delivered.
#[derive(Default)]
pub(crate) struct Received {
    packets: usize,
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

        if lro {
            let source = LroRing::new(dev, napi, len)?;
            Ring::new(source, pair, len, strips, whole, counters).map(Self::Lro)
        } else if program.is_in_use() {
            let source = XdpSource::new(dev, napi, len, program)?;
            Ring::new(source, pair, len, strips, whole, counters).map(Self::Xdp)
        } else if limit.fits_half() {
            let source = Plain::new(dev, napi, len)?;
            Ring::new(source, pair, len, strips, whole, counters).map(Self::Halves)
        } else {
            let source = Plain::new(dev, napi, len)?;
            Ring::new(source, pair, len, strips, whole, counters).map(Self::Pages)
        }
    }

    /// Returns the register values that describe the ring to the NIC.
    pub(crate) fn registers(&mut self, napi: &Napi) -> Result<RxRegisters> {
        match self {
            Self::Halves(ring) => ring.registers(napi),
            Self::Pages(ring) => ring.registers(napi),
            Self::Lro(ring) => ring.registers(napi),
            Self::Xdp(ring) => ring.registers(napi),
        }
    }

    /// As [`Self::registers`], of a ring that may have been in use: the NIC begins with the first
    /// descriptor, with all buffers that it has, and strips tags or not. What it has completed is
    /// not received.
    pub(crate) fn rewind(&mut self, stopped: RxStopped<'_>, strips: bool) -> Result<RxRegisters> {
        match self {
            Self::Halves(ring) => ring.rewind(stopped, strips),
            Self::Pages(ring) => ring.rewind(stopped, strips),
            Self::Lro(ring) => ring.rewind(stopped, strips),
            Self::Xdp(ring) => ring.rewind(stopped, strips),
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
            Self::Lro(ring) => ring.poll(bar, cx, counters),
            Self::Xdp(ring) => ring.poll(bar, cx, counters),
        }
    }
}

/// The descriptors and buffers of a ring, and the frames that have not ended.
pub(crate) trait Source: Sized {
    /// The buffers.
    type Format: Buffers;
    /// Whether the NIC aggregates frames.
    const LRO: bool;

    /// The ring.
    fn ring(&self) -> &page_pool::RxRing<Self::Format>;

    /// See [`page_pool::RxRing::dma_address`].
    fn dma_address(&mut self, napi: &Napi) -> Result<u64>;

    /// See [`page_pool::RxRing::rewind`].
    fn rewind(&mut self, stopped: RxStopped<'_>) -> Result<u64>;

    /// The number of buffers that the ring has got other than by [`Self::refill`], which the NIC
    /// was not told of.
    #[inline]
    fn recycled(&self) -> usize {
        0
    }

    /// See [`page_pool::RxRing::refill`]. Includes [`Self::recycled`].
    fn refill(&mut self, cx: &Poll<'_>) -> Result<usize>;

    /// Moves completed frames to the list, up to `budget`. With `strips`, the NIC has stripped
    /// their VLAN tags.
    fn take(
        &mut self,
        cx: &Poll<'_>,
        list: &mut RxList<'_>,
        strips: bool,
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
        if source.ring().missing() > 0 {
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
    fn rewind(&mut self, stopped: RxStopped<'_>, strips: bool) -> Result<RxRegisters> {
        let base = self.source.rewind(stopped)?;

        self.strips = strips;
        Ok(self.registers_at(base))
    }

    fn registers(&mut self, napi: &Napi) -> Result<RxRegisters> {
        let base = self.source.dma_address(napi)?;

        Ok(self.registers_at(base))
    }

    fn registers_at(&self, base: u64) -> RxRegisters {
        RxRegisters {
            pair: self.pair,
            base,
            bytes: self.len.bytes(),
            buffer_kib: S::Format::KIB,
            needs_limit: S::Format::NEEDS_LIMIT,
            lro: S::LRO,
            strips: self.strips,
            tail: self.source.ring().tail() as u32,
        }
    }

    /// Replaces used buffers and moves the tail register. Returns false if so few buffers are left
    /// that polling has to continue.
    #[inline(never)]
    fn refill(&mut self, bar: &Bar0<'_>, cx: &Poll<'_>, counters: &PollCounters) -> bool {
        let missing = self.source.ring().missing() + self.source.recycled();
        if missing < REFILL_BATCH {
            return true;
        }

        let added = self.source.refill(cx).unwrap_or(0);
        if added < missing {
            counters.rx_no_buffer.add(1);
        }
        if added > 0 {
            // The register write is ordered after the writes to the descriptors.
            let tail = self.source.ring().tail() as u32;
            bar.write(RDT::at(self.pair.at()), tail.into());
        }

        // With hardly any buffers left, the NIC may raise no interrupt, and nothing would retry.
        self.source.ring().in_use() >= REFILL_BATCH
    }

    /// See [`RxRing::poll`].
    #[inline]
    fn poll(&mut self, bar: &Bar0<'_>, cx: &Poll<'_>, counters: &PollCounters) -> (usize, bool) {
        let mut left = cx.budget();
        let mut packets = 0;

        loop {
            let mut list = RxList::new(cx);

            let received = self.source.take(cx, &mut list, self.strips, left, counters);
            let filled = self.refill(bar, cx, counters);

            if received.packets > 0 {
                counters.rx_packets.add(received.packets as u64);
                counters.rx_bytes.add(received.bytes);
                counters.rx_csum_good.add(received.csum_good);
            }
            // The NIC can fill its new buffers while the stack handles these frames.
            list.deliver();

            packets += received.packets;
            left = left.saturating_sub(received.packets + received.lost);
            // It has, if the sender waits for answers and got the first ones: these frames need no
            // interrupt.
            if left == 0 || received.packets == 0 || !filled {
                return (packets, received.has_drained && filled);
            }
        }
    }
}

/// A ring whose frames have their buffers next to each other.
pub(crate) struct Plain<F: Buffers> {
    ring: page_pool::RxRing<F>,
    frames: Assembler,
}

impl<F: Buffers> Plain<F> {
    /// Allocates the ring, and buffers as far as there is memory.
    fn new(dev: &device::Device<Bound>, napi: &Napi, len: RingSize) -> Result<Self> {
        Ok(Self {
            ring: page_pool::RxRing::new(dev, napi, len, pool_buffers(len))?,
            frames: Assembler::new(),
        })
    }
}

impl<F: Buffers> Source for Plain<F> {
    type Format = F;
    const LRO: bool = false;

    #[inline]
    fn ring(&self) -> &page_pool::RxRing<F> {
        &self.ring
    }

    fn dma_address(&mut self, napi: &Napi) -> Result<u64> {
        self.ring.dma_address(napi)
    }

    fn rewind(&mut self, stopped: RxStopped<'_>) -> Result<u64> {
        // The rest of the frame is not to come.
        self.frames = Assembler::new();
        self.ring.rewind(stopped)
    }

    #[inline]
    fn refill(&mut self, cx: &Poll<'_>) -> Result<usize> {
        self.ring.refill(cx)
    }

    // Not inlined: in a function of its own, the loop's variables stay in registers.
    #[inline(never)]
    fn take(
        &mut self,
        cx: &Poll<'_>,
        list: &mut RxList<'_>,
        strips: bool,
        budget: usize,
        counters: &PollCounters,
    ) -> Received {
        let wanted = Wanted::of(cx.device().features(), strips, Self::LRO);
        let Ok(ring) = self.ring.poll(cx) else {
            // This is not the poll function of this ring, or it runs from netpoll. Neither happens.
            return Received::default();
        };
        take(ring, &mut self.frames, list, wanted, budget, counters)
    }
}

/// Moves completed frames to the list, up to `budget`.
#[inline(always)]
fn take<F: Buffers>(
    mut ring: Polling<'_, '_, F>,
    frames: &mut Assembler,
    list: &mut RxList<'_>,
    wanted: Wanted,
    budget: usize,
    counters: &PollCounters,
) -> Received {
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
                    && frames.is_between_frames() =>
            {
                let verified = wanted.is_verified(words.status);

                left -= 1;
                bytes += u64::from(buffer.len());
                unverified += u64::from(!verified);
                list.push_buffer(
                    buffer,
                    words.info.protocol(),
                    verified,
                    RxOffloads::default(),
                );
            }
            Some(buffer) => {
                let taken = frames::take(frames, buffer, words, wanted, list, counters);
                if let Some((len, verified)) = taken {
                    left -= 1;
                    bytes += u64::from(len);
                    unverified += u64::from(!verified);
                }
            }
            // The buffer went back to the pool. Its frame is lost.
            None => {
                counters.rx_bad_descriptors.add(1);
                frames.discard(words.status.eop());
            }
        }
    }

    Received::of(list, counters, budget, left, bytes, unverified)
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
            lost: lost.frames,
            // Else the budget has ended the loop.
            has_drained: left != 0,
            bytes: bytes.saturating_sub(lost.bytes as u64),
            csum_good: (packets as u64)
                .saturating_sub(unverified.saturating_sub(lost.unverified as u64)),
        }
    }
}

/// Sets whether these many queues, which are running, drop frames when they have no buffers left.
pub(crate) fn set_drop(bar: &Bar0<'_>, pairs: u16, drop: bool) -> Result {
    for pair in Pair::first(pairs) {
        bar.update(SRRCTL::at(pair.at()), |r| r.with_drop_en(drop))?;
    }
    Ok(())
}

/// Stops a queue while others are running, and waits until the NIC accesses neither its ring nor
/// its buffers (datasheet 4.6.7.1.2).
///
/// Frames for it that arrive meanwhile, or wait in the packet buffer, are dropped. The filters may
/// go on to select it: those of one queue have no other to select.
pub(crate) fn stop(bar: &Bar0<'_>, pair: Pair) -> Result {
    let at = pair.at();

    // The NIC writes back what it has received.
    bar.update(RXDCTL::at(at), |r| r.with_enable(false).with_swflsh(true))?;
    mmio::wait_for(
        || bar.try_read(RXDCTL::at(pair.at())),
        |r| !r.enable(),
        Delta::from_millis(100),
    )?;
    // The datasheet wants a delay before the memory is freed.
    sleep_at_least(Delta::from_micros(100));
    Ok(())
}

/// The register values that describe a receive ring to the NIC.
#[derive(Clone, Copy)]
pub(crate) struct RxRegisters {
    pair: Pair,
    base: u64,
    bytes: u32,
    tail: u32,
    buffer_kib: u32,
    needs_limit: bool,
    lro: bool,
    strips: bool,
}

impl RxRegisters {
    /// Whether the NIC aggregates frames.
    pub(crate) fn lro(&self) -> bool {
        self.lro
    }

    /// Whether the ring has buffers for all frames up to a limit.
    pub(crate) fn takes(&self, limit: FrameLimit) -> bool {
        !self.needs_limit || limit.fits_half()
    }

    /// Sets up the ring's registers and enables the queue (datasheet 4.6.7.1).
    ///
    /// All buffers pass to the NIC. With `drop`, the queue drops frames when it has no buffers
    /// left, rather than stalling the other queues.
    pub(crate) fn start(self, dev: &device::Device<Bound>, bar: &Bar0<'_>, drop: bool) -> Result {
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

        if self.lro {
            bar.write(
                RSCCTL::at(at),
                RSCCTL::zeroed().with_rscen(true).with_const_maxdesc::<3>(),
            );
        }

        bar.write(
            RXDCTL::at(at),
            RXDCTL::zeroed().with_enable(true).with_vme(self.strips),
        );
        // Not `at` itself: the compiler would lose sight of its bounds if it had an address.
        mmio::wait_for(
            || bar.try_read(RXDCTL::at(self.pair.at())),
            |r| r.enable(),
            Delta::from_millis(100),
        )
        .inspect_err(|_| {
            dev_err!(
                dev,
                "receive queue {} was not enabled in time\n",
                self.pair.at()
            )
        })?;

        // The tail may only be written when the queue is enabled.
        bar.write(RDT::at(at), self.tail.into());
        Ok(())
    }
}
