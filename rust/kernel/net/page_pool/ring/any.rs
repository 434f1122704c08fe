// SPDX-License-Identifier: GPL-2.0

//! Receive rings of any sort.

use super::{
    RxFormat,
    RxRing, //
};
use crate::{
    net::napi::{
        Napi,
        Poll,
        RxStopped, //
    },
    prelude::*, //
};

/// A receive ring, as a driver starts and refills it: that is the same for all of them, unlike the
/// ways to receive.
pub trait AnyRxRing {
    /// The descriptors and buffers.
    type Format: RxFormat;

    /// The ring itself.
    fn as_rx_ring(&self) -> &RxRing<Self::Format>;

    /// See [`RxRing::dma_address`].
    ///
    /// # Errors
    ///
    /// As there.
    fn dma_address(&mut self, napi: &Napi) -> Result<u64>;

    /// See [`RxRing::rewind`]. Frames that have not ended are dropped.
    ///
    /// # Errors
    ///
    /// As there; [`EBUSY`] if buffers of such frames have to return to their pool and interrupts
    /// are disabled.
    fn rewind(&mut self, stopped: RxStopped<'_>) -> Result<u64>;

    /// The number of buffers that were given back to the ring, and that the NIC was not told of:
    /// [`Self::refill`] includes them.
    #[inline]
    fn recycled(&self) -> usize {
        0
    }

    /// See [`RxRing::refill`].
    ///
    /// # Errors
    ///
    /// As there.
    fn refill(&mut self, cx: &Poll<'_>) -> Result<usize>;
}

impl<F: RxFormat> AnyRxRing for RxRing<F> {
    type Format = F;

    #[inline]
    fn as_rx_ring(&self) -> &RxRing<F> {
        self
    }

    fn dma_address(&mut self, napi: &Napi) -> Result<u64> {
        RxRing::dma_address(self, napi)
    }

    fn rewind(&mut self, stopped: RxStopped<'_>) -> Result<u64> {
        RxRing::rewind(self, stopped)
    }

    #[inline]
    fn refill(&mut self, cx: &Poll<'_>) -> Result<usize> {
        RxRing::refill(self, cx)
    }
}
