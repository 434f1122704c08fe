// SPDX-License-Identifier: GPL-2.0

//! Ends of a queue that have one owner.

use super::{
    chunk::{
        Sink,
        Source, //
    },
    index::{
        ConsumerView,
        ProducerView, //
    },
    reserve::Run,
    ring::{
        Ring,
        Slots, //
    },
    Full, //
};
use crate::sync::Arc;

/// The end of a queue that puts elements in.
///
/// # Invariants
///
/// - It is the only producing end of `ring`, and `slots` are the slots of `ring`.
/// - The free slots that `view` knows of belong to this end and hold no elements.
pub struct Producer<T> {
    view: ProducerView,
    slots: Slots<T>,
    ring: Arc<Ring<T>>,
}

// SAFETY: The end and the elements that it puts in may be used by another context if the elements
// may.
unsafe impl<T: Send> Send for Producer<T> {}

impl<T> Producer<T> {
    /// Makes the end of a ring that is still at the position `start`.
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

    /// Returns the number of elements that fit into the queue.
    #[inline]
    pub fn capacity(&self) -> usize {
        // CAST: `usize` has at least 32 bits wherever the kernel runs.
        self.slots.capacity() as usize
    }

    /// Returns the number of free slots, reading how far the consumer is.
    ///
    /// The consumer may free more at any time, so there are at least that many.
    #[inline]
    pub fn free(&self) -> usize {
        self.view
            .free(self.slots.capacity(), &self.ring.consumer.tail) as usize
    }

    /// Returns a number of slots that are free, [`Self::free`] if it would be less than `enough`.
    ///
    /// As long as enough slots are known to be free, this needs no access to memory that the
    /// consumer writes.
    #[inline]
    pub fn free_or_enough(&self, enough: usize) -> usize {
        let known = self.view.free_seen(self.slots.capacity()) as usize;
        if known >= enough {
            known
        } else {
            self.free()
        }
    }

    /// Checks that at least `count` slots are free.
    ///
    /// In most cases this needs no access to memory that the consumer writes.
    #[inline]
    pub fn has_room(&self, count: usize) -> bool {
        self.view
            .has_room(count, self.slots.capacity(), &self.ring.consumer.tail)
    }

    /// Puts one element in, or gives it back if the queue is full.
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

    /// Puts all of `values` in, or gives them back if there is no room for all of them.
    ///
    /// The consumer sees either none or all of them. If the iterator yields fewer elements than
    /// its length says, these are put in; if it yields more, the rest is dropped with it.
    #[inline]
    pub fn push_iter<I>(&mut self, values: I) -> Result<(), I>
    where
        I: ExactSizeIterator<Item = T>,
    {
        let count = values.len();
        let Some(mut batch) = self.reserve(count) else {
            return Err(values);
        };
        for value in values.take(count) {
            // Cannot fail: there are `count` slots, and the iterator is cut off at `count`.
            let _ = batch.push(value);
        }
        batch.commit();
        Ok(())
    }

    /// Moves all of `values` into the queue, or none if there is no room for all of them.
    ///
    /// The consumer sees either none or all of them.
    #[inline(always)]
    pub fn push_bulk(&mut self, values: &mut impl Source<T>) -> Result<(), Full> {
        let count = values.count();
        if !self.has_room(count) {
            return Err(Full);
        }
        // SAFETY: There is room for so many.
        unsafe { self.push_first(values, count) };
        Ok(())
    }

    /// Moves the first of `values` into the queue, as many as fit, and returns how many.
    #[inline(always)]
    pub fn push_some(&mut self, values: &mut impl Source<T>) -> usize {
        let available = values.count();
        let count = available.min(self.free_or_enough(available));
        // SAFETY: There is room for so many.
        unsafe { self.push_first(values, count) };
        count
    }

    /// Moves the first `count` of `values` into the queue.
    ///
    /// # Safety
    ///
    /// There are so many elements, and so many slots known to be free.
    #[inline(always)]
    unsafe fn push_first(&mut self, values: &mut impl Source<T>, count: usize) {
        let run = Run {
            start: self.view.next(),
            // CAST: At most the capacity, which fits.
            count: count as u32,
        };
        // SAFETY: We keep the ring alive. By the type invariants the free slots belong to us, and
        // by the safety requirements there are so many of them and of elements.
        unsafe {
            self.slots.write_run(run, values.as_ptr());
            values.forget_first(count);
        }
        self.view.publish(run.count, &self.ring.producer.tail);
    }

    /// Reserves `count` slots to put elements in one by one and publish them together.
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

    /// Returns the slot of the element that is put in next, a number below the capacity.
    #[inline]
    pub fn next_slot(&self) -> usize {
        self.slots.index(self.view.next())
    }
}

/// Free slots of a queue that its producer is filling.
///
/// Nothing of it is visible to the consumer before [`Reservation::commit`]. Dropping a reservation
/// drops the elements written so far, and the queue is as before.
///
/// # Invariants
///
/// `count` slots from the producer's position on are free for the producer, and the first
/// `written` of them hold elements, `written <= count`.
pub struct Reservation<'a, T> {
    producer: &'a mut Producer<T>,
    count: u32,
    written: u32,
}

impl<T> Reservation<'_, T> {
    /// Puts an element into the next reserved slot, or gives it back if all have been used.
    #[inline(always)]
    pub fn push(&mut self, value: T) -> Result<(), T> {
        if self.written == self.count {
            return Err(value);
        }
        // SAFETY: The producer keeps the ring alive. By the type invariants the slot is free, and
        // belongs to the producer, of which we have the only reference.
        unsafe { self.producer.slots.write(self.position(), value) };
        // INVARIANT: One more slot holds an element.
        self.written += 1;
        Ok(())
    }

    /// Returns the slot of the element that is put in next, a number below the capacity.
    #[inline(always)]
    pub fn slot(&self) -> usize {
        self.producer.slots.index(self.position())
    }

    /// Returns the number of elements written so far.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.written as usize
    }

    /// Checks that no element has been written yet.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.written == 0
    }

    /// Returns the element that was written `offset` elements after the first one.
    #[inline(always)]
    pub fn get_mut(&mut self, offset: usize) -> Option<&mut T> {
        if offset >= self.len() {
            return None;
        }
        // CAST: `offset` is less than `written`, which has 32 bits.
        let position = self.producer.view.next().wrapping_add(offset as u32);
        // SAFETY: The producer keeps the ring alive. By the type invariants the slot holds an
        // element and belongs to the producer, of which we have the only reference.
        Some(unsafe { self.producer.slots.get_mut(position) })
    }

    /// Makes the elements written so far visible to the consumer, all at once.
    ///
    /// What the caller did before, the consumer sees done when it sees the elements.
    #[inline(always)]
    pub fn commit(mut self) {
        let count = core::mem::take(&mut self.written);
        // INVARIANT: The elements belong to the consumer from here on, so they are not dropped
        // with the reservation, which holds none now.
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
            // SAFETY: The producer keeps the ring alive. By the type invariants the slot holds an
            // element; the slot is free again hereafter.
            drop(unsafe { self.producer.slots.read(start.wrapping_add(offset)) });
        }
    }
}

/// The end of a queue that takes elements out.
///
/// # Invariants
///
/// - It is the only consuming end of `ring`, and `slots` are the slots of `ring`.
/// - The slots of the elements that `view` knows of belong to this end and hold elements.
pub struct Consumer<T> {
    view: ConsumerView,
    slots: Slots<T>,
    ring: Arc<Ring<T>>,
}

// SAFETY: The end and the elements that it takes out may be used by another context if the
// elements may.
unsafe impl<T: Send> Send for Consumer<T> {}

impl<T> Consumer<T> {
    /// Makes the end of a ring that is still at the position `start`.
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

    /// Returns the number of elements that fit into the queue.
    #[inline]
    pub fn capacity(&self) -> usize {
        // CAST: `usize` has at least 32 bits wherever the kernel runs.
        self.slots.capacity() as usize
    }

    /// Returns the number of elements in the queue, reading how far the producer is.
    ///
    /// The producer may add more at any time, so there are at least that many.
    #[inline]
    pub fn len(&self) -> usize {
        self.view.len(&self.ring.producer.tail) as usize
    }

    /// Checks whether the queue is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.view.has_element(&self.ring.producer.tail)
    }

    /// Looks at the oldest element.
    #[inline]
    pub fn peek(&self) -> Option<&T> {
        if !self.view.has_element(&self.ring.producer.tail) {
            return None;
        }
        // SAFETY: We keep the ring alive. By the type invariants the slot holds an element and
        // belongs to us; taking it out needs `&mut self`, which the reference keeps others from.
        Some(unsafe { self.slots.peek(self.view.next()) })
    }

    /// Takes out the oldest element.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        self.batch().pop()
    }

    /// Takes out up to `limit` elements, as many as there are.
    ///
    /// An element is taken out when the iterator yields it; the slots become free together when
    /// the iterator is dropped.
    #[inline]
    pub fn drain(&mut self, limit: usize) -> impl Iterator<Item = T> + '_ {
        let mut batch = self.batch();
        (0..limit).map_while(move |_| batch.pop())
    }

    /// Moves the oldest elements to `sink`, up to `limit`, as many as there are and there is room
    /// for, and returns how many.
    #[inline(always)]
    pub fn pop_bulk(&mut self, sink: &mut impl Sink<T>, limit: usize) -> usize {
        let limit = limit.min(sink.room());
        // No queue has more.
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let count = self.view.up_to(limit, &self.ring.producer.tail);
        if count == 0 {
            return 0;
        }
        let run = Run {
            start: self.view.next(),
            count,
        };
        // SAFETY: We keep the ring alive. By the type invariants the slots of the elements that
        // the view knows of belong to us; they are not read again, as the view moves on. There is
        // room for them in the sink.
        unsafe {
            self.slots.read_run(run, sink.end());
            sink.grow(count as usize);
        }
        self.view.advance_by(count);
        self.view.publish(&self.ring.consumer.tail);
        count as usize
    }

    /// Begins to take out elements whose slots become free together when the batch is dropped.
    #[inline]
    pub fn batch(&mut self) -> Batch<'_, T> {
        Batch {
            start: self.view.next(),
            consumer: self,
        }
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        // If a batch was forgotten, its elements have been taken out without this being published,
        // and the ring must not drop them a second time.
        self.view.publish(&self.ring.consumer.tail);
    }
}

/// Elements being taken out of a queue.
///
/// Forgetting a batch keeps the slots from the producer until a later batch that takes something
/// ends; nothing worse.
pub struct Batch<'a, T> {
    consumer: &'a mut Consumer<T>,
    start: u32,
}

impl<T> Batch<'_, T> {
    /// Looks at the oldest element.
    #[inline(always)]
    pub fn peek(&self) -> Option<&T> {
        self.consumer.peek()
    }

    /// Takes out the oldest element.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        let consumer = &mut *self.consumer;
        if !consumer.view.has_element(&consumer.ring.producer.tail) {
            return None;
        }
        // SAFETY: The consumer keeps the ring alive. By its type invariants the slot holds an
        // element and belongs to it; the position moves on, so it is not read again.
        let value = unsafe { consumer.slots.read(consumer.view.next()) };
        consumer.view.advance();
        Some(value)
    }

    /// Returns the number of elements in the queue, reading how far the producer is.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.consumer.len()
    }

    /// Checks whether the queue is empty.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.consumer.is_empty()
    }

    /// Returns the slot of the oldest element, a number below the capacity.
    #[inline(always)]
    pub fn slot(&self) -> usize {
        self.consumer.slots.index(self.consumer.view.next())
    }

    /// Returns the slot `offset` elements after the oldest one, a number below the capacity.
    #[inline(always)]
    pub fn slot_after(&self, offset: usize) -> usize {
        // CAST: Only the low bits of a position matter.
        let position = self.consumer.view.next().wrapping_add(offset as u32);
        self.consumer.slots.index(position)
    }
}

impl<T> Drop for Batch<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        let consumer = &mut *self.consumer;
        // A batch that took nothing leaves the line alone that the producer reads.
        if consumer.view.next() != self.start {
            consumer.view.publish(&consumer.ring.consumer.tail);
        }
    }
}
