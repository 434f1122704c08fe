// SPDX-License-Identifier: GPL-2.0

//! Receive rings: descriptors, and the buffers that they name, as one.
//!
//! A NIC writes to the buffers that its descriptors name until it has written the descriptors back,
//! and to none before it got their addresses. So an [`RxRing`] keeps both, and a driver gets a
//! buffer only when its descriptor is done, see [`Polling::next`]. There is no other way to read a
//! buffer, to give it back to the pool, or to use its descriptor again.
//!
//! The memory of a ring belongs to the NAPI instance that it was made for. The driver's [`RxRing`]
//! is a handle: to drop it, to forget it or to replace it, also in a poll function, frees nothing
//! that the NIC may still write to. Buffers and descriptors are freed with the queue vector, after
//! the NIC was stopped. From then on, a handle is of no use, see [`RxRing::dma_address`].
//!
//! # Trust
//!
//! The contents of descriptors are not trusted. A length is checked against the buffer, and the
//! words are read once: the driver decides on the copy. Pages stay mapped, and a NIC can write to
//! one when its descriptor is done. So there is only a view of a [`CpuBuffer`], for volatile reads.
//! A packet, and the frame that a handler of XDP gets, are slices: there, a NIC is trusted to leave
//! them alone, as it is by C, unless all of its DMA is bounced (`swiotlb=force`).

use super::{
    Allocator,
    CpuBuffer,
    DeviceBuffer,
    Layout,
    PagePool,
    Receiver, //
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
            bus_address,
            Place,
            RingMemory,
            RingSize,
            RingSlots, //
        }, //
    },
    prelude::*,
    sync::{
        barrier,
        Arc, //
    }, //
};
use core::{
    marker::PhantomData,
    mem,
    ptr::NonNull,
    slice, //
};

mod any;
mod chains;
pub(in crate::net) mod parts;
pub(in crate::net) mod places;
pub(in crate::net) mod recycling;
#[cfg(CONFIG_KUNIT)]
mod tests;
pub(in crate::net) mod transmit;

use self::places::Places;
pub use self::{
    any::AnyRxRing,
    chains::{
        ChainFormat,
        ChainPolling,
        ChainRing,
        Chained,
        Continuation,
        Piece, //
    }, //
};

/// The format of a NIC's receive descriptors: two words of 64 bits, little-endian.
///
/// To give a buffer to the NIC is to write the buffer's address to the first word, and zero to the
/// second. When the NIC is done, it writes both, the second one last.
pub trait RxFormat {
    /// The buffers, and the part of them that the NIC writes.
    const LAYOUT: Layout;

    /// The bit of the second word that the NIC sets when it is done with a descriptor.
    const DONE: u64;

    /// Number of bytes that the NIC has written, by the second word.
    fn len(status: u64) -> u16;
}

/// The memory of a ring, which the NAPI instance owns.
///
/// Only the [`RxRing`] that was made with it uses it, as long as the instance exists.
struct RxRingMemory {
    desc: RingMemory,
    /// The buffers that the NIC has, each at the index of its descriptor. They are from the pool
    /// that was made with the ring.
    buffers: Places<Option<DeviceBuffer>>,
}

impl Attached for RxRingMemory {
    fn is_of_rx_queue(&self) -> bool {
        true
    }
}

/// The access to the descriptors and buffers of a [`RxRingMemory`].
///
/// # Invariants
///
/// As long as the memory exists, `desc` and `buffers` are those of the same one, which has as many
/// buffers as descriptors, each at the place of its descriptor.
#[derive(Clone, Copy)]
struct RxSlots {
    desc: RingSlots,
    buffers: NonNull<Option<DeviceBuffer>>,
}

impl RxSlots {
    /// The buffer of a descriptor.
    ///
    /// # Safety
    ///
    /// The memory must exist during the lifetime, with no other access to this buffer, and `place`
    /// must be one of this ring.
    #[inline(always)]
    unsafe fn buffer<'a>(&self, place: Place) -> &'a mut Option<DeviceBuffer> {
        let offset = place.offset::<Option<DeviceBuffer>>();

        // SAFETY: By the type invariants and the safety requirements, there is one at this offset,
        // and no other access to it.
        unsafe { self.buffers.byte_add(offset).as_mut() }
    }

    /// Takes the words and the buffer of a descriptor that is done, by its second word.
    ///
    /// # Safety
    ///
    /// As for [`Self::buffer`].
    #[inline(always)]
    unsafe fn take(&self, place: Place, status: u64) -> Option<(u64, u64, DeviceBuffer)> {
        // A descriptor that the NIC does not own has no buffer: this is an old done bit.
        //
        // SAFETY: By the safety requirements.
        let buffer = unsafe { self.buffer(place) }.take()?;
        // The NIC wrote the first word and the buffer before the second word.
        barrier::dma_mb(barrier::Read);
        // Half of this word may be from before the NIC's write.
        //
        // SAFETY: By the safety requirements.
        #[cfg(not(CONFIG_64BIT))]
        let status = unsafe { self.desc.second(place) };
        // SAFETY: By the safety requirements.
        let info = unsafe { self.desc.first(place) };

        Some((info, status, buffer))
    }
}

/// A receive ring: descriptors with their buffers.
///
/// # Invariants
///
/// - `slots` are those of memory that belongs to the NAPI instance that `pool` was made for, which
///   keeps it as long as it keeps the pool. No other handle uses it.
/// - `pool` has the layout of `F`.
/// - Positions are free-running, and count words. `next_free` is ahead of `next_done` by less than
///   the ring has. Descriptors from `next_done` to `next_free` have a buffer, the others have none.
///
/// # Examples
///
/// ```
/// use kernel::net::{
///     napi::Poll,
///     page_pool::{
///         Layout,
///         RxFormat,
///         RxRing, //
///     },
///     rx_list::{
///         Protocol,
///         RxList,
///         RxOffloads, //
///     }, //
/// };
///
/// struct Format;
///
/// impl RxFormat for Format {
///     const LAYOUT: Layout = match Layout::new(64, 2048) {
///         Some(layout) => layout,
///         None => panic!("the buffer does not fit into a page"),
///     };
///     const DONE: u64 = 1 << 0;
///
///     fn len(status: u64) -> u16 {
///         (status >> 32) as u16
///     }
/// }
///
/// fn receive(ring: &mut RxRing<Format>, cx: &Poll<'_>) -> Result<usize> {
///     let mut list = RxList::new(cx);
///     let mut ring = ring.poll(cx)?;
///     let mut received = 0;
///
///     while received < cx.budget() {
///         let Some(done) = ring.next() else {
///             break;
///         };
///         if let Some(buffer) = done.buffer {
///             list.push_buffer(buffer, Protocol::Other, false, RxOffloads::default());
///             received += 1;
///         }
///     }
///     Ok(received)
/// }
/// ```
pub struct RxRing<F: RxFormat> {
    slots: RxSlots,
    /// The descriptor that the NIC completes next.
    next_done: usize,
    /// The descriptor that is given to the NIC next. If it were the one that the NIC completes
    /// next, the NIC would take a full ring for an empty one.
    next_free: usize,
    address: u64,
    /// A NIC may have got the address since the descriptors were written.
    is_told: bool,
    pool: PagePool,
    // Invariant: a type that `F` is a subtype of can be another format.
    _format: PhantomData<fn(F) -> F>,
}

// SAFETY: The handle is not tied to a thread; what it refers to is `Send`.
unsafe impl<F: RxFormat> Send for RxRing<F> {}

// SAFETY: Nothing can be done with a shared reference but to read numbers.
unsafe impl<F: RxFormat> Sync for RxRing<F> {}

impl<F: RxFormat> RxRing<F> {
    /// Makes the ring of `napi` with `len` descriptors, and fills it with buffers as far as there
    /// is memory.
    ///
    /// `buffers` is the number of buffers that the ring's pool keeps at hand; see [`Self::missing`]
    /// for buffers that the ring has not got. `dev` must be the parent of the network device.
    ///
    /// Context: process context, while `napi` is being set up, or while its receive queue gets
    /// other memory.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if there is no memory, also if there is none for a single buffer; [`EINVAL`] if
    /// `dev` is another device, or if two buffers share a page and there are two descriptors.
    pub fn new(
        dev: &device::Device<Bound>,
        napi: &Napi,
        len: RingSize,
        buffers: u32,
    ) -> Result<Self> {
        let direction = bindings::dma_data_direction::DMA_FROM_DEVICE;

        Self::of_direction(dev, napi, len, buffers, direction)
    }

    /// As [`Self::new`], with buffers that the device may read, too.
    fn of_direction(
        dev: &device::Device<Bound>,
        napi: &Napi,
        len: RingSize,
        buffers: u32,
        direction: bindings::dma_data_direction,
    ) -> Result<Self> {
        const { assert!(F::DONE != 0, "the NIC sets a bit when it is done") };

        if Self::capacity(len.get()) == 0 {
            return Err(EINVAL);
        }
        let memory = RxRingMemory {
            desc: RingMemory::new(dev, len)?,
            buffers: Places::new(len.get())?,
        };
        let address = memory.desc.address();
        // INVARIANT: Both are of this memory.
        let slots = RxSlots {
            desc: memory.desc.slots(),
            buffers: memory.buffers.first()?,
        };

        // The instance drops the buffers before it destroys the pool that they return to.
        napi.attach(Arc::new(memory, GFP_KERNEL)?)?;

        // INVARIANT: `napi` owns the memory and the pool, and there is no other handle.
        let mut this = Self {
            slots,
            next_done: 0,
            next_free: 0,
            address,
            is_told: false,
            pool: PagePool::new(dev, napi, buffers, F::LAYOUT, direction)?,
            _format: PhantomData,
        };

        // INVARIANT: The instance exists, and cannot run yet, or does not use the pool yet. The
        // layout is that of the pool.
        let mut pool = Allocator {
            pool: &mut this.pool,
            layout: F::LAYOUT,
        };
        // SAFETY: The instance exists.
        this.next_free = unsafe { Self::fill(slots, &mut pool, 0, Self::capacity(len.get())) };
        if this.next_free == 0 {
            return Err(ENOMEM);
        }
        Ok(this)
    }

    /// Gives up to `count` buffers to the NIC, from the descriptor at `position` on. Returns the
    /// position behind the last one. If two buffers share a page, `count` must be even.
    ///
    /// # Safety
    ///
    /// `slots` must be those of a ring, for which there is exclusive access, of an instance that
    /// exists. There must be `count` descriptors from there on that the NIC does not have.
    #[inline(always)]
    unsafe fn fill(
        slots: RxSlots,
        pool: &mut Allocator<'_>,
        mut position: usize,
        count: usize,
    ) -> usize {
        pool.alloc(count, |buffer, address| {
            let address = bus_address(address);
            let place = slots.desc.place(position);

            // This also clears the done bit of the descriptor's last use.
            //
            // SAFETY: By the safety requirements.
            unsafe { slots.desc.write(place, [address, 0]) };
            // By the type invariants, there was none: no need to look for one to drop.
            //
            // SAFETY: By the safety requirements.
            mem::forget(unsafe { slots.buffer(place) }.replace(buffer));
            position = position.wrapping_add(RingSlots::WORDS);
        });
        position
    }

    /// The address of the first descriptor for the NIC, which is about to start.
    ///
    /// The ring stays there until the queue vector of `napi` goes away. A handle that a driver has
    /// kept longer has no address: no NIC gets that of memory that was freed. Nor has a ring that
    /// a running queue may get later, which is freed if it does not: see [`Self::rewind`].
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if `napi` is not the instance that this ring is in use with; [`EBUSY`] if a NIC
    /// may have used it, see [`Self::rewind`]: what that NIC has written back would be addresses to
    /// the next one.
    pub fn dma_address(&mut self, napi: &Napi) -> Result<u64> {
        if napi.id() != self.pool.napi {
            return Err(EINVAL);
        }
        if self.is_told {
            return Err(EBUSY);
        }
        self.is_told = true;
        Ok(self.address)
    }

    /// Lets the NIC begin with the first descriptor again: all buffers that it has are given to it
    /// anew, from there on. What it has received and [`Polling::next`] has not returned is lost.
    ///
    /// Returns the address of the first descriptor, see [`Self::dma_address`]. The NIC is told of
    /// [`Self::tail`] when it starts.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the queue that has stopped is not the one that this ring was made for.
    pub fn rewind(&mut self, stopped: RxStopped<'_>) -> Result<u64> {
        if !stopped.napi().has(self.pool.napi) {
            return Err(EINVAL);
        }
        let (len, first) = (self.descriptors(), self.slots.desc.index(self.next_done));
        let in_use = self.in_use();

        // SAFETY: By the type invariants, the memory exists and has that many buffers, to which
        // this handle, borrowed exclusively, is the only access.
        let buffers = unsafe { slice::from_raw_parts_mut(self.slots.buffers.as_ptr(), len) };
        let Some((front, back)) = buffers.split_at_mut_checked(first) else {
            return Err(EINVAL);
        };
        // Before anything changes: a poll that was forgotten may have left some out.
        let rest = in_use.saturating_sub(back.len());
        let are_there = |buffers: &[Option<DeviceBuffer>], count| {
            buffers.iter().take(count).all(|buffer| buffer.is_some())
        };
        if !are_there(back, in_use) || !are_there(front, rest) {
            return Err(EINVAL);
        }
        // Not `rotate_left()`, in which the compiler finds a way to panic.
        front.reverse();
        back.reverse();
        buffers.reverse();
        for (index, buffer) in buffers.iter().take(in_use).enumerate() {
            let Some(buffer) = buffer else {
                return Err(EINVAL);
            };
            let place = self.slots.desc.place(RingSlots::position(index));
            let address = bus_address(buffer.dma_address(F::LAYOUT));

            // SAFETY: By the type invariants, the memory exists.
            unsafe { self.slots.desc.write(place, [address, 0]) };
        }
        // INVARIANT: The buffers were moved to the descriptors from the first one on.
        self.next_done = 0;
        self.next_free = RingSlots::position(in_use);
        self.is_told = true;
        Ok(self.address)
    }

    /// The descriptor behind the last one that has a buffer: a value for the NIC's tail register.
    #[inline]
    pub fn tail(&self) -> usize {
        self.slots.desc.index(self.next_free)
    }

    /// Number of descriptors.
    #[inline]
    pub fn descriptors(&self) -> usize {
        self.slots.desc.len()
    }

    /// Number of buffers that the NIC has.
    #[inline]
    pub fn in_use(&self) -> usize {
        self.next_free.wrapping_sub(self.next_done) / RingSlots::WORDS
    }

    /// Number of buffers that could be given to the NIC. If two of them share a page, both are
    /// given to it at the same time: the number is even.
    #[inline]
    pub fn missing(&self) -> usize {
        let missing = Self::capacity(self.descriptors()).saturating_sub(self.in_use());

        missing - missing % F::LAYOUT.per_page()
    }

    /// The most buffers that the NIC has in a ring of `descriptors`, all but one of which can be
    /// in use.
    #[inline(always)]
    const fn capacity(descriptors: usize) -> usize {
        let max = descriptors - 1;

        max - max % F::LAYOUT.per_page()
    }

    /// Replaces all buffers that are missing, as far as there is memory. Returns the number of
    /// those that the NIC has to be told of, by a write of [`Self::tail`] to its register.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if `cx` is not the poll function that this ring was made for, and [`EBUSY`] if
    /// this is netpoll.
    #[inline]
    pub fn refill(&mut self, cx: &Poll<'_>) -> Result<usize> {
        let (before, missing) = (self.next_free, self.missing());
        // SAFETY: The pool was made with this layout.
        let mut pool = unsafe { self.pool.allocator(cx, F::LAYOUT)? };

        // SAFETY: The instance is being polled, and the handle is borrowed exclusively. The NIC
        // does not have the missing buffers' descriptors.
        let next_free = unsafe { Self::fill(self.slots, &mut pool, before, missing) };
        // INVARIANT: No more were added than were missing.
        self.next_free = next_free;
        Ok(next_free.wrapping_sub(before) / RingSlots::WORDS)
    }

    /// Whether the NIC may have completed descriptors: if not, [`Self::poll`] would find none. That
    /// takes more, when a poll function has set up what it needs for frames.
    #[inline]
    pub fn may_have_completed(&self, cx: &Poll<'_>) -> bool {
        // SAFETY: By the type invariants: this is the poll function of the instance that has the
        // memory.
        let has_completed = || unsafe {
            let next = self.slots.desc.place(self.next_done);

            self.slots.desc.second(next) & F::DONE != 0
        };

        cx.napi().id() == self.pool.napi && has_completed()
    }

    /// Starts to take what the NIC has received.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if `cx` is not the poll function that this ring was made for, and [`EBUSY`] if
    /// this is netpoll.
    #[inline]
    pub fn poll<'a, 'p>(&'a mut self, cx: &'p Poll<'_>) -> Result<Polling<'a, 'p, F>> {
        let receiver = self.pool.receiver(cx)?;

        // INVARIANT: The instance is being polled, longer than `'p`. The handle is borrowed
        // exclusively, and by the type invariants there is no other one.
        Ok(Polling {
            slots: &self.slots,
            position: self.next_done,
            next_done: &mut self.next_done,
            receiver,
            _format: PhantomData,
        })
    }
}

/// A descriptor that the NIC has completed.
pub struct Received<'p> {
    /// The first word.
    pub info: u64,
    /// The second word.
    pub status: u64,
    /// The buffer; [`None`] if the length was zero or more than the NIC may write.
    pub buffer: Option<CpuBuffer<'p>>,
}

/// A ring that is being polled.
///
/// # Invariants
///
/// The instance of the ring is being polled, whose memory `slots` give access to, with no other
/// access. `position` is the ring's `next_done`, unless `self` has advanced it; descriptors before
/// it have no buffer any more.
pub struct Polling<'a, 'p, F: RxFormat> {
    // Borrowed: in a driver's loop, a copy would take the registers of other variables.
    slots: &'a RxSlots,
    position: usize,
    next_done: &'a mut usize,
    receiver: Receiver<'a, 'p>,
    _format: PhantomData<fn(F) -> F>,
}

impl<'p, F: RxFormat> Polling<'_, 'p, F> {
    /// Takes the next descriptor, if the NIC is done with it.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would be borrowed by a `for` loop"
    )]
    #[inline(always)]
    pub fn next(&mut self) -> Option<Received<'p>> {
        let (info, status, buffer) = self.take()?;

        // SAFETY: The ring's buffers are from its pool, and the descriptor is done.
        let buffer = unsafe { self.receiver.complete(F::LAYOUT, buffer, F::len(status)) };
        Some(Received {
            info,
            status,
            buffer,
        })
    }

    /// As [`Self::next`]: the words of the descriptor, and its buffer.
    #[inline(always)]
    fn take(&mut self) -> Option<(u64, u64, DeviceBuffer)> {
        let place = self.slots.desc.place(self.position);
        // SAFETY: By the type invariants.
        let status = unsafe { self.slots.desc.second(place) };
        if status & F::DONE == 0 {
            return None;
        }
        // SAFETY: As above.
        let taken = unsafe { self.slots.take(place, status) }?;

        self.position = self.position.wrapping_add(RingSlots::WORDS);
        Some(taken)
    }
}

impl<F: RxFormat> Drop for Polling<'_, '_, F> {
    #[inline(always)]
    fn drop(&mut self) {
        *self.next_done = self.position;
    }
}
