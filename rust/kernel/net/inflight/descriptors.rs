// SPDX-License-Identifier: GPL-2.0

//! The memory of transmit descriptors.

use crate::{
    device::{
        Bound,
        Device, //
    },
    dma::Coherent,
    net::{
        napi::{
            Attached,
            Napi, //
        },
        queue::Le64, //
    },
    prelude::*,
    sync::Arc, //
};
use core::{
    marker::PhantomData,
    ops::Deref, //
};

/// The words of `N` descriptors.
type Words<const N: usize> = Coherent<[[Le64; 2]; N]>;

impl<const N: usize> Attached for Words<N> {}

/// The memory of `N` transmit descriptors: two words of 64 bits each, little endian.
///
/// A card reads its descriptors, and writes to those of packets that it has sent. So their memory
/// belongs to the NAPI instance of the queue vector. This is a handle to it: to drop or to replace
/// all handles, also in a poll function, frees nothing that the card may still write to. The memory
/// is freed with the queue vector, after the card was stopped. A handle that is kept longer keeps
/// it, at most until the device is unbound.
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
///         napi::Napi, //
///     }, //
/// };
///
/// const LIMITS: Limits = Limits {
///     segment_len: 16 * 1024,
///     descriptors: 40,
/// };
///
/// struct Tx<'a> {
///     desc: Descriptors<'a, 512>,
///     producer: TxProducer<'a>,
/// }
///
/// struct Completion<'a> {
///     desc: Descriptors<'a, 512>,
///     consumer: TxConsumer<'a>,
/// }
///
/// fn open<'a>(dev: &'a Device<Bound>, napi: &Napi) -> Result<(Tx<'a>, Completion<'a>)> {
///     let desc = Descriptors::new(dev, napi)?;
///     let (producer, consumer) = inflight::pair(dev, napi, 512, LIMITS)?;
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
pub struct Descriptors<'a, const N: usize> {
    words: Arc<Words<N>>,
    _bound: PhantomData<&'a Device<Bound>>,
}

impl<'a, const N: usize> Descriptors<'a, N> {
    /// Allocates the descriptors of a ring of `napi`, all of whose words are zero.
    ///
    /// `dev` must be the parent of the network device.
    ///
    /// Context: process context, while `napi` is being set up.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if there is no memory; [`EINVAL`] if `dev` is another device.
    pub fn new(dev: &'a Device<Bound>, napi: &Napi) -> Result<Self> {
        // The parent is bound until the instance has dropped the memory.
        napi.check_parent(dev)?;

        let words = Arc::new(Words::zeroed(dev, GFP_KERNEL)?, GFP_KERNEL)?;
        napi.attach(words.clone())?;
        Ok(Self {
            words,
            _bound: PhantomData,
        })
    }
}

impl<const N: usize> Deref for Descriptors<'_, N> {
    type Target = Words<N>;

    #[inline(always)]
    fn deref(&self) -> &Words<N> {
        &self.words
    }
}
