// SPDX-License-Identifier: GPL-2.0

//! Benchmarks of array-based queues, compared with `ptr_ring`.
//!
//! Loading the module runs one round. `reference/bench_alf_queue_reference.c` is the C side.

#![forbid(unsafe_code)]

use kernel::{
    kthread,
    prelude::*,
    processor::cpu_relax,
    softirq::{
        BhGuard,
        Softirq, //
    },
    sync::{
        alf_queue::{
            mpmc,
            mpsc,
            spmc,
            spsc,
            Chunk,
            Mpmc, //
        },
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc,
        Completion, //
    },
    time::{
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
    type: BenchAlfQueue,
    name: "bench_alf_queue",
    authors: ["The skbulk authors"],
    description: "Benchmarks of array-based queues in Rust",
    license: "GPL",
}

struct BenchAlfQueue;

impl kernel::Module for BenchAlfQueue {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        run(&Report)?;
        Ok(Self)
    }
}

/// Capacity of a queue, the same as in the reference.
const CAPACITY: usize = 256;
/// Numbers of elements per operation.
const BULKS: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// Number of elements per operation of the benchmark on two CPUs.
const BULK: usize = 16;
/// Number of elements that each producer of the benchmark on two CPUs pushes.
const ELEMENTS: u64 = 400_000;

/// Elements between a pop and the next push.
type Elements = Chunk<usize, 32>;

/// Runs one round.
fn run(report: &Report) -> Result {
    let guard = BhGuard::new().ok_or(EINVAL)?;
    one_cpu(report, guard.softirq())?;
    drop(guard);
    two_cpus(report)
}

fn calls(bulk: usize) -> u64 {
    (400_000 / bulk as u64).max(100_000)
}

/// Measures a push and a pop of each number of elements.
///
/// A single element is moved by `$push` and `$pop`, several by `$push_bulk` and `$pop_bulk`.
macro_rules! measure {
    ($report:ident, $name:literal, $push:expr, $pop:expr, $push_bulk:expr, $pop_bulk:expr) => {
        for bulk in BULKS {
            let time = if bulk == 1 {
                let mut element = 1;
                picoseconds(1, calls(1), || {
                    let _ = $push(element);
                    element = $pop().unwrap_or(0);
                })
            } else {
                let mut elements = Elements::new();
                for element in 1..=bulk {
                    let _ = elements.push(element);
                }
                let time = picoseconds(bulk as u64, calls(bulk), || {
                    let _ = $push_bulk(&mut elements);
                    $pop_bulk(&mut elements, bulk);
                });
                if elements.as_slice().iter().sum::<usize>() != bulk * (bulk + 1) / 2 {
                    return Err(EIO);
                }
                time
            };
            $report.time("alf_queue", fmt!("{} {bulk}", $name), time);
        }
    };
}

fn one_cpu(report: &Report, cx: Softirq<'_>) -> Result {
    let (mut tx, mut rx) = spsc::<usize>(CAPACITY, GFP_ATOMIC)?;
    measure!(
        report,
        "spsc",
        |element| tx.push(element),
        || rx.pop(),
        |elements: &mut Elements| tx.push_bulk(elements),
        |elements: &mut Elements, bulk| rx.pop_bulk(elements, bulk)
    );

    let queue = mpmc::<usize>(CAPACITY, GFP_ATOMIC)?;
    measure!(
        report,
        "mpmc",
        |element| queue.push(cx, element),
        || queue.pop(cx),
        |elements: &mut Elements| queue.push_bulk(cx, elements),
        |elements: &mut Elements, bulk| queue.pop_bulk(cx, elements, bulk)
    );

    let (tx, mut rx) = mpsc::<usize>(CAPACITY, GFP_ATOMIC)?;
    measure!(
        report,
        "mpsc",
        |element| tx.push(cx, element),
        || rx.pop(),
        |elements: &mut Elements| tx.push_bulk(cx, elements),
        |elements: &mut Elements, bulk| rx.pop_bulk(elements, bulk)
    );

    let (mut tx, rx) = spmc::<usize>(CAPACITY, GFP_ATOMIC)?;
    measure!(
        report,
        "spmc",
        |element| tx.push(element),
        || rx.pop(cx),
        |elements: &mut Elements| tx.push_bulk(elements),
        |elements: &mut Elements, bulk| rx.pop_bulk(cx, elements, bulk)
    );
    Ok(())
}

/// The state that the two threads of a run share.
struct Race {
    go: Pin<KBox<Completion>>,
    /// One of the threads could not be started. Written before `go` is completed.
    failed: Atomic<bool>,
    ready: Atomic<u32>,
    nanoseconds: Atomic<u64>,
}

impl Race {
    fn new() -> Result<Self> {
        Ok(Self {
            go: KBox::pin_init(Completion::new(), GFP_KERNEL)?,
            failed: Atomic::new(false),
            ready: Atomic::new(0),
            nanoseconds: Atomic::new(0),
        })
    }

    /// Runs `body` at the same time as the other thread, and keeps the longer of the two times.
    fn run(&self, body: impl FnOnce(Softirq<'_>)) {
        self.go.wait_for_completion();
        if self.failed.load(Relaxed) {
            return;
        }
        let Some(guard) = BhGuard::new() else {
            return;
        };
        self.ready.fetch_add(1u32, Release);
        while self.ready.load(Acquire) != 2 {
            cpu_relax();
        }
        let start = Instant::<Monotonic>::now();
        body(guard.softirq());
        let time = u64::try_from(start.elapsed().as_nanos()).unwrap_or(0);
        let mut longest = self.nanoseconds.load(Relaxed);
        while longest < time {
            match self.nanoseconds.cmpxchg(longest, time, Relaxed) {
                Ok(_) => break,
                Err(other) => longest = other,
            }
        }
    }
}

/// Runs two closures on two CPUs. Returns the time per element, in picoseconds.
///
/// Returns [`None`] if there is only one CPU.
fn race<A, B>(elements: u64, a: A, b: B) -> Result<Option<u64>>
where
    A: FnOnce(Softirq<'_>) + Send,
    B: FnOnce(Softirq<'_>) + Send,
{
    let mut cpus = kthread::online_cpus();
    let (Some(first), Some(second)) = (cpus.next(), cpus.next()) else {
        return Ok(None);
    };
    let race = &Race::new()?;
    kthread::scope(|scope| {
        scope.spawn_on(first, c"bulk_bench/a", move || race.run(a))?;
        let second = scope.spawn_on(second, c"bulk_bench/b", move || race.run(b));
        // Alone, the first thread would wait without end: for the other one, or for room.
        race.failed.store(second.is_err(), Relaxed);
        race.go.complete_all();
        second
    })?;
    Ok(Some(race.nanoseconds.load(Relaxed) * 1000 / elements))
}

fn fill(elements: &mut Elements) {
    while elements.len() < BULK {
        let _ = elements.push(1);
    }
}

/// Pushes [`ELEMENTS`] elements in bulk.
#[inline(always)]
fn produce(mut push_bulk: impl FnMut(&mut Elements) -> bool) {
    let mut elements = Elements::new();
    for _ in 0..ELEMENTS / BULK as u64 {
        fill(&mut elements);
        while !push_bulk(&mut elements) {
            cpu_relax();
        }
    }
}

/// Pops [`ELEMENTS`] elements in bulk.
#[inline(always)]
fn consume(mut pop_bulk: impl FnMut(&mut Elements) -> usize) {
    let mut elements = Elements::new();
    let mut left = ELEMENTS;
    while left > 0 {
        let got = pop_bulk(&mut elements);
        if got == 0 {
            cpu_relax();
        }
        left -= got as u64;
        elements.clear();
    }
}

/// Pushes and pops in turn.
fn exchange(queue: &Mpmc<usize>, cx: Softirq<'_>) {
    let mut elements = Elements::new();
    let mut left = ELEMENTS;
    while left > 0 {
        fill(&mut elements);
        while queue.push_bulk(cx, &mut elements).is_err() {
            cpu_relax();
        }
        left -= BULK as u64;
        // The other CPU may have popped these elements: wait for its next push.
        let mut got = 0;
        while got < BULK {
            let some = queue.pop_bulk(cx, &mut elements, BULK - got);
            if some == 0 {
                cpu_relax();
            }
            got += some;
        }
    }
}

fn two_cpus(report: &Report) -> Result {
    let show = |case, time: Option<u64>| {
        if let Some(time) = time {
            report.time("alf_queue-2cpu", fmt!("{case} {BULK}"), time);
        }
    };

    let (mut tx, mut rx) = spsc::<usize>(CAPACITY, GFP_KERNEL)?;
    let time = race(
        ELEMENTS,
        move |_| produce(|elements| tx.push_bulk(elements).is_ok()),
        move |_| consume(|elements| rx.pop_bulk(elements, BULK)),
    )?;
    show("spsc 1x1", time);

    let queue = Arc::new(mpmc::<usize>(CAPACITY, GFP_KERNEL)?, GFP_KERNEL)?;
    let (tx, rx) = (queue.clone(), queue);
    let time = race(
        ELEMENTS,
        move |cx| produce(|elements| tx.push_bulk(cx, elements).is_ok()),
        move |cx| consume(|elements| rx.pop_bulk(cx, elements, BULK)),
    )?;
    show("mpmc 1x1", time);

    let queue = Arc::new(mpmc::<usize>(CAPACITY, GFP_KERNEL)?, GFP_KERNEL)?;
    let (a, b) = (queue.clone(), queue);
    let time = race(
        2 * ELEMENTS,
        move |cx| exchange(&a, cx),
        move |cx| exchange(&b, cx),
    )?;
    show("mpmc 2x2", time);
    Ok(())
}
