// SPDX-License-Identifier: GPL-2.0

//! The designs: how packets of many CPUs reach a sink that one CPU at a time can use.

use super::{
    race,
    sink::{
        Alone,
        Packet,
        Packets,
        Shared,
        Sink, //
    }, //
};
use core::iter;
use kernel::{
    net::combiner::Combiner,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        llist::LockLessList, //
    }, //
};

/// Length of a list from which on packets are refused.
const LIMIT: u64 = 1000;
/// Number of packets after which a combiner hands over.
const BOUND: usize = 64;

/// A design.
pub(crate) trait Design: Sync {
    /// Submits a packet. Returns it if there is no room.
    fn submit(&self, sink: &Shared, packet: KBox<Packet>) -> Result<(), KBox<Packet>>;
}

/// Every sender takes the lock. With `RING`, each packet rings the doorbell.
struct Locked<const RING: bool>;

/// The sender that finds the list empty takes the lock, and then all packets on the list, as
/// `__dev_xmit_skb()` does with `defer_list` and `defer_count`.
struct Listed(Alone<(Atomic<u64>, LockLessList<KBox<Packet>>)>);

/// The sender that finds no active combiner becomes it: it takes the lock, and sends until the list
/// is empty or the bound is reached.
struct Combined<const BATCHED: bool, const RING: bool>(Alone<Combiner<KBox<Packet>>>);

impl<const RING: bool> Design for Locked<RING> {
    #[inline(always)]
    fn submit(&self, sink: &Shared, packet: KBox<Packet>) -> Result<(), KBox<Packet>> {
        let mut sink = sink.lock();

        sink.put(iter::once(packet));
        if RING {
            sink.ring();
        }
        sink.worked(1);
        Ok(())
    }
}

/// Passes packets to the sink one by one. Returns their number.
#[inline(always)]
fn put_each(sink: &mut Sink, packets: impl Iterator<Item = KBox<Packet>>) -> usize {
    packets.map(|packet| sink.put(iter::once(packet))).count()
}

impl Design for Listed {
    #[inline(always)]
    fn submit(&self, sink: &Shared, packet: KBox<Packet>) -> Result<(), KBox<Packet>> {
        let Self(Alone((count, list))) = self;

        if !list.is_empty() && count.fetch_add(1u64, Relaxed) >= LIMIT {
            return Err(packet);
        }
        if !list.push(packet) {
            return Ok(());
        }
        let mut sink = sink.lock();
        let packets: Packets = list.take_all();
        count.store(0, Relaxed);
        let packets = put_each(&mut sink, packets.reverse());
        sink.worked(packets);
        Ok(())
    }
}

impl<const BATCHED: bool, const RING: bool> Design for Combined<BATCHED, RING> {
    #[inline(always)]
    fn submit(&self, sink: &Shared, packet: KBox<Packet>) -> Result<(), KBox<Packet>> {
        let lock = || sink.lock();
        let Self(Alone(list)) = self;
        let submitted = list.submit(packet, LIMIT as usize, BOUND, lock, |sink, batch| {
            let packets = batch.len();
            if BATCHED {
                sink.put(batch);
            } else {
                put_each(sink, batch);
            }
            if RING {
                sink.ring();
            }
            sink.worked(packets);
        });
        submitted.map(|_| ())
    }
}

fn combined<const BATCHED: bool, const RING: bool>() -> Combined<BATCHED, RING> {
    Combined(Alone(Combiner::new()))
}

/// A row of the tables: the benchmark, the end of the case's name, and the side of a design.
pub(crate) type Row = (&'static str, &'static str, &'static str);

// The rows of each design.
const LOCK: &[Row] = &[
    ("xmit-lock", " llist", "reference"),
    ("xmit-lock", " batch enqueue", "reference"),
];
const LLIST: &[Row] = &[
    ("xmit", "", "reference"),
    ("xmit", " batch enqueue", "reference"),
    ("xmit-lock", " llist", "ours"),
];
const COMBINER: &[Row] = &[("xmit", "", "ours")];
const BATCH: &[Row] = &[
    ("xmit", " batch enqueue", "ours"),
    ("xmit-lock", " batch enqueue", "ours"),
];
const RING_LOCK: &[Row] = &[("xmit-ring", " one ring", "reference")];
const RING: &[Row] = &[("xmit-ring", " one ring", "ours")];

/// Runs a design with a number of senders, and reports the results.
type Run = fn(u32) -> Result;

const DESIGNS: [Run; 6] = [
    |senders| race::run(LOCK, senders, &Locked::<false>),
    |senders| {
        let listed = Listed(Alone((Atomic::new(0), LockLessList::new())));
        race::run(LLIST, senders, &listed)
    },
    |senders| race::run(COMBINER, senders, &combined::<false, false>()),
    |senders| race::run(BATCH, senders, &combined::<true, false>()),
    |senders| race::run(RING_LOCK, senders, &Locked::<true>),
    |senders| race::run(RING, senders, &combined::<true, true>()),
];

/// Runs all designs, in an order that depends on the round.
pub(crate) fn run_all(senders: u32, round: u32) -> Result {
    let count = DESIGNS.len();
    let start = round as usize % count;
    // Odd rounds run backwards, so that each design has different predecessors.
    let order = (0..count).map(|place| {
        let step = if round % 2 == 0 { place } else { count - place };
        (start + step) % count
    });

    order
        .filter_map(|index| DESIGNS.get(index))
        .try_for_each(|run| run(senders))
}
