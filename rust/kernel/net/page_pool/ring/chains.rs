// SPDX-License-Identifier: GPL-2.0

//! Frames whose buffers are not next to each other.
//!
//! A NIC with LRO (receive side coalescing) fills the buffers of several frames at a time, so that
//! they take turns in the ring. Each of its descriptors says with which one its frame goes on.
//!
//! Such a NIC writes the headers when the frame ends: a buffer whose descriptor is done is not the
//! CPU's before that. So the buffers of a frame stay together, where no driver gets at them, in
//! memory that belongs to the NAPI instance. They become an SKB when the frame has ended.

use super::{
    super::{
        CpuBuffer,
        DeviceBuffer, //
    },
    AnyRxRing,
    Places,
    Polling,
    RxFormat,
    RxRing, //
};
use crate::{
    bindings,
    device::{
        self,
        Bound, //
    },
    net::{
        napi::{
            Attached,
            Napi,
            Poll,
            RxStopped, //
        },
        queue::{
            RingSize,
            RingSlots, //
        },
        skbuff::UniqueSkBuff, //
    },
    prelude::*,
    sync::Arc, //
};
use core::{
    ops::Deref,
    ptr::NonNull,
    slice, //
};

/// The number of frames that can be pending at a time.
const CHAINS: usize = 40;

/// The most buffers of a frame: the linear part of an SKB, and its fragments, of which there may be
/// more in kernels for other needs. No NIC of this kind has frames of more.
const BUFFERS: usize = 1 + 17;

const _: () = assert!(BUFFERS <= 1 + bindings::MAX_SKB_FRAGS as usize);

/// How a frame goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuation {
    /// It ends with this descriptor.
    End,
    /// With the next descriptor of the ring.
    Following,
    /// With the descriptor of this index.
    At(usize),
}

/// The report of a NIC on frames whose buffers are not next to each other.
pub trait ChainFormat: RxFormat {
    /// How the frame of a descriptor goes on.
    fn link(info: u64, status: u64) -> Continuation;

    /// The number of packets that begin in the buffer of a descriptor, if LRO has aggregated them.
    fn packets(info: u64) -> u32;
}

/// A frame that goes on in the descriptor `next`.
struct PartialFrame {
    next: usize,
    packets: u32,
    len: usize,
    /// The first `len` of them.
    buffers: [Option<(DeviceBuffer, u16)>; BUFFERS],
    /// There were more than an SKB has room for, or the NIC has lied about it or another one.
    is_lost: bool,
}

impl PartialFrame {
    const fn new() -> Self {
        Self {
            next: 0,
            packets: 0,
            len: 0,
            buffers: [const { None }; BUFFERS],
            is_lost: false,
        }
    }

    fn add(&mut self, buffer: DeviceBuffer, len: u16, packets: u32) {
        self.packets = self.packets.saturating_add(packets);
        match self.buffers.get_mut(self.len) {
            Some(slot) => {
                *slot = Some((buffer, len));
                self.len += 1;
            }
            None => self.is_lost = true,
        }
    }
}

/// The frames that have not ended, which the NAPI instance owns. Only the [`ChainRing`] that was
/// made with it uses it, as long as the instance exists.
type PartialFrames = Places<Option<PartialFrame>>;

impl Attached for PartialFrames {
    fn is_of_rx_queue(&self) -> bool {
        true
    }
}

/// An [`RxRing`] whose frames may have their buffers anywhere in it.
///
/// # Invariants
///
/// `chains` points to the `CHAINS` elements of a `PartialFrames` that belongs to the NAPI
/// instance of `ring`, which keeps it as long as it keeps the memory of `ring`. No other handle
/// uses it. Its buffers are from the pool of `ring`. `pending` of them are some.
pub struct ChainRing<F: ChainFormat> {
    ring: RxRing<F>,
    chains: NonNull<Option<PartialFrame>>,
    pending: usize,
}

// SAFETY: The handle is not tied to a thread; what it refers to is `Send`.
unsafe impl<F: ChainFormat> Send for ChainRing<F> {}

// SAFETY: Nothing can be done with a shared reference but to read numbers.
unsafe impl<F: ChainFormat> Sync for ChainRing<F> {}

impl<F: ChainFormat> ChainRing<F> {
    /// Makes the ring of `napi`, see [`RxRing::new`].
    ///
    /// Context: process context, while `napi` is being set up.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn new(
        dev: &device::Device<Bound>,
        napi: &Napi,
        len: RingSize,
        buffers: u32,
    ) -> Result<Self> {
        let table = PartialFrames::new(CHAINS)?;
        let chains = table.first()?;

        // Before the pool: objects are dropped in this order.
        napi.attach(Arc::new(table, GFP_KERNEL)?)?;
        // INVARIANT: `napi` owns the table, which is empty, and there is no other handle.
        Ok(Self {
            ring: RxRing::new(dev, napi, len, buffers)?,
            chains,
            pending: 0,
        })
    }

    /// Starts to take what the NIC has received.
    ///
    /// # Errors
    ///
    /// As [`RxRing::poll`].
    #[inline]
    pub fn poll<'a, 'p>(&'a mut self, cx: &'p Poll<'_>) -> Result<ChainPolling<'a, 'p, F>> {
        let left = self.ring.in_use();
        let polling = self.ring.poll(cx)?;

        // SAFETY: The instance is being polled, so by the type invariants there are that many
        // elements, and no other access to them: the handle is borrowed exclusively.
        let chains = unsafe { slice::from_raw_parts_mut(self.chains.as_ptr(), CHAINS) };
        // INVARIANT: The buffers are from the pool of this ring.
        Ok(ChainPolling {
            polling,
            chains,
            pending: &mut self.pending,
            left,
        })
    }
}

impl<F: ChainFormat> AnyRxRing for ChainRing<F> {
    type Format = F;

    #[inline]
    fn as_rx_ring(&self) -> &RxRing<F> {
        &self.ring
    }

    fn dma_address(&mut self, napi: &Napi) -> Result<u64> {
        self.ring.dma_address(napi)
    }

    fn rewind(&mut self, stopped: RxStopped<'_>) -> Result<u64> {
        // SAFETY: There are no requirements.
        if unsafe { bindings::irqs_disabled() } {
            return Err(EBUSY);
        }
        let address = self.ring.rewind(stopped)?;

        // SAFETY: It is the instance of this ring that has stopped, or that would have failed, so
        // by the type invariants there are that many elements, and no other access to them: the
        // handle is borrowed exclusively.
        let chains = unsafe { slice::from_raw_parts_mut(self.chains.as_ptr(), CHAINS) };
        chains.fill_with(|| None);
        // INVARIANT: None of them is some.
        self.pending = 0;
        Ok(address)
    }

    #[inline]
    fn refill(&mut self, cx: &Poll<'_>) -> Result<usize> {
        self.ring.refill(cx)
    }
}

impl<F: ChainFormat> Deref for ChainRing<F> {
    type Target = RxRing<F>;

    #[inline]
    fn deref(&self) -> &RxRing<F> {
        &self.ring
    }
}

/// The yield of a descriptor.
pub enum Piece<'p> {
    /// A frame in one buffer.
    Single(CpuBuffer<'p>),
    /// The end of a frame in several buffers, with the number of packets that LRO has aggregated,
    /// if it was.
    Whole(UniqueSkBuff, u32),
    /// A part of a frame that goes on.
    Pending,
    /// The descriptor makes no sense, or is the last one of a frame that does not: a length, a
    /// descriptor that the NIC has not got, or more buffers than an SKB has room for. The buffers
    /// went back to the pool.
    Bad,
    /// The end of a frame that there was no memory for.
    NoMemory,
}

/// A descriptor that the NIC has completed.
pub struct Chained<'p> {
    /// The first word.
    pub info: u64,
    /// The second word.
    pub status: u64,
    /// Its buffer, or the frame that ends with it.
    pub piece: Piece<'p>,
}

/// A ring that is being polled.
///
/// # Invariants
///
/// The buffers in `chains` are from the pool of the ring. `pending` of its elements are some.
pub struct ChainPolling<'a, 'p, F: ChainFormat> {
    polling: Polling<'a, 'p, F>,
    chains: &'a mut [Option<PartialFrame>],
    pending: &'a mut usize,
    /// The number of descriptors that the NIC has, from the next one on.
    left: usize,
}

impl<'p, F: ChainFormat> ChainPolling<'_, 'p, F> {
    /// Takes the next descriptor, if the NIC is done with it.
    ///
    /// The contents of the descriptor are not trusted. A frame goes on in a descriptor that the
    /// NIC has got, behind this one, or that it gets next. So all of them end, or are dropped with
    /// the ring. No two go on in the same one: if two are said to, both are dropped, as either may
    /// have data of the other.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would be borrowed by a `for` loop"
    )]
    #[inline]
    pub fn next(&mut self) -> Option<Chained<'p>> {
        let index = self.polling.slots.desc.index(self.polling.position);
        let (info, status, buffer) = self.polling.take()?;
        let link = F::link(info, status);

        self.left = self.left.saturating_sub(1);
        let piece = if *self.pending == 0 && link == Continuation::End {
            self.single(buffer, F::len(status))
        } else {
            self.add(index, buffer, F::len(status), link, F::packets(info))
        };
        Some(Chained {
            info,
            status,
            piece,
        })
    }

    #[inline]
    fn single(&self, buffer: DeviceBuffer, len: u16) -> Piece<'p> {
        // SAFETY: The ring's buffers are from its pool, and the descriptor is done.
        unsafe { self.polling.receiver.complete(F::LAYOUT, buffer, len) }
            .map_or(Piece::Bad, Piece::Single)
    }

    /// Takes a buffer of a frame that has several, or one while another frame is pending.
    #[inline(never)]
    fn add(
        &mut self,
        index: usize,
        buffer: DeviceBuffer,
        len: u16,
        link: Continuation,
        packets: u32,
    ) -> Piece<'p> {
        let is_here =
            |slot: &Option<PartialFrame>| slot.as_ref().is_some_and(|one| one.next == index);
        let place = self.chains.iter().position(is_here);
        let next = match (place, link) {
            (None, Continuation::End) => return self.single(buffer, len),
            (_, Continuation::End) => None,
            (_, link) => match self.next_of(index, link) {
                Some(next) if self.is_free(next) => Some(next),
                _ => {
                    // Its other buffers are taken for frames of their own, if there are any.
                    self.forget(place);
                    return Piece::Bad;
                }
            },
        };
        let place = place.or_else(|| self.chains.iter().position(|slot| slot.is_none()));
        let Some(slot) = place.and_then(|place| self.chains.get_mut(place)) else {
            return Piece::Bad;
        };
        if slot.is_none() {
            // INVARIANT: One more is some.
            *self.pending += 1;
        }
        let chain = slot.get_or_insert_with(PartialFrame::new);

        chain.add(buffer, len, packets);
        if let Some(next) = next {
            chain.next = next;
            return Piece::Pending;
        }
        let Some(chain) = slot.take() else {
            return Piece::Bad;
        };
        // INVARIANT: One less is some.
        *self.pending -= 1;
        self.finish(chain)
    }

    /// The descriptor that a frame goes on with, if it can.
    fn next_of(&self, index: usize, link: Continuation) -> Option<usize> {
        // A power of two.
        let descriptors = self.polling.slots.desc.len();
        let (next, reach) = match link {
            Continuation::End => return None,
            // If the NIC has no other one, it waits for that.
            Continuation::Following => ((index + 1) & (descriptors - 1), self.left + 1),
            Continuation::At(next) => (next, self.left),
        };
        let distance = next.wrapping_sub(index) & (descriptors - 1);

        (next < descriptors && distance != 0 && distance <= reach).then_some(next)
    }

    /// Whether no other frame goes on in descriptor `next`. One that does is lost.
    fn is_free(&mut self, next: usize) -> bool {
        let other = self
            .chains
            .iter_mut()
            .flatten()
            .find(|one| one.next == next);
        let is_free = other.is_none();

        if let Some(other) = other {
            other.is_lost = true;
        }
        is_free
    }

    #[cold]
    fn forget(&mut self, place: Option<usize>) {
        if let Some(slot) = place.and_then(|place| self.chains.get_mut(place)) {
            // INVARIANT: One less is some.
            *slot = None;
            *self.pending -= 1;
        }
    }

    /// Builds the SKB of a frame that has ended.
    fn finish(&self, chain: PartialFrame) -> Piece<'p> {
        if chain.is_lost {
            return Piece::Bad;
        }
        let mut buffers = chain.buffers.into_iter().flatten().map(|(buffer, len)| {
            // SAFETY: By the type invariants, the buffer is from the ring's pool. The NIC is done
            // with the frame.
            unsafe { self.polling.receiver.complete(F::LAYOUT, buffer, len) }
        });
        let Some(Some(first)) = buffers.next() else {
            return Piece::Bad;
        };
        let Some(mut skb) = first.into_skb() else {
            return Piece::NoMemory;
        };
        for buffer in buffers {
            let added = buffer.map(|buffer| buffer.add_to(&mut skb));

            if !matches!(added, Some(Ok(()))) {
                return Piece::Bad;
            }
        }
        Piece::Whole(skb, chain.packets)
    }
}

const _: () = assert!(RingSlots::WORDS == 2);
