// SPDX-License-Identifier: GPL-2.0

//! The log of the dummy device, and the settings by which tests control it.

use crate::{
    net::napi::Napi,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SetOnce, //
    }, //
};

/// The number of events that the log can hold.
const LOG: usize = 64;

/// Something that happened to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(in crate::net::device) enum Event {
    Open,
    Start,
    Started,
    Xmit,
    Told,
    Kick,
    QueueTaken,
    Poll,
    PollNetpoll,
    PoolUsable,
    PoolRefused,
    Rearm,
    Quiesce,
    Reset,
    Armed,
    Features,
    TxDropped,
    PollerDropped,
    DataDropped,
    ResourceUsed,
    ResourceGone,
    BusDataDropped,
    ProbeFailed,
    ThreadRan,
    Timeout,
}

/// The stage at which the device fails to go up.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(in crate::net::device) enum Fail {
    No,
    Open,
    SecondVector,
    Start,
    /// After interrupts have come.
    StartLate,
    Quiesce,
    Reset,
}

/// The driver's reaction to a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(in crate::net::device) enum OnXmit {
    Take,
    Busy,
    BusyAndStop,
    /// Stop, be woken by another CPU, and return the packet.
    BusyAndWoken,
    /// Take it as the last one for which there is room.
    TakeAndStop,
}

/// The way in which packets are received.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(in crate::net::device) enum Reception {
    One,
    List,
    /// As either, with interrupts disabled.
    OneMasked,
    ListMasked,
}

/// Events, counters and settings of a device.
pub(in crate::net::device) struct Log {
    len: Atomic<usize>,
    events: [Atomic<u32>; LOG],
    pub(in crate::net::device) fail: Atomic<u32>,
    pub(in crate::net::device) on_xmit: Atomic<u32>,
    pub(in crate::net::device) reception: Atomic<u32>,
    /// The number of times that this has enabled interrupts.
    pub(in crate::net::device) unmasked: Atomic<u32>,
    /// Do not go idle.
    pub(in crate::net::device) busy: Atomic<u32>,
    /// Poll once more from within.
    pub(in crate::net::device) reenter: Atomic<u32>,
    /// Transmit once more from within, as netpoll does in an interrupt.
    pub(in crate::net::device) nested: Atomic<u32>,
    /// That was refused.
    pub(in crate::net::device) refused: Atomic<u32>,
    /// The number of statistics.
    pub(in crate::net::device) statistics: Atomic<u32>,
    /// The number of times that the driver was lent a device without references.
    pub(in crate::net::device) uninitialized: Atomic<u32>,
    pub(in crate::net::device) irq: [Atomic<u32>; 2],
    pub(in crate::net::device) event_irq: Atomic<u32>,
    /// Raise the interrupts of the queue and of events while the NIC is being started.
    pub(in crate::net::device) early: Atomic<u32>,
    pub(in crate::net::device) queues: Atomic<u32>,
    /// Log doorbells.
    pub(in crate::net::device) doorbells: Atomic<u32>,
    /// Transmit that many packets from within the poll function.
    pub(in crate::net::device) forward: Atomic<u32>,
    /// Take the queue from the stack within the poll function, after that.
    pub(in crate::net::device) take_queue: Atomic<u32>,
    /// Account for that many bytes with each packet, if not zero.
    pub(in crate::net::device) claim: Atomic<u32>,
    /// Complete that many bytes more than there were.
    pub(in crate::net::device) overcount: Atomic<usize>,
    /// Make a receive ring, and keep the handle.
    pub(in crate::net::device) rx_ring: Atomic<u32>,
    /// Drop the handle within the poll function.
    pub(in crate::net::device) drop_ring: Atomic<u32>,
    /// The number of pages that its pool lacked before and after that.
    pub(in crate::net::device) lacking: [Atomic<u32>; 2],
    /// Receive with the ring.
    pub(in crate::net::device) use_ring: Atomic<u32>,
    /// The number of errors with rings.
    pub(in crate::net::device) ring_errors: Atomic<u32>,
    /// Make a transmit ring in each vector, [`DROP`](super::tx_rings::DROP) or
    /// [`KEEP`](super::tx_rings::KEEP).
    pub(in crate::net::device) tx_ring: Atomic<u32>,
    /// Drop the handle to the one that was kept within the poll function.
    pub(in crate::net::device) drop_tx_ring: Atomic<u32>,
    /// The number of references to the parent when the driver was last asked to stop the NIC.
    pub(in crate::net::device) references: Atomic<i32>,
    /// Called with the instance of each vector.
    pub(in crate::net::device) on_napi: SetOnce<fn(&Napi) -> Result>,
    /// Keep a resource of the bus device in the poller.
    pub(in crate::net::device) resource: Atomic<u32>,
    pub(in crate::net::device) received: Atomic<u64>,
    pub(in crate::net::device) addresses: Atomic<u32>,
    pub(in crate::net::device) restart_mtu: Atomic<u32>,
    /// Refuse rules with this queue, counted from one.
    pub(in crate::net::device) refuse: Atomic<u32>,
    /// The rules that the NIC has, as bits.
    pub(in crate::net::device) rules: Atomic<u32>,
    /// The packets by which the NIC was to wake the machine, as the core numbers them.
    pub(in crate::net::device) armed: Atomic<u32>,
    /// Restart for another set of features.
    pub(in crate::net::device) restart_features: Atomic<u32>,
    /// The set of the last start.
    pub(in crate::net::device) started_with: Atomic<u64>,
    /// The number of packets that the driver was asked about.
    pub(in crate::net::device) features_checks: Atomic<u32>,
    /// Complete packets when another CPU has stopped the queue.
    pub(in crate::net::device) complete_late: Atomic<u32>,
    /// The number of doorbells.
    pub(in crate::net::device) told: Atomic<u32>,
    /// UDP over IPv4 is hashed with its ports.
    pub(in crate::net::device) udp_ports: Atomic<u32>,
    /// The number of times that the queue was not stopped when the device was down.
    pub(in crate::net::device) awake: Atomic<u32>,
    /// The number of times that the driver was told that its NIC cannot be reached.
    pub(in crate::net::device) unreachable: Atomic<u32>,
    /// The number of runs of the watchdog.
    pub(in crate::net::device) watchdog: Atomic<u32>,
    /// Ask for a restart at the next one.
    pub(in crate::net::device) unwell: Atomic<u32>,
}

impl Log {
    pub(in crate::net::device) fn new() -> Result<Arc<Self>> {
        Ok(Arc::new(
            Self {
                len: Atomic::new(0),
                events: [const { Atomic::new(0) }; LOG],
                fail: Atomic::new(Fail::No as u32),
                on_xmit: Atomic::new(OnXmit::Take as u32),
                reception: Atomic::new(Reception::One as u32),
                unmasked: Atomic::new(0),
                busy: Atomic::new(0),
                reenter: Atomic::new(0),
                nested: Atomic::new(0),
                refused: Atomic::new(0),
                statistics: Atomic::new(2),
                uninitialized: Atomic::new(0),
                irq: [const { Atomic::new(0) }; 2],
                event_irq: Atomic::new(0),
                early: Atomic::new(0),
                queues: Atomic::new(1),
                doorbells: Atomic::new(0),
                forward: Atomic::new(0),
                take_queue: Atomic::new(0),
                claim: Atomic::new(0),
                overcount: Atomic::new(0),
                rx_ring: Atomic::new(0),
                drop_ring: Atomic::new(0),
                lacking: [const { Atomic::new(0) }; 2],
                use_ring: Atomic::new(0),
                ring_errors: Atomic::new(0),
                tx_ring: Atomic::new(0),
                drop_tx_ring: Atomic::new(0),
                references: Atomic::new(0),
                on_napi: SetOnce::new(),
                resource: Atomic::new(0),
                received: Atomic::new(0),
                addresses: Atomic::new(0),
                restart_mtu: Atomic::new(0),
                refuse: Atomic::new(u32::MAX),
                rules: Atomic::new(0),
                armed: Atomic::new(0),
                restart_features: Atomic::new(0),
                started_with: Atomic::new(0),
                features_checks: Atomic::new(0),
                complete_late: Atomic::new(0),
                told: Atomic::new(0),
                udp_ports: Atomic::new(0),
                awake: Atomic::new(0),
                unreachable: Atomic::new(0),
                watchdog: Atomic::new(0),
                unwell: Atomic::new(0),
            },
            GFP_KERNEL,
        )?)
    }

    pub(in crate::net::device) fn add(&self, event: Event) {
        let index = self.len.fetch_add(1, Relaxed);
        if let Some(slot) = self.events.get(index) {
            slot.store(event as u32, Relaxed);
        }
    }

    /// The number of bytes to account for with a packet of `len` bytes.
    pub(in crate::net::device) fn claimed(&self, len: u32) -> u32 {
        match self.claim.load(Relaxed) {
            0 => len,
            claim => claim,
        }
    }

    /// Whether exactly these events have happened since the last call.
    pub(in crate::net::device) fn take(&self, expected: &[Event]) -> bool {
        let len = self.len.xchg(0, Relaxed).min(LOG);
        let same = len == expected.len()
            && expected
                .iter()
                .zip(&self.events)
                .all(|(expected, event)| event.load(Relaxed) == *expected as u32);

        if !same {
            pr_err!("expected {expected:?}, got:\n");
            for event in self.events.iter().take(len) {
                pr_err!("  event {}\n", event.load(Relaxed));
            }
        }
        same
    }

    /// Removes all events.
    pub(in crate::net::device) fn clear(&self) {
        self.len.store(0, Relaxed);
    }

    /// Removes all of one kind from the log. Returns whether there was any.
    pub(in crate::net::device) fn forget(&self, event: Event) -> bool {
        let len = self.len.load(Relaxed).min(LOG);
        let mut kept = 0;

        for index in 0..len {
            let value = self.events[index].load(Relaxed);
            if value != event as u32 {
                self.events[kept].store(value, Relaxed);
                kept += 1;
            }
        }
        self.len.store(kept, Relaxed);
        kept != len
    }

    pub(in crate::net::device) fn count(&self, event: Event) -> usize {
        let len = self.len.load(Relaxed).min(LOG);
        self.events
            .iter()
            .take(len)
            .filter(|slot| slot.load(Relaxed) == event as u32)
            .count()
    }
}
