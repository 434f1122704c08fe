// SPDX-License-Identifier: GPL-2.0

//! Receive rings: descriptors, and the buffers that they name, as one.
//!
//! A card writes to the buffers that its descriptors name until it has given notice, and to none
//! before it got their addresses. So an [`RxRing`] keeps both, and a driver gets at a buffer by the
//! card's notice alone, see [`Polling::next`]. There is no other way to read a buffer, to give it
//! back to the pool, or to use its descriptor again.
//!
//! The memory of a ring belongs to the NAPI instance that it was made for. The driver's [`RxRing`]
//! is a handle: to drop it, to forget it or to replace it, also in a poll function, frees nothing
//! that the card may still write to. Buffers and descriptors are freed with the queue vector, after
//! the card was stopped.
//!
//! # Trust
//!
//! The contents of descriptors are not trusted. A length is checked against the buffer, and the
//! words are read once: the driver decides on the copy. A card is trusted to leave a buffer alone
//! after its notice, as in every driver that does not copy what it receives.

use super::{
    Allocator,
    CpuBuffer,
    DeviceBuffer,
    Layout,
    PagePool,
    Receiver, //
};
use crate::{
    device::{
        self,
        Bound, //
    },
    dma::{
        Coherent,
        DmaAddress, //
    },
    io::{
        io_read,
        io_write, //
    },
    net::{
        napi::{
            Attached,
            Napi,
            Poll, //
        },
        queue::{
            bus_address,
            Le64, //
        },
    },
    prelude::*,
    sync::{
        barrier,
        Arc, //
    }, //
};
use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    mem,
    ptr::NonNull, //
};
use pin_init::Wrapper;

/// The format of a card's receive descriptors: two words of 64 bits, little-endian.
///
/// To give a buffer to the card is to write the buffer's address to the first word, and zero to the
/// second. When the card is done, it writes both, the second one last.
pub trait RxFormat {
    /// The buffers, and the part of them that the card writes.
    const LAYOUT: Layout;

    /// The bit of the second word that the card sets when it is done with a descriptor.
    const DONE: u64;

    /// Number of bytes that the card has written, by the second word.
    fn len(status: u64) -> u16;
}

/// The memory of a ring, which the NAPI instance owns.
///
/// Only the [`RxRing`] that was made with it uses it, as long as the instance exists.
#[pin_data]
struct Memory<const N: usize> {
    desc: Coherent<[[Le64; 2]; N]>,
    /// The buffers that the card has, each at the index of its descriptor. They are from the pool
    /// that was made with the ring.
    #[pin]
    buffers: UnsafeCell<[Option<DeviceBuffer>; N]>,
}

// SAFETY: The one user of `buffers` has its handle exclusively.
unsafe impl<const N: usize> Sync for Memory<N> {}

impl<const N: usize> Attached for Memory<N> {}

/// A receive ring of `N` descriptors with their buffers.
///
/// `N` is a power of two.
///
/// # Invariants
///
/// - `memory` belongs to the NAPI instance that `pool` was made for, which keeps it as long as that
///   has not been deleted. No other handle uses it.
/// - `pool` has the layout of `F`.
/// - Indices are free-running. `next_free` is at most `N - 1` ahead of `next_done`. The descriptors
///   from `next_done` to `next_free` have a buffer, the others have none.
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
///         RxList, //
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
/// fn receive(ring: &mut RxRing<Format, 256>, cx: &Poll<'_>) -> Result<usize> {
///     let mut list = RxList::new(cx);
///     let mut ring = ring.poll(cx)?;
///     let mut received = 0;
///
///     while received < cx.budget().packets() {
///         let Some(done) = ring.next() else {
///             break;
///         };
///         if let Some(buffer) = done.buffer {
///             list.push_buffer(buffer, Protocol::Other, false);
///             received += 1;
///         }
///     }
///     Ok(received)
/// }
/// ```
pub struct RxRing<F: RxFormat, const N: usize> {
    memory: NonNull<Memory<N>>,
    /// The descriptor that the card completes next.
    next_done: usize,
    /// The descriptor that is given to the card next. If it were the one that the card completes
    /// next, the card would take a full ring for an empty one.
    next_free: usize,
    address: DmaAddress,
    pool: PagePool,
    // Invariant: a type that `F` is a subtype of can be another format.
    _format: PhantomData<fn(F) -> F>,
}

// SAFETY: The handle is not tied to a thread; what it refers to is `Send`.
unsafe impl<F: RxFormat, const N: usize> Send for RxRing<F, N> {}

// SAFETY: Nothing can be done with a shared reference but to read numbers.
unsafe impl<F: RxFormat, const N: usize> Sync for RxRing<F, N> {}

impl<F: RxFormat, const N: usize> RxRing<F, N> {
    const MASK: usize = {
        assert!(N.is_power_of_two() && N > 1, "a power of two");
        N - 1
    };

    /// Makes the ring of `napi`, and fills it with buffers as far as there is memory.
    ///
    /// `buffers` is the number of buffers that the ring's pool keeps at hand; see [`Self::missing`]
    /// for buffers that the ring has not got. `dev` must be the parent of the network device.
    ///
    /// Context: process context, while `napi` is being set up.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if there is no memory, also if there is none for a single buffer; [`EINVAL`] if
    /// `dev` is another device.
    pub fn new(dev: &device::Device<Bound>, napi: &Napi, buffers: u32) -> Result<Self> {
        const { assert!(F::DONE != 0, "a card sets a bit when it is done") };

        let memory = Arc::pin_init(
            try_pin_init!(Memory {
                desc: Coherent::zeroed(dev, GFP_KERNEL)?,
                buffers <- UnsafeCell::pin_init(pin_init::init_array_from_fn(|_| None)),
            }),
            GFP_KERNEL,
        )?;
        let pointer = NonNull::from(&*memory);
        let address = memory.desc.dma_address();

        // The instance drops the buffers before it destroys the pool that they return to.
        napi.attach(memory)?;

        // INVARIANT: `napi` owns the memory and the pool, and there is no other handle.
        let mut this = Self {
            memory: pointer,
            next_done: 0,
            next_free: 0,
            address,
            pool: PagePool::new(dev, napi, buffers, F::LAYOUT)?,
            _format: PhantomData,
        };

        // SAFETY: The pool was made with this layout.
        let mut pool = unsafe { this.pool.initial_allocator(napi, F::LAYOUT)? };
        // SAFETY: The instance exists.
        this.next_free = unsafe { Self::fill(this.memory, &mut pool, 0, Self::MASK) };
        if this.next_free == 0 {
            return Err(ENOMEM);
        }
        Ok(this)
    }

    /// Gives up to `count` buffers to the card, from the descriptor `index` on. Returns the index
    /// behind the last one.
    ///
    /// # Safety
    ///
    /// `memory` must be that of a ring, for which there is exclusive access, of an instance that
    /// exists. There must be `count` descriptors from `index` on that the card does not have.
    #[inline(always)]
    unsafe fn fill(
        memory: NonNull<Memory<N>>,
        pool: &mut Allocator<'_>,
        mut index: usize,
        count: usize,
    ) -> usize {
        // SAFETY: By the safety requirements.
        let memory = unsafe { memory.as_ref() };
        // SAFETY: By the safety requirements, there is no other access.
        let buffers = unsafe { &mut *memory.buffers.get() };

        pool.alloc(count, |buffer| {
            let address = Le64::new(bus_address(buffer.dma_address(F::LAYOUT)));

            // This also clears the notice of the descriptor's last use.
            io_write!(memory.desc, [build: index & Self::MASK][build: 0], address);
            io_write!(memory.desc, [build: index & Self::MASK][build: 1], Le64::new(0));
            // By the type invariants, there was none: no need to look for one to drop.
            mem::forget(buffers[index & Self::MASK].replace(buffer));
            index = index.wrapping_add(1);
        });
        index
    }

    /// The address of the first descriptor for the card.
    ///
    /// The ring stays there until the queue vector goes away.
    #[inline]
    pub fn dma_address(&self) -> u64 {
        bus_address(self.address)
    }

    /// The descriptor behind the last one that has a buffer: a value for the card's tail register.
    #[inline]
    pub fn tail(&self) -> usize {
        self.next_free & Self::MASK
    }

    /// Plays the card: completes a descriptor.
    #[cfg(CONFIG_KUNIT)]
    pub(in crate::net) fn write_back(&self, cx: &Poll<'_>, index: usize, words: [u64; 2]) {
        assert!(self.pool.napi == cx.napi().id());
        // SAFETY: By the type invariants; the instance is being polled.
        let memory = unsafe { self.memory.as_ref() };

        io_write!(memory.desc, [build: index & Self::MASK][build: 0], Le64::new(words[0]));
        io_write!(memory.desc, [build: index & Self::MASK][build: 1], Le64::new(words[1]));
    }

    /// Plays the card: fills the buffer of a descriptor. Returns its bus address.
    #[cfg(CONFIG_KUNIT)]
    pub(in crate::net) fn write_buffer(
        &self,
        cx: &Poll<'_>,
        index: usize,
        byte: u8,
    ) -> Option<DmaAddress> {
        assert!(self.pool.napi == cx.napi().id());
        // SAFETY: By the type invariants; the instance is being polled.
        let memory = unsafe { self.memory.as_ref() };
        // SAFETY: Nothing else accesses the buffers now.
        let buffers = unsafe { &*memory.buffers.get() };
        let buffer = buffers[index & Self::MASK].as_ref()?;

        // SAFETY: The page is valid, and the bytes are within the buffer, by its layout.
        unsafe {
            let page = crate::bindings::page_address(buffer.page()).cast::<u8>();
            let start = buffer.offset(F::LAYOUT) + usize::from(F::LAYOUT.headroom());
            page.add(start).write_bytes(byte, F::LAYOUT.len().into());
        }
        Some(io_read!(memory.desc, [build: index & Self::MASK][build: 0]).get() as DmaAddress)
    }

    /// The ring's pool, for as long as it exists.
    #[cfg(CONFIG_KUNIT)]
    pub(in crate::net) fn pool(&self) -> NonNull<crate::bindings::page_pool> {
        self.pool.pool
    }

    /// Number of buffers that the card has.
    #[inline]
    pub fn in_use(&self) -> usize {
        self.next_free.wrapping_sub(self.next_done)
    }

    /// Number of buffers that could be given to the card.
    #[inline]
    pub fn missing(&self) -> usize {
        Self::MASK.saturating_sub(self.in_use())
    }

    /// Replaces all buffers that are missing, as far as there is memory. Returns the number of
    /// those that the card has to be told of, by a write of [`Self::tail`] to its register.
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

        // SAFETY: The instance is being polled, and the handle is borrowed exclusively. The card
        // does not have the missing buffers' descriptors.
        let next_free = unsafe { Self::fill(self.memory, &mut pool, before, missing) };
        // INVARIANT: No more were added than were missing.
        self.next_free = next_free;
        Ok(next_free.wrapping_sub(before))
    }

    /// Starts to take what the card has received.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if `cx` is not the poll function that this ring was made for, and [`EBUSY`] if
    /// this is netpoll.
    #[inline]
    pub fn poll<'a, 'p>(&'a mut self, cx: &'p Poll<'_>) -> Result<Polling<'a, 'p, F, N>> {
        let receiver = self.pool.receiver(cx, F::LAYOUT)?;

        // SAFETY: By the type invariants; the instance is being polled, longer than `'p`.
        let memory = unsafe { self.memory.as_ref() };
        // INVARIANT: The instance is being polled.
        Ok(Polling {
            desc: &memory.desc,
            // SAFETY: The handle is borrowed exclusively, and there is no other.
            buffers: unsafe { &mut *memory.buffers.get() },
            index: self.next_done,
            next_done: &mut self.next_done,
            receiver,
            _format: PhantomData,
        })
    }
}

/// A descriptor that the card has completed.
pub struct Received<'p> {
    /// The first word.
    pub info: u64,
    /// The second word.
    pub status: u64,
    /// The buffer; [`None`] if the length was zero or more than the card may write.
    pub buffer: Option<CpuBuffer<'p>>,
}

/// A ring that is being polled.
///
/// # Invariants
///
/// The instance of the ring is being polled. `index` is the ring's `next_done`, unless `self` has
/// advanced it; descriptors before it have no buffer any more.
pub struct Polling<'a, 'p, F: RxFormat, const N: usize> {
    desc: &'a Coherent<[[Le64; 2]; N]>,
    buffers: &'a mut [Option<DeviceBuffer>; N],
    index: usize,
    next_done: &'a mut usize,
    receiver: Receiver<'a, 'p>,
    _format: PhantomData<fn(F) -> F>,
}

impl<'p, F: RxFormat, const N: usize> Polling<'_, 'p, F, N> {
    /// Takes the next descriptor, if the card is done with it.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would be borrowed by a `for` loop"
    )]
    #[inline(always)]
    pub fn next(&mut self) -> Option<Received<'p>> {
        let at = self.index & RxRing::<F, N>::MASK;

        let status = io_read!(self.desc, [build: at][build: 1]).get();
        if status & F::DONE == 0 {
            return None;
        }
        // A descriptor that the card has not got has no buffer: this is an old notice.
        let buffer = self.buffers[at].take()?;
        // The card wrote the first word and the buffer before the second word.
        barrier::dma_mb(barrier::Read);
        // Half of this word may be from before the card's write.
        #[cfg(not(CONFIG_64BIT))]
        let status = io_read!(self.desc, [build: at][build: 1]).get();
        let info = io_read!(self.desc, [build: at][build: 0]).get();

        self.index = self.index.wrapping_add(1);
        // SAFETY: The ring's buffers are from its pool, and the card has given notice.
        let buffer = unsafe { self.receiver.complete(buffer, F::len(status)) };
        Some(Received {
            info,
            status,
            buffer,
        })
    }
}

impl<F: RxFormat, const N: usize> Drop for Polling<'_, '_, F, N> {
    #[inline(always)]
    fn drop(&mut self) {
        *self.next_done = self.index;
    }
}
