// SPDX-License-Identifier: GPL-2.0

//! Stand-in for the receive ring, whose descriptors a test completes: the folder `ring/` is a link
//! to the kernel's.

#![allow(
    dead_code,
    missing_docs,
    unfulfilled_lint_expectations,
    clippy::all,
    reason = "the kernel's linters read the files behind the link"
)]

#[rustfmt::skip]
pub(crate) mod chains;

use super::{CpuBuffer, DeviceBuffer};
use crate::device::{Bound, Device};
use crate::net::napi::{Napi, Poll, RxStopped};
use crate::net::queue::{RingSize, RingSlots};
use crate::prelude::{Result, EINVAL};
use std::cell::{Cell, RefCell, UnsafeCell};
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::rc::Rc;

/// The longest that a buffer holds.
pub(crate) const LONGEST: u16 = 3072;

/// The report of a NIC.
pub(crate) trait RxFormat {
    /// The longest part of a frame in a buffer, in place of a `Layout`.
    const LAYOUT: u16 = LONGEST;

    fn len(status: u64) -> u16;
}

/// A ring, as drivers start and refill it.
pub(crate) trait AnyRxRing {
    type Format: RxFormat;

    fn as_rx_ring(&self) -> &RxRing<Self::Format>;
    fn dma_address(&mut self, napi: &Napi) -> Result<u64>;
    fn rewind(&mut self, stopped: RxStopped<'_>) -> Result<u64>;
    fn refill(&mut self, cx: &Poll<'_>) -> Result<usize>;
}

struct Places<T>(UnsafeCell<Vec<T>>);

impl<T: Default> Places<T> {
    fn new(len: usize) -> Result<Self> {
        Ok(Self(UnsafeCell::new(
            (0..len).map(|_| T::default()).collect(),
        )))
    }

    fn first(&self) -> Result<NonNull<T>> {
        // SAFETY: There is no user yet.
        NonNull::new(unsafe { (*self.0.get()).as_mut_ptr() }).ok_or(EINVAL)
    }
}

struct RxSlots {
    desc: RingSlots,
    /// The buffers that the NIC has, from the next one on.
    buffers: RefCell<VecDeque<DeviceBuffer>>,
    /// The words of descriptors that it has completed.
    done: RefCell<VecDeque<[u64; 2]>>,
}

/// A ring.
pub struct RxRing<F> {
    slots: RxSlots,
    next_done: usize,
    /// Of the pool: buffers that are out, and how many ever were.
    out: Rc<Cell<usize>>,
    taken: usize,
    _format: PhantomData<F>,
}

impl<F: RxFormat> RxRing<F> {
    fn new(_: &Device<Bound>, _: &Napi, len: RingSize, _buffers: u32) -> Result<Self> {
        Ok(Self {
            slots: RxSlots {
                desc: RingSlots(len.get()),
                buffers: RefCell::default(),
                done: RefCell::default(),
            },
            next_done: 0,
            out: Rc::default(),
            taken: 0,
            _format: PhantomData,
        })
    }

    /// The number of buffers that the NIC has.
    pub(crate) fn in_use(&self) -> usize {
        self.slots.buffers.borrow().len()
    }

    /// The counter of buffers that are not in the pool.
    pub(crate) fn out(&self) -> Rc<Cell<usize>> {
        Rc::clone(&self.out)
    }

    /// The NIC completes another descriptor, if it has one.
    pub(crate) fn complete(&self, words: [u64; 2]) {
        self.slots.done.borrow_mut().push_back(words);
    }

    fn poll<'a, 'p>(&'a mut self, _: &'p Poll<'_>) -> Result<Polling<'a, 'p, F>> {
        Ok(Polling {
            slots: &self.slots,
            position: self.next_done,
            next_done: &mut self.next_done,
            receiver: Receiver(PhantomData),
            _format: PhantomData,
        })
    }

    fn dma_address(&mut self, _: &Napi) -> Result<u64> {
        Ok(0)
    }

    fn rewind(&mut self, _: RxStopped<'_>) -> Result<u64> {
        self.slots.buffers.borrow_mut().clear();
        self.slots.done.borrow_mut().clear();
        self.next_done = 0;
        Ok(0)
    }

    fn refill(&mut self, _: &Poll<'_>) -> Result<usize> {
        let mut buffers = self.slots.buffers.borrow_mut();

        while buffers.len() < self.slots.desc.len() - 1 {
            buffers.push_back(DeviceBuffer::new(self.taken, self.out()));
            self.taken += 1;
        }
        Ok(0)
    }
}

struct Receiver<'p>(PhantomData<&'p ()>);

impl<'p> Receiver<'p> {
    /// # Safety
    ///
    /// There are no requirements.
    unsafe fn complete(
        &self,
        longest: u16,
        buffer: DeviceBuffer,
        len: u16,
    ) -> Option<CpuBuffer<'p>> {
        (1..=longest)
            .contains(&len)
            .then(|| CpuBuffer::new(buffer, len))
    }
}

/// A ring that is being polled.
pub(crate) struct Polling<'a, 'p, F> {
    slots: &'a RxSlots,
    position: usize,
    next_done: &'a mut usize,
    receiver: Receiver<'p>,
    _format: PhantomData<F>,
}

impl<F: RxFormat> Polling<'_, '_, F> {
    fn take(&mut self) -> Option<(u64, u64, DeviceBuffer)> {
        if self.slots.buffers.borrow().is_empty() {
            return None;
        }
        let [info, status] = self.slots.done.borrow_mut().pop_front()?;
        let buffer = self.slots.buffers.borrow_mut().pop_front()?;

        self.position += RingSlots::WORDS;
        Some((info, status, buffer))
    }
}

impl<F> Drop for Polling<'_, '_, F> {
    fn drop(&mut self) {
        *self.next_done = self.position;
    }
}
