// SPDX-License-Identifier: GPL-2.0

//! Transmit rings for frames that were redirected.
//!
//! The core calls `ndo_xdp_xmit()` on any CPU, in the poll function of any device, that of the same
//! one included, whose receive loop is under way then. So the ring has a lock of its own, which
//! nothing is called with that could come back here: neither a program nor the stack.
//!
//! A frame is mapped while it is in the ring, even if its page has a mapping of its own: C removes
//! the mappings of a page pool when that is destroyed, also of pages that are on their way. It goes
//! back when it is no longer mapped.

mod record;
mod submit;

use self::record::Record;

use super::{
    frame::{
        FrameBulk,
        XdpFrame, //
    },
    XdpFormat, //
};

use crate::{
    bindings,
    device::{
        self,
        Bound, //
    },
    net::{
        napi::Attached,
        queue::{
            RingMemory,
            RingSize, //
        }, //
    },
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        static_lock_class,
        SpinLock, //
    }, //
};

use core::ptr::NonNull;

/// The totals of frames that a ring was given, as far as they have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpTxCounts {
    /// Frames that the NIC has sent.
    pub packets: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Frames that there was no room for, or that the NIC cannot send, with those behind them.
    pub refused: u64,
    /// Frames that the NIC had not sent when it was stopped.
    pub lost: u64,
}

/// The address and the size of a ring, for the NIC.
#[derive(Clone, Copy, Debug)]
pub struct XdpTxAddress {
    /// The address of the first descriptor.
    pub base: u64,
    /// The size in bytes.
    pub bytes: u32,
}

/// The part of a ring for the holder of its lock.
///
/// # Invariants
///
/// - The number of `records` is a power of two.
/// - Numbers of descriptors count on: `free` is ahead of `done` by less than the ring has, and
///   `told` is not behind `done` nor ahead of `free`.
/// - Those from `done` to `free` belong to whole frames, and their records have mappings for the
///   device of the ring. No other record has a frame.
struct Frames {
    records: KVVec<Record>,
    /// The descriptor that the NIC completes next.
    done: usize,
    /// The descriptor that is given to the NIC next.
    free: usize,
    /// The one up to which the NIC was told of frames.
    told: usize,
}

impl Frames {
    /// The record of a descriptor.
    #[inline(always)]
    fn record(&mut self, number: usize) -> &mut Record {
        let mask = self.records.len() - 1;

        // SAFETY: By the type invariants, this is less than their number.
        unsafe { self.records.get_unchecked_mut(number & mask) }
    }

    /// Number of free descriptors. All but one can be in use.
    #[inline(always)]
    fn room(&self) -> usize {
        self.records.len() - 1 - self.free.wrapping_sub(self.done)
    }
}

/// A transmit ring for frames that were redirected, found by CPU.
///
/// It is an object of the NAPI instance of a vector, whose poll function completes it.
///
/// # Invariants
///
/// - `dev` is bound until the ring is dropped.
/// - There is a record for each descriptor of `memory`.
#[pin_data(PinnedDrop)]
pub(in crate::net) struct XdpTxRing {
    memory: RingMemory,
    dev: NonNull<bindings::device>,
    /// Descriptors that have a frame, for those who do not hold the lock.
    in_use: Atomic<usize>,
    #[pin]
    frames: SpinLock<Frames>,
}

// SAFETY: A device can be used by any thread, and the rest is `Send`.
unsafe impl Send for XdpTxRing {}

// SAFETY: As above. What changes is locked.
unsafe impl Sync for XdpTxRing {}

/// The name of a lock class.
static XDP_TX: &CStr = c"xdp::XdpTxRing";

impl XdpTxRing {
    /// Makes a ring with `len` descriptors.
    ///
    /// # Safety
    ///
    /// The device must be bound until the ring is dropped.
    pub(in crate::net) unsafe fn new(
        dev: &device::Device<Bound>,
        len: RingSize,
    ) -> Result<impl PinInit<Self>> {
        let mut records = KVVec::with_capacity(len.get(), GFP_KERNEL)?;

        for _ in 0..len.get() {
            records.push(Record::default(), GFP_KERNEL)?;
        }
        let memory = RingMemory::new(dev, len)?;
        let dev = NonNull::new(dev.as_raw()).ok_or(EINVAL)?;
        // INVARIANT: There is no frame. The number of descriptors is a power of two.
        let frames = Frames {
            records,
            done: 0,
            free: 0,
            told: 0,
        };

        // INVARIANT: By the safety requirements, and there are as many records.
        Ok(pin_init!(Self {
            memory,
            dev,
            in_use: Atomic::new(0),
            frames <- SpinLock::new(frames, XDP_TX, static_lock_class!()),
        }))
    }

    /// The ring for the NIC.
    pub(in crate::net) fn address(&self) -> XdpTxAddress {
        XdpTxAddress {
            base: self.memory.address(),
            bytes: self.memory.bytes(),
        }
    }

    /// Whether there are frames in it.
    #[inline(always)]
    pub(in crate::net) fn has_frames(&self) -> bool {
        self.in_use.load(Relaxed) != 0
    }

    /// Takes frames, as far as there is room, and returns their number. With `flush`, the NIC has
    /// to be told of all that are in the ring. `end` is called with the lock held: with the tail in
    /// that case, and with the totals.
    ///
    /// # Safety
    ///
    /// The frames must be valid, and those that are taken become ours. Bottom halves must be
    /// disabled, and interrupts must not be. `end` must not access the ring.
    pub(in crate::net) unsafe fn send<F: XdpFormat>(
        &self,
        frames: &[NonNull<bindings::xdp_frame>],
        flush: bool,
        end: impl FnOnce(Option<usize>, XdpTxCounts),
    ) -> usize {
        let mut counts = XdpTxCounts::default();
        let mut taken = 0;
        let mut guard = self.frames.lock();
        let ring = &mut *guard;

        // Here, pages return to where they are from at least cost: often, this is the poll function
        // that they were received by.
        if ring.done != ring.told {
            // SAFETY: By the safety requirements.
            unsafe { self.complete_locked::<F>(ring, &mut counts) };
        }
        for frame in frames {
            // SAFETY: By the safety requirements.
            let frame = unsafe { XdpFrame::from_raw(*frame) };

            if let Err(frame) = self.submit::<F>(ring, frame) {
                // It stays the caller's.
                let _ = frame.into_raw();
                break;
            }
            taken += 1;
        }
        counts.refused = (frames.len() - taken) as u64;
        self.in_use
            .store(ring.free.wrapping_sub(ring.done), Relaxed);

        let tail = (flush && ring.told != ring.free).then(|| {
            ring.told = ring.free;
            ring.free & (self.memory.len() - 1)
        });
        end(tail, counts);
        taken
    }

    /// Takes back what the NIC has sent. `end` is called with the totals, if there are any, and
    /// with the lock held.
    ///
    /// # Safety
    ///
    /// Bottom halves must be disabled, and interrupts must not be. `end` must not access the ring.
    pub(in crate::net) unsafe fn complete<F: XdpFormat>(&self, end: impl FnOnce(XdpTxCounts)) {
        let mut counts = XdpTxCounts::default();
        let mut guard = self.frames.lock();
        let ring = &mut *guard;

        // SAFETY: By the safety requirements.
        unsafe { self.complete_locked::<F>(ring, &mut counts) };
        self.in_use
            .store(ring.free.wrapping_sub(ring.done), Relaxed);
        if counts != XdpTxCounts::default() {
            end(counts);
        }
    }

    /// As [`Self::complete`], when the NIC was stopped: takes back all frames.
    ///
    /// # Safety
    ///
    /// As there, and the NIC must not access the memory of frames, nor be told of others.
    pub(in crate::net) unsafe fn finish<F: XdpFormat>(&self, end: impl FnOnce(XdpTxCounts)) {
        let mut counts = XdpTxCounts::default();
        let mut guard = self.frames.lock();
        let ring = &mut *guard;

        // SAFETY: By the safety requirements.
        unsafe { self.complete_locked::<F>(ring, &mut counts) };
        counts.lost = self.take_all(ring);
        self.in_use.store(0, Relaxed);
        end(counts);
    }

    /// Returns all frames, and their number.
    fn take_all(&self, ring: &mut Frames) -> u64 {
        let mut lost = 0;

        while ring.done != ring.free {
            lost += u64::from(self.take_next(ring, true).1.is_some());
        }
        ring.told = ring.free;
        lost
    }

    /// Takes the next record that has a mapping, which is removed, unless it is known that there is
    /// nothing to remove. Returns the number of bytes, and the frame if it ends there.
    #[inline(always)]
    fn take_next(&self, ring: &mut Frames, needs_unmap: bool) -> (u16, Option<XdpFrame>) {
        let done = ring.done;
        // SAFETY: By the type invariants, and those of `Frames`. The NIC has sent the part, or does
        // not send it any more, and the caller knows whether there is something to remove.
        let taken = unsafe { ring.record(done).unmap(self.dev.as_ptr(), needs_unmap) };

        // INVARIANT: The parts of a frame are taken one after the other, and are not mapped.
        ring.done = done.wrapping_add(1);
        taken
    }

    /// Takes the next frame, if the NIC has sent it, with the number of its bytes.
    #[inline(always)]
    fn take_sent<F: XdpFormat>(
        &self,
        ring: &mut Frames,
        needs_unmap: bool,
    ) -> Option<(u64, XdpFrame)> {
        let done = ring.done;

        if done == ring.told {
            return None;
        }
        if !ring.record(done).is_last() {
            return self.take_several::<F>(ring, needs_unmap);
        }
        // SAFETY: The memory exists, and this is a place there.
        if !F::is_sent(unsafe { self.memory.slots().second(self.memory.place(done)) }) {
            return None;
        }
        let (len, frame) = self.take_next(ring, needs_unmap);
        Some((len.into(), frame?))
    }

    /// As [`Self::take_sent`], of a frame in several buffers.
    #[cold]
    #[inline(never)]
    fn take_several<F: XdpFormat>(
        &self,
        ring: &mut Frames,
        needs_unmap: bool,
    ) -> Option<(u64, XdpFrame)> {
        let (mut last, mut bytes) = (ring.done, 0);

        // The NIC reports that by the last descriptor.
        while !ring.record(last).is_last() {
            last = last.wrapping_add(1);
            if last == ring.told {
                return None;
            }
        }
        // SAFETY: The memory exists, and this is a place there.
        if !F::is_sent(unsafe { self.memory.slots().second(self.memory.place(last)) }) {
            return None;
        }
        loop {
            let (len, frame) = self.take_next(ring, needs_unmap);

            bytes += u64::from(len);
            if let Some(frame) = frame {
                return Some((bytes, frame));
            }
        }
    }

    /// See [`Self::complete`].
    ///
    /// # Safety
    ///
    /// As there.
    #[inline(never)]
    unsafe fn complete_locked<F: XdpFormat>(&self, ring: &mut Frames, counts: &mut XdpTxCounts) {
        // SAFETY: By the type invariants.
        let needs_unmap = unsafe { bindings::dma_need_unmap(self.dev.as_ptr()) };
        // SAFETY: By the safety requirements.
        let mut bulk = unsafe { FrameBulk::new() };
        let (mut packets, mut bytes) = (0, 0);

        while let Some((len, frame)) = self.take_sent::<F>(ring, needs_unmap) {
            bytes += len;
            packets += 1;
            bulk.add(frame);
        }
        counts.packets += packets;
        counts.bytes += bytes;
    }
}

impl Attached for XdpTxRing {}

#[pinned_drop]
impl PinnedDrop for XdpTxRing {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: There is no other access: the ring goes away. The lock is not for process
        // context.
        let ring = unsafe { &mut *self.frames.data.get() };

        self.take_all(ring);
    }
}

#[cfg(CONFIG_KUNIT)]
impl XdpTxRing {
    /// The number of descriptors that have a frame, for tests.
    pub(in crate::net) fn in_use(&self) -> usize {
        self.in_use.load(Relaxed)
    }

    /// The words of a descriptor, for tests.
    pub(in crate::net) fn words(&self, index: usize) -> [u64; 2] {
        let (slots, place) = (self.memory.slots(), self.memory.place(index));

        // SAFETY: The memory exists, and this is a place there.
        unsafe { [slots.first(place), slots.second(place)] }
    }

    /// Completes a descriptor, as the NIC does, for tests.
    pub(in crate::net) fn write_back(&self, index: usize, status: u64) {
        // SAFETY: As in `words()`.
        unsafe {
            self.memory
                .slots()
                .write(self.memory.place(index), [0, status]);
        }
    }
}
