// SPDX-License-Identifier: GPL-2.0

//! When the doorbell of a transmit queue is rung: [`Driver::Doorbell`].
//!
//! To ring the doorbell of a card is to tell it of new descriptors. The default is [`Immediate`].
//! The rest of the device abstraction knows the traits here and none of their implementations, and
//! [`TxQueue::sent`] is generic in them: the choice costs a packet neither a branch nor an indirect
//! call.
//!
//! [`TxQueue::sent`]: crate::net::queue::TxQueue::sent

use super::{
    registration::Inner,
    Driver, //
};

use crate::{
    bindings,
    net::napi::{
        Poll,
        Polled, //
    },
    prelude::*, //
};

/// The doorbell of a transmit queue.
///
/// The implementing type holds what has to be known of it, which the lock of the queue protects.
/// Implementations are part of this abstraction; a driver only names the one that it wants.
pub trait Doorbell {
    /// Whether it has to be rung now, after a packet that no other follows at once.
    ///
    /// # Safety
    ///
    /// `queue` must be the transmit queue that `self` was made for, and be locked by this CPU, with
    /// bottom halves disabled, while its producer is in its slot.
    unsafe fn is_due(&self, queue: *mut bindings::netdev_queue) -> bool;
}

/// A [`Doorbell`] for the queues of a driver `T`.
///
/// If it is not rung at once, it is up to this to have that done later, whatever happens to the
/// queue.
pub trait DoorbellOf<T: Driver>: Doorbell + Send + Sized + 'static {
    /// Makes the doorbell of the transmit queue `index` of the device of `inner`, which need not be
    /// valid yet.
    fn new(inner: *const Inner<T>, index: u16) -> Self;

    /// Calls `poll`, the driver's poll function, once or several times.
    ///
    /// # Safety
    ///
    /// To be called by the poll function of a vector of a device of driver `T`.
    #[inline]
    unsafe fn poll(cx: &Poll<'_>, mut poll: impl FnMut(&Poll<'_>) -> Polled) -> Polled {
        poll(cx)
    }

    /// Rings the doorbell if that has been put off. The queue must be locked.
    ///
    /// Called before `tx`, the producer of the queue, is taken away.
    #[inline]
    fn flush(&self, data: Pin<&T::Data<'static>>, tx: &mut T::Tx<'static>) {
        let _ = (data, tx);
    }
}

/// The doorbell is rung at once, unless the stack says that another packet follows.
pub struct Immediate;

impl Doorbell for Immediate {
    #[inline(always)]
    unsafe fn is_due(&self, _queue: *mut bindings::netdev_queue) -> bool {
        true
    }
}

impl<T: Driver> DoorbellOf<T> for Immediate {
    fn new(_inner: *const Inner<T>, _index: u16) -> Self {
        Self
    }
}
