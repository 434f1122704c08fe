// SPDX-License-Identifier: GPL-2.0

//! Array-based lock-free FIFO queue.
//!
//! A bounded queue that passes elements by value from one context to another without a lock. The
//! slots are one array. The two ends share two positions in it, each on cache lines of its own, and
//! an end caches the other's position: it reads that again only when the cached one does not
//! suffice. A bulk operation updates a position once, not once per element.
//!
//! The types determine the number of producers and consumers:
//!
//! | Form | Producing end | Consuming end |
//! | --- | --- | --- |
//! | [`spsc`] | [`Producer`] | [`Consumer`] |
//! | [`mpsc`] | [`SharedProducer`] | [`Consumer`] |
//! | [`spmc`] | [`Producer`] | [`SharedConsumer`] |
//! | [`mpmc`] | [`Mpmc`] | the same |
//!
//! An end with a single owner cannot be copied, and every operation takes it by `&mut`. So "single
//! producer, single consumer" is not a rule for callers but a consequence of ownership. The
//! operations need neither locked instructions nor full barriers, and are allowed in any context.
//!
//! Shared ends are used by `&self`, and cost one locked instruction per operation, for one element
//! or many. An operation may have to wait for earlier ones, so it must not interrupt one of them on
//! its CPU: softirqs and process context with bottom halves disabled use such a queue, and each
//! operation requires the proof of that, a [`Softirq`] token.
//!
//! No operation sleeps. A user of a shared end may be delayed between two instructions, for example
//! by a hypervisor, while others go on: it then finds that they did, unless 2^43 elements have
//! passed meanwhile, which takes hours.
//!
//! Creating a queue allocates memory. Dropping it, or the last of its ends, drops the elements that
//! are still inside, and frees the memory by `kvfree()`. In process context that may sleep: neither
//! preemption nor interrupts may be disabled there. In interrupts and with bottom halves disabled,
//! it is deferred, so what matters is whether the elements can be dropped there.
//!
//! [`Softirq`]: crate::softirq::Softirq
//!
//! # Examples
//!
//! One producer and one consumer:
//!
//! ```
//! use kernel::sync::alf_queue::{self, Chunk};
//!
//! let (mut tx, mut rx) = alf_queue::spsc::<u32>(4, GFP_KERNEL)?;
//!
//! // One at a time; a full queue gives the element back.
//! assert!(tx.push(1).is_ok());
//! assert_eq!(rx.pop(), Some(1));
//! assert_eq!(rx.pop(), None);
//!
//! // Many at once: all of them or none, or as many as fit.
//! assert!(tx.push_bulk(&mut Chunk::from([2, 3, 4])).is_ok());
//! let mut more = Chunk::from([5, 6]);
//! assert!(tx.push_bulk(&mut more).is_err());
//! assert_eq!(tx.push_some(&mut more), 1);
//! assert_eq!(more.as_slice(), [6]);
//!
//! // As many as there are, up to a limit.
//! let mut chunk = Chunk::<u32, 16>::new();
//! assert_eq!(rx.pop_bulk(&mut chunk, 16), 4);
//! assert_eq!(chunk.as_slice(), [2, 3, 4, 5]);
//! # Ok::<(), Error>(())
//! ```
//!
//! Many of both. Dropping the queue drops its elements:
//!
//! ```
//! use kernel::{softirq::BhGuard, sync::alf_queue};
//!
//! let queue = alf_queue::mpmc::<KBox<u32>>(8, GFP_KERNEL)?;
//! let guard = BhGuard::new().ok_or(EINVAL)?;
//! let cx = guard.softirq();
//!
//! for value in 0..3 {
//!     assert!(queue.push(cx, KBox::new(value, GFP_ATOMIC)?).is_ok());
//! }
//! assert_eq!(queue.pop(cx).as_deref(), Some(&0));
//! assert_eq!(queue.len(), 2);
//! # drop(guard);
//! # Ok::<(), Error>(())
//! ```
//!
//! An end cannot be duplicated:
//!
//! ```ignore
//! let (tx, rx) = alf_queue::spsc::<u32>(4, GFP_KERNEL)?;
//! let second = tx.clone(); // error[E0599]: no method named `clone`
//! ```
//!
//! C header: [`include/linux/alf_queue.h`](srctree/include/linux/alf_queue.h)

use crate::{
    alloc::Flags,
    prelude::*,
    sync::Arc, //
};

mod atomics;
#[cfg(CONFIG_ALF_QUEUE)]
mod c_api;
mod chunk;
mod index;
mod multi;
mod preemption;
mod reserve;
mod ring;
mod single;
mod slots;
mod tests;

pub use self::{
    chunk::Chunk,
    multi::{
        Mpmc,
        SharedConsumer,
        SharedProducer, //
    },
    single::{
        Consumer,
        Owner,
        PopBatch,
        Producer,
        Reservation, //
    }, //
};
use ring::Ring;

/// Error: there was no room for all of the elements, and none was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Creates a queue for one producer and one consumer.
///
/// `capacity`, the number of elements that fit, must be a power of two, at most 2^20. Returns
/// [`EINVAL`] for any other capacity and [`ENOMEM`] if there is no memory, without a warning.
/// Depending on `flags`, this may sleep.
pub fn spsc<T: Send>(capacity: usize, flags: Flags) -> Result<(Producer<T>, Consumer<T>)> {
    spsc_from(0, capacity, flags)
}

/// Creates a queue for many producers and one consumer, as [`spsc`] does.
pub fn mpsc<T: Send>(capacity: usize, flags: Flags) -> Result<(SharedProducer<T>, Consumer<T>)> {
    mpsc_from(0, capacity, flags)
}

/// Creates a queue for one producer and many consumers, as [`spsc`] does.
pub fn spmc<T: Send>(capacity: usize, flags: Flags) -> Result<(Producer<T>, SharedConsumer<T>)> {
    spmc_from(0, capacity, flags)
}

/// Creates a queue for many producers and many consumers, as [`spsc`] does.
pub fn mpmc<T: Send>(capacity: usize, flags: Flags) -> Result<Mpmc<T>> {
    Mpmc::new(capacity, flags)
}

// The same with positions that begin at `start`, for tests of wrapping.

fn spsc_from<T: Send>(
    start: u32,
    capacity: usize,
    flags: Flags,
) -> Result<(Producer<T>, Consumer<T>)> {
    let ring = Arc::new(Ring::new(capacity, start, flags)?, flags)?;
    // SAFETY: The ring is new, and there are no other ends.
    Ok(unsafe {
        (
            Producer::from_ring(ring.clone(), start),
            Consumer::from_ring(ring, start),
        )
    })
}

fn mpsc_from<T: Send>(
    start: u32,
    capacity: usize,
    flags: Flags,
) -> Result<(SharedProducer<T>, Consumer<T>)> {
    let ring = Arc::new(Ring::new(capacity, start, flags)?, flags)?;
    // SAFETY: The ring is new, and gets no other ends.
    let rx = unsafe { Consumer::from_ring(ring.clone(), start) };
    // INVARIANT: As above.
    Ok((SharedProducer { ring }, rx))
}

fn spmc_from<T: Send>(
    start: u32,
    capacity: usize,
    flags: Flags,
) -> Result<(Producer<T>, SharedConsumer<T>)> {
    let ring = Arc::new(Ring::new(capacity, start, flags)?, flags)?;
    // SAFETY: The ring is new, and gets no other ends.
    let tx = unsafe { Producer::from_ring(ring.clone(), start) };
    // INVARIANT: As above.
    Ok((tx, SharedConsumer { ring }))
}
