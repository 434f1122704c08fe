// SPDX-License-Identifier: GPL-2.0

//! Benchmarks of qmempool.
//!
//! Loading the module runs one round. `reference/bench_qmempool_reference.c` is the C side.

#![forbid(unsafe_code)]

use core::mem::MaybeUninit;
use kernel::{
    cpu::CpuId,
    kthread,
    mm::qmempool::{
        Local,
        Options,
        QMemPool, //
    },
    new_spinlock,
    prelude::*,
    slab::{
        Batch,
        Cache, //
    },
    softirq::BhGuard,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        SpinLock, //
    },
    time::{
        delay::fsleep,
        Delta,
        Instant,
        Monotonic, //
    }, //
};

mod timing;

use timing::{
    picoseconds,
    Report, //
};

module! {
    type: BenchQmempool,
    name: "bench_qmempool",
    authors: ["The skbulk authors"],
    description: "Benchmarks of memory pools in Rust",
    license: "GPL",
}

struct BenchQmempool;

impl kernel::Module for BenchQmempool {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        run(&Report)?;
        Ok(Self)
    }
}

/// The allocated object: as large as an SKB, and uninitialized like in the reference.
type Memory = MaybeUninit<[u8; 232]>;

/// Iterations of a measured loop.
const CALLS: u64 = 100_000;

/// Number of objects of the N-pattern: allocate N, then free N.
const PATTERN: usize = 256;

fn pool() -> Result<QMemPool<Memory>> {
    let cache = Cache::<Memory>::new(c"bulk_bench_qmempool", 16)?;
    QMemPool::new(c"bulk_bench", cache, Options::new())
}

/// Runs one round.
fn run(report: &Report) -> Result {
    softirq(report)?;
    process(report)?;
    pattern(report)?;
    for batch in [1, 16, 64] {
        across(report, batch)?;
    }
    Ok(())
}

/// Allocates and frees one object in a softirq that looks up its CPU's part of the pool once.
fn softirq(report: &Report) -> Result {
    let pool = pool()?;
    let guard = BhGuard::new().ok_or(EINVAL)?;
    let local = pool.local(guard.softirq());

    let time = picoseconds(1, CALLS, || {
        if let Ok(object) = local.alloc(MaybeUninit::uninit(), GFP_ATOMIC) {
            local.free(core::hint::black_box(object));
        }
    });
    report.time("qmempool", fmt!("softirq"), time);

    // The same with a lookup per call, as a C caller does.
    let time = picoseconds(1, CALLS, || {
        if let Ok(object) = pool
            .local(guard.softirq())
            .alloc(MaybeUninit::uninit(), GFP_ATOMIC)
        {
            pool.local(guard.softirq())
                .free(core::hint::black_box(object));
        }
    });
    report.time("qmempool", fmt!("softirq lookup"), time);
    Ok(())
}

/// Allocates and frees one object in process context.
fn process(report: &Report) -> Result {
    let pool = pool()?;
    let time = picoseconds(1, CALLS, || {
        if let Ok(object) = pool.alloc(MaybeUninit::uninit(), GFP_KERNEL) {
            pool.free(core::hint::black_box(object));
        }
    });
    report.time("qmempool", fmt!("process"), time);
    Ok(())
}

/// Allocates many objects before freeing them.
fn pattern(report: &Report) -> Result {
    let pool = pool()?;
    let mut objects = KVec::with_capacity(PATTERN, GFP_KERNEL)?;
    let guard = BhGuard::new().ok_or(EINVAL)?;
    let local = pool.local(guard.softirq());

    let time = picoseconds(PATTERN as u64, CALLS / PATTERN as u64, || {
        for _ in 0..PATTERN {
            if let Ok(object) = local.alloc(MaybeUninit::uninit(), GFP_ATOMIC) {
                let _ = objects.push_within_capacity(object);
            }
        }
        while let Some(object) = objects.pop() {
            local.free(object);
        }
    });
    report.time("qmempool", fmt!("n-pattern {PATTERN}"), time);
    Ok(())
}

/// Number of objects that one CPU hands to the other at a time. Two such lots circulate.
const LOT: usize = 256;

/// Number of lots per measurement.
const LOTS: u64 = 400;

type Lot<'c> = KBox<Batch<'c, Memory, LOT>>;

/// Lots that one CPU leaves for the other.
struct Shelf<'c> {
    lots: Pin<KBox<SpinLock<KVec<Lot<'c>>>>>,
    /// Number of lots, for a look without the lock.
    filled: Atomic<u32>,
    /// No further lots come.
    closed: Atomic<bool>,
}

impl<'c> Shelf<'c> {
    fn new(lots: KVec<Lot<'c>>) -> Result<Self> {
        Ok(Self {
            filled: Atomic::new(lots.len() as u32),
            closed: Atomic::new(false),
            lots: KBox::pin_init(new_spinlock!(lots), GFP_KERNEL)?,
        })
    }

    fn put(&self, lot: Lot<'c>) {
        let mut lots = self.lots.lock();
        let _ = lots.push_within_capacity(lot);
        self.filled.store(lots.len() as u32, Release);
    }

    fn close(&self) {
        self.closed.store(true, Relaxed);
    }

    /// Waits for a lot. Returns [`None`] if none comes any more.
    fn take(&self) -> Option<Lot<'c>> {
        loop {
            let mut patience = 10_000;
            while self.filled.load(Acquire) == 0 {
                if self.closed.load(Relaxed) {
                    return None;
                }
                core::hint::spin_loop();
                patience -= 1;
                if patience == 0 {
                    // The other CPU may have gone offline and its thread migrated to this one: let
                    // it run.
                    fsleep(Delta::from_micros(50));
                    patience = 10_000;
                }
            }
            let mut lots = self.lots.lock();
            let lot = lots.pop();
            self.filled.store(lots.len() as u32, Release);
            if lot.is_some() {
                return lot;
            }
        }
    }
}

/// Fills a lot, with single calls if a batch is one object.
fn fill<'p>(local: &Local<'p, '_, Memory>, lot: &mut Lot<'p>, batch: usize) {
    while lot.len() < LOT {
        if batch == 1 {
            let Ok(object) = local.alloc(MaybeUninit::uninit(), GFP_ATOMIC) else {
                return;
            };
            let _ = lot.push(object);
        } else {
            let count = batch.min(LOT - lot.len());
            if local.alloc_bulk(lot, count, GFP_ATOMIC, |_| MaybeUninit::uninit()) == 0 {
                return;
            }
        }
    }
}

/// Frees all objects of a lot, with single calls if a batch is one object.
fn empty_out<'p>(local: &Local<'p, '_, Memory>, lot: &mut Lot<'p>, batch: usize) {
    if batch == 1 {
        while let Some(object) = lot.pop() {
            local.free(object);
        }
    } else {
        while local.free_bulk(lot, batch) != 0 {}
    }
}

/// Allocates objects on one CPU and frees them on another, in bulk calls of `batch`.
///
/// The result is the sum of the time that each side spends on an object, without the time that it
/// waits for the other. Each side counts with its median over the lots.
fn across(report: &Report, batch: usize) -> Result {
    let mut cpus = kthread::online_cpus();
    let (Some(allocates), Some(frees)) = (cpus.next(), cpus.next()) else {
        return Ok(());
    };

    let pool = pool()?;
    let mut empty = KVec::with_capacity(2, GFP_KERNEL)?;
    for _ in 0..2 {
        empty.push(KBox::new(Batch::new(pool.cache()), GFP_KERNEL)?, GFP_KERNEL)?;
    }
    let empty = Shelf::new(empty)?;
    let full = Shelf::new(KVec::with_capacity(2, GFP_KERNEL)?)?;
    let busy = Atomic::new(0u64);

    // The first lots fill the pool.
    const WARM: u64 = LOTS / 10;
    // Returns [`None`] if there is no memory, or if the other side has given up.
    let rounds = |cpu: CpuId| -> Option<()> {
        let (from, to) = if cpu == allocates {
            (&empty, &full)
        } else {
            (&full, &empty)
        };
        let mut times = KVec::with_capacity(LOTS as usize, GFP_KERNEL).ok()?;
        for round in 0..WARM + LOTS {
            let mut lot = from.take()?;
            let guard = BhGuard::new()?;
            let local = pool.local(guard.softirq());
            let start = Instant::<Monotonic>::now();
            if cpu == allocates {
                fill(&local, &mut lot, batch);
            } else {
                empty_out(&local, &mut lot, batch);
            }
            let time = start.elapsed().as_nanos();
            if round >= WARM {
                let _ = times.push_within_capacity(time);
            }
            drop(guard);
            to.put(lot);
        }
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or(0);
        busy.add(u64::try_from(median).unwrap_or(0), Relaxed);
        Some(())
    };
    // Neither side waits for the other one without end.
    let give_up = || {
        empty.close();
        full.close();
    };
    let side = &|cpu: CpuId| {
        if rounds(cpu).is_none() {
            give_up();
        }
    };
    kthread::scope(|scope| {
        scope.spawn_on(allocates, c"bulk_bench", move || side(allocates))?;
        let second = scope.spawn_on(frees, c"bulk_bench", move || side(frees));
        if second.is_err() {
            give_up();
        }
        second
    })?;
    if full.closed.load(Relaxed) {
        return Err(ENOMEM);
    }

    let time = busy.load(Relaxed) * 1000 / LOT as u64;
    report.time("qmempool-xcpu", fmt!("batch {batch}"), time);
    Ok(())
}
