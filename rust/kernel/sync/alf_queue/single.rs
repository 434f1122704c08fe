// SPDX-License-Identifier: GPL-2.0

//! Ends of a queue with a single owner.

use super::{
    chunk::Chunk,
    index::{
        ConsumerView,
        ProducerView, //
    },
    reserve::Run,
    ring::Ring,
    slots::Slots,
    Full, //
};
use crate::sync::Arc;

/// The producing end of a queue.
///
/// # Invariants
///
/// - It is the only producing end of `ring`, and `slots` are the slots of `ring`.
/// - The free slots according to `view` belong to this end and hold no elements.
pub struct Producer<T> {
    view: ProducerView,
    slots: Slots<T>,
    ring: Arc<Ring<T>>,
}

// SAFETY: The end can be sent to another context if its elements can.
unsafe impl<T: Send> Send for Producer<T> {}

/// A shared owner of the elements of a queue: they are dropped when this and both ends have been.
pub struct Owner<T> {
    _ring: Arc<Ring<T>>,
}

impl<T> Producer<T> {
    /// Returns the producing end of a ring that is still at the position `start`.
    ///
    /// # Safety
    ///
    /// Nothing else uses the producing end of the ring.
    pub(super) unsafe fn from_ring(ring: Arc<Ring<T>>, start: u32) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            view: ProducerView::new(start),
            slots: ring.slots(),
            ring,
        }
    }

    /// A further owner, for elements that may outlive both ends.
    pub fn owner(&self) -> Owner<T> {
        Owner {
            _ring: self.ring.clone(),
        }
    }

    /// Returns the capacity of the queue.
    #[inline]
    pub fn capacity(&self) -> usize {
        // CAST: `usize` has at least 32 bits wherever the kernel runs.
        self.slots.capacity() as usize
    }

    /// Reads the consumer's position, and returns the number of free slots.
    ///
    /// The consumer may free more at any time, so this is a lower bound.
    #[inline]
    pub fn free(&self) -> usize {
        self.view
            .free(self.slots.capacity(), &self.ring.consumer.tail) as usize
    }

    /// Returns the number of free slots when the consumer's position was last read.
    #[inline]
    pub fn free_seen(&self) -> usize {
        self.view.free_seen(self.slots.capacity()) as usize
    }

    /// Returns a lower bound of the number of free slots, [`Self::free`] if it would be less than
    /// `enough`.
    ///
    /// As long as enough slots are known to be free, this needs no access to the cache line that
    /// the consumer writes.
    #[inline]
    pub fn free_or_enough(&self, enough: usize) -> usize {
        let known = self.free_seen();
        if known >= enough {
            known
        } else {
            self.free()
        }
    }

    /// Checks that at least `count` slots are free.
    ///
    /// In most cases this needs no access to the cache line that the consumer writes.
    #[inline]
    pub fn has_room(&self, count: usize) -> bool {
        self.view
            .has_room(count, self.slots.capacity(), &self.ring.consumer.tail)
    }

    /// Adds an element, or returns it if the queue is full.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), T> {
        let Some(mut batch) = self.reserve(1) else {
            return Err(value);
        };
        // The reservation has a slot for it.
        let result = batch.push(value);
        batch.commit();
        result
    }

    /// Moves all of `values` into the queue, or none if there is no room for all of them.
    ///
    /// The consumer sees either none or all of them.
    #[inline(always)]
    pub fn push_bulk<const N: usize>(&mut self, values: &mut Chunk<T, N>) -> Result<(), Full> {
        let count = values.known_len();
        if !self.has_room(count) {
            return Err(Full);
        }
        // SAFETY: There are `count` elements, and `count` slots are free.
        unsafe { self.push_first(values, count) };
        Ok(())
    }

    /// Moves the first of `values` into the queue, as many as fit. Returns their number.
    #[inline(always)]
    pub fn push_some<const N: usize>(&mut self, values: &mut Chunk<T, N>) -> usize {
        let available = values.known_len();
        let count = available.min(self.free_or_enough(available));
        // SAFETY: There are at least `count` elements, and `count` slots are free.
        unsafe { self.push_first(values, count) };
        count
    }

    /// Moves the first `count` of `values` into the queue.
    ///
    /// # Safety
    ///
    /// `values` has `count` elements, and `view` has `count` free slots.
    #[inline(always)]
    unsafe fn push_first<const N: usize>(&mut self, values: &mut Chunk<T, N>, count: usize) {
        let run = Run {
            start: self.view.next(),
            // CAST: At most the capacity, which fits.
            count: count as u32,
        };
        // SAFETY: We keep the ring alive. By the type invariants, free slots belong to us, and by
        // the safety requirements, there are `count` of them, and `count` elements.
        unsafe {
            self.slots.write_run(run, values.as_ptr());
            values.forget_first(count);
        }
        self.view.publish(run.count, &self.ring.producer.tail);
    }

    /// Reserves `count` slots, to be filled one by one and published together.
    ///
    /// Returns [`None`] if fewer than `count` slots are free.
    #[inline]
    pub fn reserve(&mut self, count: usize) -> Option<Reservation<'_, T>> {
        if !self.has_room(count) {
            return None;
        }
        // INVARIANT: `count` slots are free, and no element has been written.
        Some(Reservation {
            producer: self,
            // CAST: `has_room` refuses anything above the capacity, which fits.
            count: count as u32,
            written: 0,
        })
    }

    /// Returns the index of the slot for the next element.
    #[inline]
    pub fn next_slot(&self) -> usize {
        self.slots.index(self.view.next())
    }
}

/// Reserved slots of a queue, which the producer fills.
///
/// The elements are not visible to the consumer before [`Reservation::commit`]. Dropping a
/// reservation drops the elements written so far, and leaves the queue unchanged.
///
/// # Invariants
///
/// `count` slots from the producer's position on belong to the producer, and the first `written`
/// of them hold elements, `written <= count`.
pub struct Reservation<'a, T> {
    producer: &'a mut Producer<T>,
    count: u32,
    written: u32,
}

impl<T> Reservation<'_, T> {
    /// Writes an element to the next reserved slot, or returns it if all have been used.
    #[inline(always)]
    pub fn push(&mut self, value: T) -> Result<(), T> {
        if self.written == self.count {
            return Err(value);
        }
        // SAFETY: The producer keeps the ring alive. By the type invariants, the slot is free, and
        // belongs to the producer, which we borrow mutably.
        unsafe { self.producer.slots.write(self.position(), value) };
        // INVARIANT: One more slot holds an element.
        self.written += 1;
        Ok(())
    }

    /// Returns the index of the slot for the next element.
    #[inline(always)]
    pub fn slot(&self) -> usize {
        self.producer.slots.index(self.position())
    }

    /// Returns the number of elements written so far.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.written as usize
    }

    /// Returns whether no element has been written yet.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.written == 0
    }

    /// Returns the element at `offset` from the first one written.
    #[inline(always)]
    pub fn get_mut(&mut self, offset: usize) -> Option<&mut T> {
        if offset >= self.len() {
            return None;
        }
        // CAST: `offset` is less than `written`, which has 32 bits.
        let position = self.producer.view.next().wrapping_add(offset as u32);
        // SAFETY: The producer keeps the ring alive. By the type invariants, the slot holds an
        // element and belongs to the producer, which we borrow mutably.
        Some(unsafe { self.producer.slots.get_mut(position) })
    }

    /// Publishes the elements written so far, all at once.
    ///
    /// This has release semantics: a consumer that sees the elements also sees all earlier writes
    /// of the caller.
    #[inline(always)]
    pub fn commit(mut self) {
        let count = core::mem::take(&mut self.written);
        // INVARIANT: The elements belong to the consumer from here on: dropping the reservation,
        // which holds none now, does not drop them.
        let producer = &mut *self.producer;
        producer.view.publish(count, &producer.ring.producer.tail);
    }

    #[inline(always)]
    fn position(&self) -> u32 {
        self.producer.view.next().wrapping_add(self.written)
    }
}

impl<T> Drop for Reservation<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        let start = self.producer.view.next();
        for offset in 0..self.written {
            // SAFETY: The producer keeps the ring alive. By the type invariants, the slot holds an
            // element, which is not read again.
            drop(unsafe { self.producer.slots.read(start.wrapping_add(offset)) });
        }
    }
}

/// The consuming end of a queue.
///
/// # Invariants
///
/// - It is the only consuming end of `ring`, and `slots` are the slots of `ring`.
/// - The slots from `view`'s position up to the cached producer's belong to this end and hold
///   elements.
pub struct Consumer<T> {
    view: ConsumerView,
    slots: Slots<T>,
    ring: Arc<Ring<T>>,
}

// SAFETY: The end can be sent to another context if its elements can.
unsafe impl<T: Send> Send for Consumer<T> {}

impl<T> Consumer<T> {
    /// Returns the consuming end of a ring that is still at the position `start`.
    ///
    /// # Safety
    ///
    /// Nothing else uses the consuming end of the ring.
    pub(super) unsafe fn from_ring(ring: Arc<Ring<T>>, start: u32) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            view: ConsumerView::new(start),
            slots: ring.slots(),
            ring,
        }
    }

    /// Returns the capacity of the queue.
    #[inline]
    pub fn capacity(&self) -> usize {
        // CAST: `usize` has at least 32 bits wherever the kernel runs.
        self.slots.capacity() as usize
    }

    /// Reads the producer's position, and returns the number of elements in the queue.
    ///
    /// The producer may add more at any time, so this is a lower bound.
    #[inline]
    pub fn len(&self) -> usize {
        self.view.len(&self.ring.producer.tail) as usize
    }

    /// Checks whether the queue is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.view.has_element(&self.ring.producer.tail)
    }

    /// Returns a reference to the oldest element.
    #[inline]
    pub fn peek(&self) -> Option<&T> {
        if !self.view.has_element(&self.ring.producer.tail) {
            return None;
        }
        // SAFETY: We keep the ring alive. By the type invariants, the slot holds an element and
        // belongs to us; taking it out needs `&mut self`, which the reference prevents.
        Some(unsafe { self.slots.peek(self.view.next()) })
    }

    /// Takes out the oldest element.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        self.batch().pop()
    }

    /// Moves the oldest elements to `sink`: at most `limit`, and as many as the queue has and the
    /// sink has room for. Returns their number.
    #[inline(always)]
    pub fn pop_bulk<const N: usize>(&mut self, sink: &mut Chunk<T, N>, limit: usize) -> usize {
        let limit = limit.min(sink.room());
        // No queue is larger.
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let count = self.view.up_to(limit, &self.ring.producer.tail);
        if count == 0 {
            return 0;
        }
        let run = Run {
            start: self.view.next(),
            count,
        };
        // SAFETY: We keep the ring alive. By the type invariants, these slots belong to us and hold
        // elements; they are not read again, as the view advances. The sink has room for them.
        unsafe {
            self.slots.read_run(run, sink.end());
            sink.grow(count as usize);
        }
        self.view.advance_by(count);
        self.view.publish(&self.ring.consumer.tail);
        count as usize
    }

    /// Starts a batch: the slots of elements taken through it become free together when it is
    /// dropped.
    #[inline]
    pub fn batch(&mut self) -> PopBatch<'_, T> {
        PopBatch {
            start: self.view.next(),
            consumer: self,
        }
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        // If a batch was forgotten, it has not published that it took out elements: the ring must
        // not drop those again.
        self.view.publish(&self.ring.consumer.tail);
    }
}

/// A batch of elements being taken out of a queue.
///
/// If a batch is forgotten, the producer can reuse its slots only after a later batch that takes
/// elements ends.
pub struct PopBatch<'a, T> {
    consumer: &'a mut Consumer<T>,
    start: u32,
}

impl<T> PopBatch<'_, T> {
    /// Returns a reference to the oldest element.
    #[inline(always)]
    pub fn peek(&self) -> Option<&T> {
        self.consumer.peek()
    }

    /// Returns a reference to the oldest element, if it was there when the producer's position was
    /// last read.
    #[inline(always)]
    pub fn peek_seen(&self) -> Option<&T> {
        if self.consumer.view.len_seen() == 0 {
            return None;
        }
        // SAFETY: As in [`Consumer::peek`].
        Some(unsafe { self.consumer.slots.peek(self.consumer.view.next()) })
    }

    /// Takes out the oldest element.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        self.pop_seen(|value| value)
    }

    /// Takes out the oldest element, if it was there when the producer's position was last read,
    /// and returns the result of `f` for it.
    #[inline(always)]
    pub fn pop_seen<R>(&mut self, f: impl FnOnce(T) -> R) -> Option<R> {
        let consumer = &mut *self.consumer;
        if consumer.view.len_seen() == 0 {
            return None;
        }
        // SAFETY: The consumer keeps the ring alive. By its type invariants, the slot holds an
        // element and belongs to it; the position advances, so it is not read again.
        let value = unsafe { consumer.slots.read(consumer.view.next()) };
        consumer.view.advance();
        Some(f(value))
    }

    /// Checks whether the queue is empty.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.consumer.is_empty()
    }

    /// Returns the index of the slot `offset` elements after the oldest one.
    #[inline(always)]
    pub fn slot_after(&self, offset: usize) -> usize {
        // CAST: Only the low bits of a position matter.
        let position = self.consumer.view.next().wrapping_add(offset as u32);
        self.consumer.slots.index(position)
    }
}

impl<T> Drop for PopBatch<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        let consumer = &mut *self.consumer;
        // An empty batch does not write to the cache line that the producer reads.
        if consumer.view.next() != self.start {
            consumer.view.publish(&consumer.ring.consumer.tail);
        }
    }
}
