// SPDX-License-Identifier: GPL-2.0

//! The memory of transmit descriptors.

use crate::{
    device::{
        Bound,
        Device, //
    },
    net::{
        napi::{
            Attached,
            Napi, //
        },
        queue::{
            RingLen,
            RingMemory, //
        }, //
    },
    prelude::*,
    sync::{
        aref::{
            ARef,
            AlwaysRefCounted, //
        },
        atomic::Acquire,
        Arc,
        Refcount, //
    }, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

/// The memory, which belongs to the NAPI instance that it was made for, and then to the leftovers
/// of the device. References are handles of drivers, and do not own it.
struct Memory {
    ring: RingMemory,
    /// The number of references, plus one.
    references: Refcount,
}

// SAFETY: As long as there is a reference, the memory is in use, see below: it stays attached. All
// instances are part of a reference counted object, and count references.
unsafe impl AlwaysRefCounted for Memory {
    fn inc_ref(&self) {
        self.references.inc();
    }

    // To drop the last reference frees nothing: that may be in any context.
    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: By the safety requirements, there is a reference, so the memory is valid.
        unsafe { obj.as_ref() }.references.dec();
    }
}

impl Attached for Memory {
    fn is_in_use(&self) -> bool {
        // Not by its sign: a counter that is saturated is negative. Pairs with the release of a
        // reference.
        self.references.as_atomic().load(Acquire) != 1
    }
}

/// The memory of transmit descriptors: two words of 64 bits each, little endian.
///
/// A card reads its descriptors, and writes to those of packets that it has sent. So their memory
/// belongs to the NAPI instance of the queue vector. This is a handle to it: to drop or to replace
/// all handles, also in a poll function, frees nothing that the card may still write to. The memory
/// is freed with the queue vector, after the card was stopped. A handle that is kept longer keeps
/// it, and can be used for a ring of a later vector: then the memory is freed when the card has
/// been stopped and there are no handles any more, at the latest when the device is unbound.
///
/// Indices count on: they are masked.
///
/// # Examples
///
/// ```
/// use kernel::{
///     device::{
///         Bound,
///         Device, //
///     },
///     net::{
///         inflight::{
///             self,
///             Descriptors,
///             Limits,
///             TxConsumer,
///             TxProducer, //
///         },
///         napi::Napi,
///         queue::RingLen, //
///     }, //
/// };
///
/// const LIMITS: Limits = Limits {
///     segment_len: 16 * 1024,
///     descriptors: 40,
/// };
///
/// struct Tx<'a> {
///     desc: Descriptors<'a>,
///     producer: TxProducer<'a>,
/// }
///
/// struct Completion<'a> {
///     desc: Descriptors<'a>,
///     consumer: TxConsumer<'a>,
/// }
///
/// fn open<'a>(
///     dev: &'a Device<Bound>,
///     napi: &Napi,
///     len: RingLen,
/// ) -> Result<(Tx<'a>, Completion<'a>)> {
///     let desc = Descriptors::new(dev, napi, len)?;
///     let (producer, consumer) = inflight::pair(dev, napi, len, LIMITS)?;
///
///     Ok((
///         Tx {
///             desc: desc.clone(),
///             producer,
///         },
///         Completion { desc, consumer },
///     ))
/// }
/// ```
#[derive(Clone)]
pub struct Descriptors<'a> {
    // Its slots are not kept here, too: the handle of a transmit ring would grow by a cache line.
    memory: ARef<Memory>,
    _bound: PhantomData<&'a Device<Bound>>,
}

impl<'a> Descriptors<'a> {
    /// Allocates the descriptors of a ring of `napi`, all of whose words are zero.
    ///
    /// `dev` must be the parent of the network device.
    ///
    /// Context: process context, while `napi` is being set up.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if there is no memory; [`EINVAL`] if `dev` is another device.
    pub fn new(dev: &'a Device<Bound>, napi: &Napi, len: RingLen) -> Result<Self> {
        // The parent is bound until the instance has dropped the memory.
        napi.check_parent(dev)?;

        let memory = Memory {
            ring: RingMemory::new(dev, len)?,
            references: Refcount::new(1),
        };
        let memory = Arc::new(memory, GFP_KERNEL)?;
        // First, since a reference does not own the memory.
        napi.attach(memory.clone())?;
        Ok(Self {
            memory: (&*memory).into(),
            _bound: PhantomData,
        })
    }

    /// The address of the ring for the card.
    pub fn dma_address(&self) -> u64 {
        self.memory.ring.address()
    }

    /// The size of the ring, in bytes, for the card.
    pub fn bytes(&self) -> u32 {
        self.memory.ring.bytes()
    }

    /// Number of descriptors.
    #[inline(always)]
    #[expect(clippy::len_without_is_empty, reason = "a ring has descriptors")]
    pub fn len(&self) -> usize {
        self.memory.ring.len()
    }

    /// Writes a descriptor, the first word first.
    #[inline(always)]
    pub fn write(&self, index: usize, words: [u64; 2]) {
        let place = self.memory.ring.place(index);

        // SAFETY: We have a reference to the memory, and this is a place there.
        unsafe { self.memory.ring.slots().write(place, words) };
    }

    /// Reads the second word of a descriptor, to which cards write that they are done.
    #[inline(always)]
    pub fn status(&self, index: usize) -> u64 {
        let place = self.memory.ring.place(index);

        // SAFETY: As above.
        unsafe { self.memory.ring.slots().second(place) }
    }
}
