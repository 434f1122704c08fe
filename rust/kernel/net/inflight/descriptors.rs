// SPDX-License-Identifier: GPL-2.0

//! The memory of transmit descriptors.

use crate::{
    device::{
        Bound,
        Device, //
    },
    net::{
        napi::{
            Napi, //
            NapiOwned,
        },
        queue::{
            RingMemory, //
            RingSize,
        }, //
    },
    prelude::*,
    sync::aref::ARef, //
};
use core::marker::PhantomData;

/// The memory of transmit descriptors: two words of 64 bits each, little endian.
///
/// A NIC reads its descriptors, and writes to those of packets that it has sent. So their memory
/// belongs to the NAPI instance of the queue vector. This is a handle to it: to drop or to replace
/// all handles, also in a poll function, frees nothing that the NIC may still write to. The memory
/// is freed with the queue vector, after the NIC was stopped. A handle that is kept longer keeps
/// it, and can be used for a ring of a later vector: then the memory is freed when the NIC has
/// been stopped and there are no handles any more, at the latest when the device is unbound.
///
/// Indices count on: they are masked. Handles can be used at the same time: a word is written and
/// read as a whole (on a CPU of 32 bits, its halves are), and nobody gets a reference to it.
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
///         queue::RingSize, //
///     }, //
/// };
///
/// const LIMITS: Limits = Limits {
///     segment_len: 16 * 1024,
///     packet_len: 9018,
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
///     len: RingSize,
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
    memory: ARef<NapiOwned<RingMemory>>,
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
    pub fn new(dev: &'a Device<Bound>, napi: &Napi, len: RingSize) -> Result<Self> {
        // The parent is bound until the instance has dropped the memory.
        napi.check_parent(dev)?;

        Ok(Self {
            memory: NapiOwned::attach(napi, RingMemory::new(dev, len)?)?,
            _bound: PhantomData,
        })
    }

    /// The address of the ring for the NIC.
    pub fn dma_address(&self) -> u64 {
        self.memory.address()
    }

    /// The size of the ring, in bytes, for the NIC.
    pub fn bytes(&self) -> u32 {
        self.memory.bytes()
    }

    /// Number of descriptors.
    #[inline(always)]
    #[expect(clippy::len_without_is_empty, reason = "a ring has descriptors")]
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Writes a descriptor, the first word first.
    #[inline(always)]
    pub fn write(&self, index: usize, words: [u64; 2]) {
        let place = self.memory.place(index);

        // SAFETY: We have a reference to the memory, and this is a place there.
        unsafe { self.memory.slots().write(place, words) };
    }

    /// Reads the second word of a descriptor, to which NICs write that they are done.
    #[inline(always)]
    pub fn status(&self, index: usize) -> u64 {
        let place = self.memory.place(index);

        // SAFETY: As above.
        unsafe { self.memory.slots().second(place) }
    }
}
