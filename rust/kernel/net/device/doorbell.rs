// SPDX-License-Identifier: GPL-2.0

//! When the doorbell of a transmit queue is rung: [`Driver::Doorbell`].
//!
//! Ringing a doorbell is writing the tail register: it tells the NIC of new descriptors. The
//! default is [`Immediate`]. The rest of the device abstraction knows the trait here and none of
//! its implementations, and [`TxQueue::sent`] is generic in it: the choice costs a packet neither a
//! branch nor an indirect call.
//!
//! [`Driver::Doorbell`]: super::Driver::Doorbell
//! [`TxQueue::sent`]: crate::net::queue::TxQueue::sent

use crate::{
    bindings,
    prelude::*,
    softirq::Softirq, //
};

use core::ptr;

/// Rings the doorbell of a queue if that was put off.
///
/// # Safety
///
/// The arguments must be those of a [`QueueRef`], whose device must exist until this returns.
/// Bottom halves must be disabled, and the queue must not be locked by this CPU.
pub(super) type RingFn = unsafe fn(*const c_void, u16);

/// A transmit queue of a device of any driver.
///
/// # Invariants
///
/// `ring` may be called with `device` and `queue`.
#[derive(Clone, Copy)]
pub struct QueueRef {
    device: *const c_void,
    queue: u16,
    ring: RingFn,
}

// SAFETY: The pointer is only used by `ring`, whose callers see to it that there is a device.
unsafe impl Send for QueueRef {}

impl QueueRef {
    /// The queue `queue` of `device`, which need not be valid yet.
    ///
    /// # Safety
    ///
    /// `ring` must be the function for devices of that type, which must have such a queue.
    pub(super) unsafe fn new(device: *const c_void, queue: u16, ring: RingFn) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            device,
            queue,
            ring,
        }
    }

    /// Rings the doorbell of the queue if that was put off.
    ///
    /// # Safety
    ///
    /// The device must exist until this returns. Bottom halves must be disabled, and the queue must
    /// not be locked by this CPU.
    #[inline]
    pub unsafe fn ring(&self) {
        // SAFETY: By the type invariants and the safety requirements.
        unsafe { (self.ring)(self.device, self.queue) };
    }
}

impl PartialEq for QueueRef {
    /// The function follows from the device.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.device, other.device) && self.queue == other.queue
    }
}

/// The doorbell of a transmit queue.
///
/// The implementing type holds what has to be known of it, which the lock of the queue protects. If
/// it is not rung at once, it is up to this to have that done later, whatever happens to the queue.
/// Implementations are part of this abstraction; a driver only names the one that it wants.
pub trait Doorbell: Send + Sized + 'static {
    /// Lives while a poll function runs.
    type Guard<'a>;

    /// It may be put off: a driver needs [`Driver::kick`](super::Driver::kick).
    const NEEDS_KICK: bool;

    /// Makes the doorbell of a queue.
    fn new(queue: QueueRef) -> Self;

    /// A poll function begins, which drops the result before it returns. It has no token if it is
    /// netpoll's, or if others on its CPU may interrupt it.
    ///
    /// # Safety
    ///
    /// With a token, this CPU must hold the lock of no transmit queue, neither here nor when the
    /// result is dropped.
    unsafe fn begin(softirq: Option<Softirq<'_>>) -> Self::Guard<'_>;

    /// Whether it has to be rung now, after a packet that no other follows at once.
    ///
    /// # Safety
    ///
    /// `queue` must be the transmit queue that `self` was made for, and be locked by this CPU, with
    /// bottom halves disabled, while its producer is in its slot.
    unsafe fn is_due(&self, queue: *mut bindings::netdev_queue) -> bool;

    /// Whether it was put off. It no longer is: the caller rings it.
    fn take(&self) -> bool;
}

/// The doorbell is rung at once, unless the stack says that another packet follows.
pub struct Immediate;

impl Doorbell for Immediate {
    type Guard<'a> = ();

    const NEEDS_KICK: bool = false;

    fn new(_queue: QueueRef) -> Self {
        Self
    }

    #[inline(always)]
    unsafe fn begin(_softirq: Option<Softirq<'_>>) {}

    #[inline(always)]
    unsafe fn is_due(&self, _queue: *mut bindings::netdev_queue) -> bool {
        true
    }

    #[inline(always)]
    fn take(&self) -> bool {
        false
    }
}
