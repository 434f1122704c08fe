// SPDX-License-Identifier: GPL-2.0

//! A pool of untyped objects.

use super::{
    depot::Depot,
    magazine::{
        self,
        Magazine,
        Unused, //
    },
    shortage,
    slab::{
        self,
        Slab, //
    },
    store::{
        Event,
        Store, //
    }, //
};
use crate::{
    alloc::flags::__GFP_ZERO,
    bindings,
    cpu::CpuId,
    error::to_result,
    percpu::{
        self,
        PerCpu, //
    },
    prelude::*,
    softirq::{
        BhGuard,
        Softirq, //
    },
    types::Opaque, //
};

/// Maximum number of objects per allocation from the slab.
///
/// Fewer than a magazine holds: a CPU that needs few objects should not hold many.
const REFILL: u32 = 16;

/// Maximum size of the objects in a magazine together.
const MAGAZINE_BYTES: u32 = bindings::QMEMPOOL_MAGAZINE_BYTES;

/// A pool.
///
/// # Invariants
///
/// - `shared` is the part that C code uses, and does not move while the pool is attached.
/// - `slab` is valid, and is the slab of all magazines.
#[repr(C)]
pub(super) struct Pool {
    shared: Opaque<bindings::qmempool>,
    stores: PerCpu<Store>,
    depot: Depot,
    slab: Slab,
    object_size: u32,
    magazine: u32,
}

// SAFETY: Stores are used by their CPU only, as the token of each method proves, or with exclusive
// access. The other members can be shared.
unsafe impl Send for Pool {}

// SAFETY: As above.
unsafe impl Sync for Pool {}

impl Pool {
    /// Creates a pool in front of `slab`.
    ///
    /// # Safety
    ///
    /// `slab` outlives the pool.
    pub(super) unsafe fn new(
        name: &CStr,
        slab: Slab,
        magazine: usize,
        depot: usize,
    ) -> Result<KBox<Self>> {
        if magazine == 0 || magazine > magazine::MAX {
            return Err(EINVAL);
        }
        // CAST: It is at most `MAX`.
        let size = magazine as u32;
        // SAFETY: By the safety requirements, the slab is valid.
        let object_size = unsafe { slab.object_size() };
        // The memory that a CPU holds has to be bounded for large objects, too.
        if object_size
            .checked_mul(size)
            .is_none_or(|bytes| bytes > MAGAZINE_BYTES)
        {
            return Err(EINVAL);
        }
        let empty = || {
            shortage::step()?;
            // SAFETY: The slab outlives the pool, and so all magazines.
            unsafe { Magazine::new(slab, GFP_KERNEL) }
        };

        shortage::step()?;
        let stores = PerCpu::new(
            |_cpu| Ok::<_, Error>(Store::new(empty()?, empty()?, size)),
            GFP_KERNEL,
        )?;
        let room = percpu::possible_cpus()
            .count()
            .checked_mul(2)
            .and_then(|n| n.checked_add(depot))
            .ok_or(EINVAL)?;
        let depot_queues = Depot::new(room, GFP_KERNEL)?;
        for _ in 0..depot {
            // One by one, to keep bottom halves disabled only briefly.
            let magazine = empty()?;
            let guard = BhGuard::new().ok_or(EINVAL)?;
            depot_queues.put(guard.softirq(), magazine);
        }

        shortage::step()?;
        let pool = KBox::new(
            Self {
                shared: Opaque::new(bindings::qmempool {
                    cpu: stores.as_raw().cast(),
                    cache: slab.as_raw(),
                    object_size,
                    ..pin_init::zeroed()
                }),
                stores,
                depot: depot_queues,
                slab,
                object_size,
                magazine: size,
            },
            GFP_KERNEL,
        )?;
        shortage::step()?;
        // SAFETY: The pool stays in its box from here on, and is detached before it is freed. On
        // failure, it is not attached.
        to_result(unsafe { bindings::__qmempool_attach(pool.as_raw(), name.as_char_ptr()) })?;
        // SAFETY: Only this and `drop()` access this member.
        unsafe { (*pool.as_raw()).attached = true };
        Ok(pool)
    }

    /// Returns the part of the pool that C code uses.
    pub(super) fn as_raw(&self) -> *mut bindings::qmempool {
        self.shared.get()
    }

    /// Returns the pool of a C pointer.
    ///
    /// # Safety
    ///
    /// `raw` comes from [`Self::as_raw`] of a pool that exists during `'a`.
    #[inline(always)]
    pub(super) unsafe fn from_raw<'a>(raw: *mut bindings::qmempool) -> &'a Self {
        // SAFETY: `shared` is the first member.
        unsafe { &*raw.cast_const().cast::<Self>() }
    }

    /// Returns the store of this CPU.
    #[inline(always)]
    pub(super) fn store<'a>(&'a self, cx: Softirq<'a>) -> &'a Store {
        self.stores.get(cx)
    }

    /// Takes an object out of the pool or the slab.
    #[inline(always)]
    pub(super) fn alloc(
        &self,
        store: &Store,
        cx: Softirq<'_>,
        gfp: bindings::gfp_t,
    ) -> Option<Unused> {
        let object = match store.take() {
            Some(object) => object,
            None => self.alloc_slow(cx, gfp)?,
        };
        // SAFETY: It is an object of this size, and ours.
        unsafe { slab::unpoison(object, self.object_size) };
        if wants_zeros(gfp) {
            // SAFETY: As above.
            unsafe {
                object
                    .cast::<u8>()
                    .write_bytes(0, self.object_size as usize)
            };
        }
        Some(object)
    }

    /// Puts an object into the pool, or frees it to the slab.
    ///
    /// # Safety
    ///
    /// `object` comes from the slab, and belongs to the caller, which gives it up.
    #[inline(always)]
    pub(super) unsafe fn free(&self, store: &Store, cx: Softirq<'_>, object: Unused) {
        if !slab::poison(object) {
            return;
        }
        // SAFETY: It is poisoned, and by the safety requirements.
        if !unsafe { store.put(object) } {
            // SAFETY: As above.
            unsafe { self.free_slow(cx, object) };
        }
    }

    /// [`Self::alloc`] with an empty current magazine.
    #[cold]
    #[inline(never)]
    fn alloc_slow(&self, cx: Softirq<'_>, gfp: bindings::gfp_t) -> Option<Unused> {
        let store = self.store(cx);
        self.load(store, cx, gfp);
        store.take()
    }

    /// [`Self::free`] with a full current magazine.
    ///
    /// # Safety
    ///
    /// As for [`Store::put`].
    #[cold]
    #[inline(never)]
    unsafe fn free_slow(&self, cx: Softirq<'_>, object: Unused) {
        let store = self.store(cx);
        self.unload(store, cx);
        // There is room now. Otherwise, the object would be leaked.
        // SAFETY: By the safety requirements.
        let _ = unsafe { store.put(object) };
    }

    /// Replaces or fills the current magazine, which is empty, if possible.
    fn load(&self, store: &Store, cx: Softirq<'_>, gfp: bindings::gfp_t) {
        let event = store.with_magazines(|loaded, previous| {
            if previous.len() != 0 {
                core::mem::swap(loaded, previous);
                None
            } else if self.depot.exchange_for_full(cx, loaded) {
                Some(Event::Exchange)
            } else {
                loaded.fill(REFILL.min(self.magazine), gfp);
                Some(Event::Refill)
            }
        });
        if let Some(event) = event {
            store.note(event);
        }
    }

    /// Makes room in the current magazine, which is full.
    fn unload(&self, store: &Store, cx: Softirq<'_>) {
        let event = store.with_magazines(|loaded, previous| {
            // Give away the previous magazine, which is colder in the cache than the current one.
            let event = if previous.len() == 0 {
                None
            } else if self.depot.exchange_for_empty(cx, previous) {
                Some(Event::Exchange)
            } else {
                previous.empty();
                Some(Event::Return)
            };
            core::mem::swap(loaded, previous);
            event
        });
        if let Some(event) = event {
            store.note(event);
        }
    }

    /// Takes up to `n` objects out of the pool or the slab. Returns their number.
    ///
    /// # Safety
    ///
    /// There is room for `n` objects at `to`.
    pub(super) unsafe fn alloc_bulk(
        &self,
        cx: Softirq<'_>,
        gfp: bindings::gfp_t,
        to: *mut Unused,
        n: usize,
    ) -> usize {
        let store = self.store(cx);
        let mut done = 0;
        loop {
            // SAFETY: There is room for `n - done` more objects.
            done += unsafe { store.take_some(to.add(done), n - done) };
            if done == n {
                break;
            }
            self.load(store, cx, gfp);
            if store.held() == 0 {
                break;
            }
        }
        if cfg!(CONFIG_KASAN) || wants_zeros(gfp) {
            for i in 0..done {
                // SAFETY: The first `done` places hold objects of this size that are ours.
                unsafe {
                    let object = to.add(i).read();
                    slab::unpoison(object, self.object_size);
                    if wants_zeros(gfp) {
                        object
                            .cast::<u8>()
                            .write_bytes(0, self.object_size as usize);
                    }
                }
            }
        }
        done
    }

    /// Puts `n` objects into the pool, or frees them to the slab.
    ///
    /// # Safety
    ///
    /// There are `n` objects at `from` that meet the requirements of [`Self::free`].
    pub(super) unsafe fn free_bulk(&self, cx: Softirq<'_>, from: *const Unused, n: usize) {
        let store = self.store(cx);
        if cfg!(CONFIG_KASAN) {
            for i in 0..n {
                // SAFETY: By the safety requirements.
                unsafe { self.free(store, cx, from.add(i).read()) };
            }
            return;
        }
        let mut done = 0;
        loop {
            // SAFETY: There are `n - done` more objects, which need no poison without KASAN.
            done += unsafe { store.put_some(from.add(done), n - done) };
            if done == n {
                break;
            }
            self.unload(store, cx);
        }
    }

    /// Empties the store of a CPU.
    ///
    /// # Safety
    ///
    /// The CPU has stopped, and does not start again before this returns.
    pub(super) unsafe fn cpu_dead(&self, cpu: CpuId) {
        // SAFETY: There is a store unless the pointer is null. Its CPU has stopped, and CPU hotplug
        // orders the accesses of that CPU before this.
        if let Some(store) = unsafe { self.stores.of_cpu(cpu).as_ref() } {
            store.drain();
        }
    }

    /// Empties the store of this CPU. Returns the number of objects that it held.
    pub(super) fn drain(&self, cx: Softirq<'_>) -> usize {
        let store = self.store(cx);
        let held = store.held() as usize;
        store.drain();
        held
    }

    /// Returns the number of objects in the store of a CPU.
    pub(super) fn held(&self, cpu: CpuId) -> usize {
        // SAFETY: The method called here only accesses members that are accessed atomically. There
        // is a store unless the pointer is null.
        unsafe { self.stores.of_cpu(cpu).as_ref() }.map_or(0, |store| store.held() as usize)
    }

    /// Returns the number of objects in the depot.
    fn in_depot(&self) -> usize {
        self.depot.full() * self.magazine as usize
    }

    /// Returns the number of objects in the pool, which changes concurrently.
    pub(super) fn count(&self) -> usize {
        percpu::possible_cpus()
            .map(|cpu| self.held(cpu))
            .fold(self.in_depot(), usize::saturating_add)
    }

    /// Frees objects to the slab: those of the depot, then those of this CPU. Returns their number.
    pub(super) fn shrink(&self, objects: usize) -> usize {
        let Some(guard) = BhGuard::new() else {
            return 0;
        };
        let done = self.depot.shrink(guard.softirq(), objects);
        if done >= objects {
            return done;
        }
        done + self.drain(guard.softirq())
    }

    /// Returns the statistics of the pool.
    pub(super) fn stats(&self) -> bindings::qmempool_stats {
        let mut stats = bindings::qmempool_stats {
            held: self.in_depot(),
            ..Default::default()
        };
        for cpu in percpu::possible_cpus() {
            // SAFETY: The methods called here only access members that are accessed atomically.
            let Some(store) = (unsafe { self.stores.of_cpu(cpu).as_ref() }) else {
                continue;
            };
            let [hits, refills, exchanges, returns] = store.counters();
            stats.hits = stats.hits.wrapping_add(hits);
            stats.refills = stats.refills.wrapping_add(refills);
            stats.exchanges = stats.exchanges.wrapping_add(exchanges);
            stats.returns = stats.returns.wrapping_add(returns);
            stats.held += store.held() as usize;
        }
        stats.bytes = stats.held * self.object_size as usize;
        stats
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: Only this and `new()` access this member.
        if unsafe { (*self.as_raw()).attached } {
            // SAFETY: It is attached. After this, C code does not call into the pool any more; the
            // stores and the depot return all objects when they are dropped.
            unsafe { bindings::__qmempool_detach(self.as_raw()) };
        }
    }
}

#[inline(always)]
fn wants_zeros(gfp: bindings::gfp_t) -> bool {
    gfp & __GFP_ZERO.as_raw() != 0
}
