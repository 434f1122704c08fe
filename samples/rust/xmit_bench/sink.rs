// SPDX-License-Identifier: GPL-2.0

//! The destination of packets: a queue, or a ring with a doorbell, that only one CPU at a time can
//! use.

use super::cycles::Work;
use core::hint::black_box;
use kernel::{
    impl_has_llist_node,
    new_spinlock,
    prelude::*,
    sync::{
        llist::{
            Chain,
            Node, //
        },
        SpinLock, //
    },
    time::{
        Instant,
        Monotonic, //
    }, //
};

/// Number of cache lines that the sink writes per packet, as a qdisc does for its counters and the
/// ends of its queue.
const LINES: usize = 4;
/// Number of packets of a sender. If all of them are in flight, it waits.
pub(crate) const WINDOW: u32 = 256;

/// A value in cache lines of its own.
#[repr(align(128))]
pub(crate) struct Alone<T>(pub(crate) T);

// The costs of operations, in cycles: of a call, for one packet or for a batch; of a packet; and of
// a doorbell, if the sink is a ring.
const CALL: u32 = 50;
const PACKET: u32 = 100;
const DOORBELL: u32 = 200;

/// A packet: like an SKB, it has the link in one cache line, and the data to send it in another.
#[repr(C, align(64))]
pub(crate) struct Packet {
    node: Node,
    content: Content,
}

#[repr(align(64))]
struct Content {
    sender: usize,
    number: u32,
}

impl_has_llist_node! {
    impl HasNode for Packet { self.node }
}

impl Packet {
    /// Numbers it as the next packet of its sender.
    #[inline(always)]
    pub(crate) fn fill(&mut self, number: u32) {
        self.content.number = number;
    }
}

/// A list of packets.
pub(crate) type Packets = Chain<KBox<Packet>>;

/// Allocates the packets of a sender.
pub(crate) fn window(sender: usize) -> Result<Packets> {
    let mut packets = Packets::new();

    for _ in 0..WINDOW {
        let packet = Packet {
            node: Node::new(),
            content: Content { sender, number: 0 },
        };
        packets.push(KBox::new(packet, GFP_KERNEL)?);
    }
    Ok(packets)
}

#[repr(align(64))]
struct Line(u64);

/// The sink's state of a sender.
#[repr(align(64))]
struct Sender {
    /// The number of the next packet in order.
    next: u32,
    /// Packets for the sender to reuse.
    returned: Packets,
}

/// Events between the first and the last counted packet.
#[derive(Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) nanoseconds: u64,
    pub(crate) packets: u64,
    pub(crate) doorbells: u64,
}

impl Counts {
    const fn new() -> Self {
        Self {
            nanoseconds: 0,
            packets: 0,
            doorbells: 0,
        }
    }
}

/// The sink, behind its lock.
#[repr(align(64))]
pub(crate) struct Sink {
    lines: [Line; LINES],
    work: Work,
    senders: KVec<Sender>,
    counts: Counts,
    /// Number of packets before the counted ones; zero once counting has started.
    warm_up: u64,
    /// Number of packets to count.
    wanted: u64,
    started: Instant<Monotonic>,
    /// The counts, when the run is over.
    result: Option<Counts>,
    /// Packets that arrived twice, or out of the order of their sender.
    pub(crate) wrong: u64,
}

/// The sink and its lock.
pub(crate) type Shared = SpinLock<Sink>;

/// Returns a sink that counts `wanted` packets, after a tenth of that to warm up.
pub(crate) fn new(senders: u32, wanted: u64) -> Result<Pin<KBox<Shared>>> {
    let mut list = KVec::new();

    for _ in 0..senders {
        let sender = Sender {
            next: 0,
            returned: Packets::new(),
        };
        list.push(sender, GFP_KERNEL)?;
    }
    let sink = Sink {
        lines: [const { Line(0) }; LINES],
        work: Work::new(),
        senders: list,
        counts: Counts::new(),
        warm_up: (wanted / 10).max(1),
        wanted,
        started: Instant::now(),
        result: None,
        wrong: 0,
    };
    KBox::pin_init(new_spinlock!(sink), GFP_KERNEL)
}

impl Sink {
    /// Takes packets in one call.
    #[inline(always)]
    pub(crate) fn put(&mut self, packets: impl Iterator<Item = KBox<Packet>>) {
        self.work.spend(CALL);
        for packet in packets {
            self.take(packet);
        }
    }

    /// Rings the doorbell.
    #[inline(always)]
    pub(crate) fn ring(&mut self) {
        self.work.spend(DOORBELL);
        self.counts.doorbells += 1;
    }

    /// Accounts the packets that the caller has sent while it held the lock.
    #[inline(always)]
    pub(crate) fn worked(&mut self, packets: usize) {
        self.counts.packets += packets as u64;
        if self.counts.packets < self.warm_up {
            return;
        }
        if self.warm_up != 0 {
            self.warm_up = 0;
            self.counts = Counts::new();
            self.started = Instant::now();
        } else if self.counts.packets >= self.wanted && self.result.is_none() {
            self.counts.nanoseconds = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(0);
            self.result = Some(self.counts);
        }
    }

    /// Returns the counts, once the wanted number of packets has arrived.
    pub(crate) fn result(&self) -> Option<Counts> {
        self.result
    }

    /// Returns the number of packets that arrived in order.
    pub(crate) fn taken(&self) -> u64 {
        self.senders
            .iter()
            .map(|sender| u64::from(sender.next))
            .sum()
    }

    /// Returns the packets of a sender that the sink has processed.
    pub(crate) fn returned(&mut self, sender: usize) -> Packets {
        match self.senders.get_mut(sender) {
            Some(sender) => core::mem::take(&mut sender.returned),
            None => Packets::new(),
        }
    }

    #[inline(always)]
    fn take(&mut self, packet: KBox<Packet>) {
        for line in &mut self.lines {
            line.0 = black_box(line.0 + u64::from(packet.content.number));
        }
        self.work.spend(PACKET);
        match self.senders.get_mut(packet.content.sender) {
            Some(sender) if sender.next == packet.content.number => {
                sender.next += 1;
                sender.returned.push(packet);
            }
            _ => self.wrong += 1,
        }
    }
}
