// SPDX-License-Identifier: GPL-2.0

//! Packets that the stack has given to a driver, and can have back.

use super::{
    DropReason,
    SkBuff, //
};
use crate::prelude::*;
use core::{
    marker::PhantomData,
    ops::Deref, //
};

/// The driver's answer to a packet that is to be transmitted.
#[must_use]
pub enum Xmit<'call> {
    /// The driver has accepted it: it is queued to the NIC, or was dropped.
    Taken,
    /// There is no room. The stack keeps the packet, and retries when the queue is woken.
    ///
    /// The queue must have been stopped, which [`TxQueue::stop_if_low`] does: a queue that accepts
    /// packets only to return them makes the stack spin. If it is not stopped, the packet is
    /// dropped and counted.
    ///
    /// [`TxQueue::stop_if_low`]: crate::net::queue::TxQueue::stop_if_low
    Busy(TxSkBuff<'call>),
}

/// The packet that a call of [`Driver::start_xmit`] is for.
///
/// Only this very packet can be returned to the stack with [`Xmit::Busy`]: the stack goes on with
/// the packet that it gave away, and with nothing else. So there is one value of this type in a
/// call, `'call` names that call and no other one, and whatever makes another packet of it, or
/// changes it so that the stack could not transmit it again, takes a [`SkBuff`]. There is no way
/// back from that.
///
/// # Invariants
///
/// The packet is the one that the stack gave to the call `'call`, as it gave it but for padding.
///
/// # Examples
///
/// ```
/// use kernel::net::skbuff::{
///     DropReason,
///     TxSkBuff,
///     Xmit, //
/// };
///
/// fn start_xmit<'call>(is_full: bool, skb: TxSkBuff<'call>) -> Xmit<'call> {
///     if is_full {
///         return Xmit::Busy(skb);
///     }
///     skb.drop_with(DropReason::NotSpecified);
///     Xmit::Taken
/// }
/// ```
///
/// [`Driver::start_xmit`]: crate::net::device::Driver::start_xmit
#[repr(transparent)]
pub struct TxSkBuff<'call> {
    skb: SkBuff,
    /// Makes the type invariant in `'call`.
    _call: PhantomData<fn(&'call ()) -> &'call ()>,
}

impl TxSkBuff<'_> {
    /// Makes the packet for a call of [`Driver::start_xmit`], which must not get another one.
    ///
    /// [`Driver::start_xmit`]: crate::net::device::Driver::start_xmit
    #[inline]
    pub(in crate::net) fn new(skb: SkBuff) -> Self {
        // INVARIANT: The caller is about to call `start_xmit()`, which is generic in the lifetime:
        // it has no other packet with this one.
        Self {
            skb,
            _call: PhantomData,
        }
    }

    /// Drops the packet, see [`SkBuff::drop_with`].
    #[inline]
    pub fn drop_with(self, reason: DropReason) {
        self.skb.drop_with(reason);
    }

    /// Pads a short packet, see [`SkBuff::pad_to`].
    ///
    /// # Errors
    ///
    /// As there. The packet is dropped.
    #[inline]
    pub fn pad_to(self, len: u32) -> Result<Self> {
        // INVARIANT: It is the same packet: other references to it are an error.
        Ok(Self {
            skb: self.skb.pad_to(len)?,
            _call: PhantomData,
        })
    }
}

impl Deref for TxSkBuff<'_> {
    type Target = SkBuff;

    #[inline]
    fn deref(&self) -> &SkBuff {
        &self.skb
    }
}

impl From<TxSkBuff<'_>> for SkBuff {
    #[inline]
    fn from(packet: TxSkBuff<'_>) -> Self {
        packet.skb
    }
}

/// A packet that can be put into flight.
pub trait Outgoing: Sealed + Into<SkBuff> {}

/// A packet, behind whatever wraps it. Only types of this module implement it, so the packet is
/// always the one that [`Into::into`] makes.
pub trait Sealed {
    /// The packet.
    fn as_skb(&self) -> &SkBuff;
}

impl Sealed for TxSkBuff<'_> {
    #[inline]
    fn as_skb(&self) -> &SkBuff {
        self
    }
}

impl Sealed for SkBuff {
    #[inline]
    fn as_skb(&self) -> &SkBuff {
        self
    }
}

impl Outgoing for TxSkBuff<'_> {}

impl Outgoing for SkBuff {}
