// SPDX-License-Identifier: GPL-2.0

//! Concurrent senders on all CPUs.

use super::{
    cycles::Work,
    designs::Design,
    histogram::Histogram,
    sink::{
        self,
        Costs,
        Counts,
        Packets,
        Shared, //
    }, //
};
use kernel::{
    kthread,
    new_spinlock,
    prelude::*,
    processor::cpu_relax,
    softirq::BhGuard,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        SpinLock, //
    },
    task::might_sleep,
    time::{
        Instant,
        Monotonic, //
    }, //
};

/// Number of packets after which a sender may be rescheduled.
const SLICE: u32 = 64;
/// Number of timed runs of a design; the median counts.
const REPEATS: usize = 5;

/// Parameters of a run.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) senders: u32,
    pub(crate) packets: u64,
    pub(crate) think: u32,
    pub(crate) costs: Costs,
    pub(crate) limit: u32,
    pub(crate) bound: u32,
    /// In nanoseconds.
    pub(crate) clock_step: u64,
}

/// Totals of all senders.
struct Sent {
    sent: u64,
    dropped: u64,
    latencies: Histogram,
}

/// Results of a run.
struct Outcome {
    counts: Counts,
    dropped: u64,
    latencies: Histogram,
}

/// Runs a design to measure its speed, and once more to count lock contention and latencies, which
/// slows it down. Reports the results of both.
pub(crate) fn run(name: &str, plan: &Plan, design: &impl Design) -> Result {
    let senders = plan.senders;
    let report = |what: &str, count: u64, packets: u64| {
        pr_info!("{name}|{senders}|{what}|{count} {packets}\n");
    };

    let mut times = [0; REPEATS];
    for time in &mut times {
        let fast = race::<false>(plan, design)?;
        let packets = fast.counts.packets.max(1);
        *time = fast.counts.nanoseconds * 1000 / packets;
        report("calls", fast.counts.calls, packets);
        report("doorbells", fast.counts.doorbells, packets);
        report("dropped", fast.dropped, packets);
        pr_info!("{name}|{senders}|batches|{}\n", fast.counts.batches);
    }
    times.sort_unstable();
    pr_info!("{name}|{senders}|ps|{}\n", times[REPEATS / 2]);

    let detail = race::<true>(plan, design)?;
    let packets = detail.counts.packets.max(1);
    report("acquired", detail.counts.acquired, packets);
    report("contended", detail.counts.contended, packets);
    pr_info!("{name}|{senders}|latencies|{}\n", detail.latencies);
    Ok(())
}

/// Runs all senders until the sink has received the wanted number of packets.
fn race<const DETAIL: bool>(plan: &Plan, design: &impl Design) -> Result<Outcome> {
    let sink = &*sink::new(plan.senders, plan.costs, plan.packets)?;
    let start = Sent {
        sent: 0,
        dropped: 0,
        latencies: Histogram::new(),
    };
    let total = &*KBox::pin_init(new_spinlock!(start), GFP_KERNEL)?;
    let ready = &Atomic::new(0u32);
    let failed = &Atomic::new(false);
    let cpus = kthread::online_cpus().count();

    kthread::scope(|scope| {
        let result = (0..plan.senders as usize).try_for_each(|sender| {
            let cpu = kthread::online_cpus().nth(sender % cpus).ok_or(ENODEV)?;
            let packets = sink::window(sender)?;
            scope.spawn_on(cpu, c"xmit_bench", move || {
                ready.add(1u32, Relaxed);
                // Start together: a sender that starts early would have the sink for itself.
                while ready.load(Relaxed) < plan.senders {
                    if failed.load(Relaxed) {
                        return;
                    }
                    wait();
                }
                send::<DETAIL>(plan, design, sink, sender, packets, total);
            })
        });
        if result.is_err() {
            failed.store(true, Relaxed);
        }
        result
    })?;

    let (sink, total) = (sink.lock(), total.lock());
    if sink.wrong != 0 || sink.taken() != total.sent {
        pr_err!(
            "{} packets were sent, {} arrived, {} out of order\n",
            total.sent,
            sink.taken(),
            sink.wrong
        );
        return Err(EIO);
    }
    Ok(Outcome {
        counts: sink.result().ok_or(EIO)?,
        dropped: total.dropped,
        latencies: total.latencies,
    })
}

/// Waits briefly, and lets other tasks run on this CPU.
fn wait() {
    cpu_relax();
    might_sleep();
}

/// Sends packets until the run is over.
fn send<const DETAIL: bool>(
    plan: &Plan,
    design: &impl Design,
    sink: &Shared,
    sender: usize,
    mut packets: Packets,
    total: &SpinLock<Sent>,
) {
    let mut work = Work::new();
    let mut latencies = Histogram::new();
    let mut dropped = 0;
    let mut number = 0u32;

    while let Some(refilled) = refill(sink, sender, packets) {
        packets = refilled;
        for _ in 0..SLICE {
            let Some(mut packet) = packets.pop() else {
                break;
            };
            work.spend(plan.think);
            packet.fill(number);
            // Like `dev_queue_xmit()`, which runs with softirqs disabled.
            let Some(_guard) = BhGuard::new() else {
                return;
            };
            let before = DETAIL.then(Instant::<Monotonic>::now);
            match design.submit::<DETAIL>(sink, packet) {
                Ok(()) => number += 1,
                Err(packet) => {
                    dropped += 1;
                    packets.push(packet);
                }
            }
            if let Some(before) = before {
                let time = u64::try_from(before.elapsed().as_nanos()).unwrap_or(0);
                // Count a latency below the granularity of the clock as half of that.
                latencies.add(time.max(plan.clock_step / 2));
            }
        }
        might_sleep();
    }
    let mut total = total.lock();
    total.sent += u64::from(number);
    total.dropped += dropped;
    total.latencies.merge(&latencies);
}

/// Returns packets to send, waiting for sent ones to return if there are none, or [`None`] if the
/// run is over.
fn refill(sink: &Shared, sender: usize, packets: Packets) -> Option<Packets> {
    if !packets.is_empty() {
        return Some(packets);
    }
    loop {
        let guard = BhGuard::new()?;
        let mut locked = sink.lock();
        let returned = locked.returned(sender);
        let over = locked.result().is_some();
        drop(locked);
        drop(guard);
        if over {
            return None;
        }
        if !returned.is_empty() {
            return Some(returned);
        }
        wait();
    }
}
