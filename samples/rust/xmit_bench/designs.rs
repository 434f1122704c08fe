// SPDX-License-Identifier: GPL-2.0

//! The designs: how packets of many CPUs reach a sink that one CPU at a time can use.

use super::{
    race::{
        self,
        Plan, //
    },
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

/// A design.
pub(crate) trait Design: Sync {
    /// Submits a packet. Returns it if there is no room.
    fn submit(&self, sink: &Shared, packet: KBox<Packet>) -> Result<(), KBox<Packet>>;
}

/// Every sender takes the lock. With `RING`, each packet rings the doorbell.
struct Locked<const RING: bool>;

/// The sender that finds the list empty takes the lock, and then all packets on the list, as
/// `__dev_xmit_skb()` does with `defer_list` and `defer_count`.
struct Listed {
    list: Alone<(Atomic<u64>, LockLessList<KBox<Packet>>)>,
    limit: u64,
}

/// The sender that finds no active combiner becomes it: it takes the lock, and sends until the list
/// is empty or the bound is reached.
struct Combined<const BATCHED: bool, const RING: bool> {
    list: Alone<Combiner<KBox<Packet>>>,
    limit: usize,
    bound: usize,
}

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
        let Alone((count, list)) = &self.list;

        if !list.is_empty() && count.fetch_add(1u64, Relaxed) >= self.limit {
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
        let submitted = self
            .list
            .0
            .submit(packet, self.limit, self.bound, lock, |sink, batch| {
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

fn combined<const BATCHED: bool, const RING: bool>(plan: &Plan) -> Combined<BATCHED, RING> {
    Combined {
        list: Alone(Combiner::new()),
        limit: plan.limit as usize,
        bound: plan.bound as usize,
    }
}

fn listed(plan: &Plan) -> Listed {
    Listed {
        list: Alone((Atomic::new(0), LockLessList::new())),
        limit: plan.limit.into(),
    }
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

/// Runs a design and reports the results.
type Run = fn(&Plan) -> Result;

const DESIGNS: [Run; 6] = [
    |plan| race::run(LOCK, plan, &Locked::<false>),
    |plan| race::run(LLIST, plan, &listed(plan)),
    |plan| race::run(COMBINER, plan, &combined::<false, false>(plan)),
    |plan| race::run(BATCH, plan, &combined::<true, false>(plan)),
    |plan| race::run(RING_LOCK, plan, &Locked::<true>),
    |plan| race::run(RING, plan, &combined::<true, true>(plan)),
];

/// Runs all designs, in an order that depends on the round.
pub(crate) fn run_all(plan: &Plan, round: u32) -> Result {
    let count = DESIGNS.len();
    let start = round as usize % count;
    // Odd rounds run backwards, so that each design has different predecessors.
    let order = (0..count).map(|place| {
        let step = if round % 2 == 0 { place } else { count - place };
        (start + step) % count
    });

    order
        .filter_map(|index| DESIGNS.get(index))
        .try_for_each(|run| run(plan))
}
