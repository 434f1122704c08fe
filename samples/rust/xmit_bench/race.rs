// SPDX-License-Identifier: GPL-2.0

//! Concurrent senders on all CPUs.

use super::{
    cycles::Work,
    designs::{
        Design,
        Row, //
    },
    sink::{
        self,
        Counts,
        Packets,
        Shared, //
    }, //
};
use kernel::{
    kthread,
    prelude::*,
    processor::cpu_relax,
    softirq::BhGuard,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    task::might_sleep, //
};

/// Number of packets after which a sender may be rescheduled.
const SLICE: u32 = 64;
/// Number of timed runs of a design; the median counts.
const REPEATS: usize = 5;

/// Number of counted packets per run, for each two senders.
const PACKETS: u64 = 50_000;
/// Cycles that a sender spends on a packet before it submits it.
const THINK: u32 = 100;

/// Runs a design, and reports the time of a packet and its doorbells, if there are any, in each of
/// its rows.
pub(crate) fn run(rows: &[Row], senders: u32, design: &impl Design) -> Result {
    let plural = if senders > 1 { "s" } else { "" };
    let mut times = [0; REPEATS];
    let (mut doorbells, mut packets) = (0, 0);

    for time in &mut times {
        let counts = race(senders, design)?;
        *time = counts.nanoseconds * 1000 / counts.packets.max(1);
        doorbells += counts.doorbells;
        packets += counts.packets;
    }
    times.sort_unstable();
    let time = times[REPEATS / 2];
    let share = 1000 * doorbells / packets.max(1);
    for (bench, end, side) in rows {
        pr_info!("bulk_bench: {bench}|{senders} sender{plural}{end}|{side}|{time}|ps\n");
        if doorbells != 0 {
            pr_info!(
                "bulk_bench: {bench}|{senders} sender{plural}{end} doorbells|{side}|{share}|doorbells\n"
            );
        }
    }
    Ok(())
}

/// Runs all senders until the sink has received the wanted number of packets.
fn race(senders: u32, design: &impl Design) -> Result<Counts> {
    // Senders that share a CPU take turns of some milliseconds: run long enough.
    let sink = &*sink::new(senders, PACKETS * u64::from(senders.div_ceil(2)))?;
    let sent = &Atomic::new(0u64);
    let ready = &Atomic::new(0u32);
    let failed = &Atomic::new(false);
    let cpus = kthread::online_cpus().count();

    kthread::scope(|scope| {
        let result = (0..senders as usize).try_for_each(|sender| {
            let cpu = kthread::online_cpus().nth(sender % cpus).ok_or(ENODEV)?;
            let packets = sink::window(sender)?;
            scope.spawn_on(cpu, c"xmit_bench", move || {
                ready.add(1u32, Relaxed);
                // Start together: a sender that starts early would have the sink for itself.
                while ready.load(Relaxed) < senders {
                    if failed.load(Relaxed) {
                        return;
                    }
                    wait();
                }
                send(design, sink, sender, packets, sent);
            })
        });
        if result.is_err() {
            failed.store(true, Relaxed);
        }
        result
    })?;

    let (sink, sent) = (sink.lock(), sent.load(Relaxed));
    if sink.wrong != 0 || sink.taken() != sent {
        pr_err!(
            "{sent} packets were sent, {} arrived, {} out of order\n",
            sink.taken(),
            sink.wrong
        );
        return Err(EIO);
    }
    sink.result().ok_or(EIO)
}

/// Waits briefly, and lets other tasks run on this CPU.
fn wait() {
    cpu_relax();
    might_sleep();
}

/// Sends packets until the run is over.
fn send(
    design: &impl Design,
    sink: &Shared,
    sender: usize,
    mut packets: Packets,
    sent: &Atomic<u64>,
) {
    let mut work = Work::new();
    let mut number = 0u32;

    while let Some(refilled) = refill(sink, sender, packets) {
        packets = refilled;
        for _ in 0..SLICE {
            let Some(mut packet) = packets.pop() else {
                break;
            };
            work.spend(THINK);
            packet.fill(number);
            // Like `dev_queue_xmit()`, which runs with softirqs disabled.
            let Some(_guard) = BhGuard::new() else {
                return;
            };
            match design.submit(sink, packet) {
                Ok(()) => number += 1,
                Err(packet) => packets.push(packet),
            }
        }
        might_sleep();
    }
    sent.add(u64::from(number), Relaxed);
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
