// SPDX-License-Identifier: GPL-2.0

//! The per-CPU part of a pool.

use super::magazine::{
    Magazine,
    Unused, //
};
use crate::{
    bindings,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};
use core::cell::UnsafeCell;

/// Two magazines: the current one, and the previous one, which is full or empty most of the time.
///
/// With a single magazine, a workload that allocates and frees around its end would exchange it
/// over and over; with two, at least a magazine's worth of calls lies between two exchanges.
///
/// Methods take `&self`, since the token that leads to a store can be copied. No method calls
/// foreign code while it changes the store, so none is reentered.
///
/// # Invariants
///
/// - `slots` and `previous` are magazines that belong to the store. The first `count` slots of the
///   current one hold objects, and its own length is not valid; `count <= size <= MAX`.
/// - Only the CPU of the store calls its methods, except [`Self::held`] and [`Self::counters`],
///   which only use members that are accessed atomically.
#[repr(transparent)]
pub(super) struct Store(UnsafeCell<bindings::qmempool_cpu>);

// SAFETY: A store owns its magazines, which can be sent.
unsafe impl Send for Store {}

/// The events that a store counts besides hits.
#[derive(Clone, Copy)]
pub(super) enum Event {
    /// A magazine was filled from the slab.
    Refill,
    /// A magazine was exchanged for one of the depot.
    Exchange,
    /// A magazine was emptied to the slab.
    Return,
}

impl Store {
    /// Creates a store of two empty magazines, of up to `size` objects each.
    pub(super) fn new(one: KBox<Magazine>, two: KBox<Magazine>, size: u32) -> Self {
        let mut one = one;
        one.empty();
        // INVARIANT: The current magazine is empty, and `count` is zero.
        Self(UnsafeCell::new(bindings::qmempool_cpu {
            slots: KBox::into_raw(one).cast(),
            previous: KBox::into_raw(two).cast(),
            size: size.min(super::magazine::MAX as u32),
            ..pin_init::zeroed()
        }))
    }

    #[inline(always)]
    fn raw(&self) -> *mut bindings::qmempool_cpu {
        self.0.get()
    }

    #[inline(always)]
    fn count(&self) -> &Atomic<u32> {
        // SAFETY: `self` is valid, and all accesses by several CPUs to `count` are atomic.
        unsafe { Atomic::from_ptr(&raw mut (*self.raw()).count) }
    }

    fn previous_count(&self) -> &Atomic<u32> {
        // SAFETY: As above.
        unsafe { Atomic::from_ptr(&raw mut (*self.raw()).previous_count) }
    }

    #[inline(always)]
    fn hits(&self) -> &Atomic<usize> {
        // SAFETY: As above. `unsigned long` is `usize`.
        unsafe { Atomic::from_ptr(&raw mut (*self.raw()).hits) }
    }

    fn counter(&self, event: Event) -> &Atomic<usize> {
        // SAFETY: As above.
        unsafe {
            Atomic::from_ptr(match event {
                Event::Refill => &raw mut (*self.raw()).refills,
                Event::Exchange => &raw mut (*self.raw()).exchanges,
                Event::Return => &raw mut (*self.raw()).returns,
            })
        }
    }

    /// Counts an event.
    pub(super) fn note(&self, event: Event) {
        let counter = self.counter(event);
        // Relaxed, and not a read-modify-write operation: only this CPU writes to it, and no other
        // data depends on it.
        counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Returns hits and [`Event`]s.
    pub(super) fn counters(&self) -> [usize; 4] {
        [
            self.hits(),
            self.counter(Event::Refill),
            self.counter(Event::Exchange),
            self.counter(Event::Return),
        ]
        .map(|counter| counter.load(Relaxed))
    }

    /// Returns the number of objects. May be called on any CPU.
    pub(super) fn held(&self) -> u32 {
        self.count().load(Relaxed) + self.previous_count().load(Relaxed)
    }

    /// Returns the capacity of a magazine.
    #[inline(always)]
    pub(super) fn size(&self) -> u32 {
        // SAFETY: `self` is valid, and this never changes.
        unsafe { (*self.raw()).size }
    }

    #[inline(always)]
    fn slots(&self) -> *mut Unused {
        // SAFETY: `self` is valid, and only this CPU accesses the member.
        unsafe { (*self.raw()).slots }.cast()
    }

    /// Takes an object out of the current magazine.
    #[inline(always)]
    pub(super) fn take(&self) -> Option<Unused> {
        // Relaxed here and below: other CPUs read the number for statistics only.
        let last = self.count().load(Relaxed).checked_sub(1)?;
        // INVARIANT: One object less.
        self.count().store(last, Relaxed);
        let hits = self.hits();
        hits.store(hits.load(Relaxed).wrapping_add(1), Relaxed);
        // SAFETY: By the type invariants, this slot holds an object.
        Some(unsafe { self.slots().add(last as usize).read() })
    }

    /// Puts an object into the current magazine. Returns false if it is full.
    ///
    /// # Safety
    ///
    /// `object` is poisoned, comes from the slab of the pool, and belongs to the caller, which
    /// gives it up if there is room.
    #[inline(always)]
    pub(super) unsafe fn put(&self, object: Unused) -> bool {
        let count = self.count().load(Relaxed);
        if count >= self.size() {
            return false;
        }
        // SAFETY: By the type invariants, this slot exists and holds no object.
        unsafe { self.slots().add(count as usize).write(object) };
        // INVARIANT: One more slot holds an object.
        self.count().store(count + 1, Relaxed);
        true
    }

    /// Takes up to `n` objects out of the current magazine. Returns their number.
    ///
    /// # Safety
    ///
    /// There is room for `n` objects at `to`.
    #[inline]
    pub(super) unsafe fn take_some(&self, to: *mut Unused, n: usize) -> usize {
        let count = self.count().load(Relaxed);
        let n = n.min(count as usize);
        // CAST: `n` is at most `count`.
        let rest = count - n as u32;
        // SAFETY: By the type invariants, the slots from `rest` on hold `n` objects; by the safety
        // requirements, there is room for them.
        unsafe {
            self.slots()
                .add(rest as usize)
                .copy_to_nonoverlapping(to, n)
        };
        // INVARIANT: Those objects are given away.
        self.count().store(rest, Relaxed);
        let hits = self.hits();
        hits.store(hits.load(Relaxed).wrapping_add(n), Relaxed);
        n
    }

    /// Puts up to `n` objects into the current magazine. Returns their number.
    ///
    /// # Safety
    ///
    /// There are `n` objects at `from` that meet the requirements of [`Self::put`].
    #[inline]
    pub(super) unsafe fn put_some(&self, from: *const Unused, n: usize) -> usize {
        let count = self.count().load(Relaxed);
        let n = n.min((self.size() - count) as usize);
        // SAFETY: By the type invariants, there are `size - count` slots after `count`, which hold
        // no objects.
        unsafe {
            self.slots()
                .add(count as usize)
                .copy_from_nonoverlapping(from, n)
        };
        // INVARIANT: `n` more slots hold objects.
        // CAST: `n` is at most `size`.
        self.count().store(count + n as u32, Relaxed);
        n
    }

    /// Calls `f` with the current magazine and the previous one; it may change and replace both.
    ///
    /// `f` must not use the store.
    pub(super) fn with_magazines<R>(
        &self,
        f: impl FnOnce(&mut KBox<Magazine>, &mut KBox<Magazine>) -> R,
    ) -> R {
        let raw = self.raw();
        // SAFETY: By the type invariants, both are magazines of ours, with `count` objects in the
        // first. The store has the same pointers until they are written below, but they are not
        // used: this CPU runs `f`, which does not, and other CPUs never do. Nothing here panics, so
        // there are not two owners.
        let (mut loaded, mut previous) = unsafe {
            let mut loaded = KBox::from_raw((*raw).slots.cast::<Magazine>());
            loaded.set_len(self.count().load(Relaxed));
            (loaded, KBox::from_raw((*raw).previous.cast::<Magazine>()))
        };

        let result = f(&mut loaded, &mut previous);

        // INVARIANT: `count` is the number of objects in the current magazine.
        self.count().store(loaded.len().min(self.size()), Relaxed);
        self.previous_count().store(previous.len(), Relaxed);
        // SAFETY: Only this CPU accesses these members.
        unsafe {
            (*raw).slots = KBox::into_raw(loaded).cast();
            (*raw).previous = KBox::into_raw(previous).cast();
        }
        result
    }

    /// Returns all objects to the slab.
    pub(super) fn drain(&self) {
        self.with_magazines(|loaded, previous| {
            loaded.empty();
            previous.empty();
        });
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let raw = self.raw();
        // SAFETY: By the type invariants, both are magazines of ours, which are given up. The first
        // has `count` objects.
        let (mut loaded, previous) = unsafe {
            (
                KBox::from_raw((*raw).slots.cast::<Magazine>()),
                KBox::from_raw((*raw).previous.cast::<Magazine>()),
            )
        };
        // SAFETY: As above.
        unsafe { loaded.set_len((*raw).count) };
        drop((loaded, previous));
    }
}
