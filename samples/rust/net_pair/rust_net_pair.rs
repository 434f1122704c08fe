// SPDX-License-Identifier: GPL-2.0

//! Rust network driver sample: two virtual ports, each of which receives what the other transmits.
//!
//! There is no bus, interrupt or DMA. The transmit function of one port puts a packet into a queue,
//! and schedules the poll function of the other one, which hands it to the stack by GRO. It is
//! transmitted as a `SkBuff`, which may be a clone, and received as a `UniqueSkBuff`.

#![forbid(unsafe_code)]

use kernel::{
    net::{
        device::{
            Device,
            Driver,
            Feature,
            Features,
            Immediate,
            Info,
            Locks,
            MacAddress,
            NoParent,
            Opening,
            Stats64,
            VirtualDevices,
            VirtualModule, //
        },
        napi::{
            Poll,
            Polled,
            Scheduler, //
        },
        queue::{
            TxQueue,
            Xmit, //
        },
        rx_list::{
            Protocol,
            RxList, //
        },
        skbuff::{
            DropReason,
            SkBuff,
            TxSkBuff,
            UniqueSkBuff, //
        }, //
    },
    prelude::*,
    softirq::BhGuard,
    sync::{
        alf_queue::Mpmc,
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// The way from one port to the other.
struct Way {
    queue: Mpmc<UniqueSkBuff>,
    /// Schedules the poll function of the port at its end.
    receiver: Arc<Scheduler>,
}

impl Way {
    fn new() -> Result<Arc<Self>> {
        let way = Self {
            // Packets that wait to be received, at most.
            queue: Mpmc::new(1024, GFP_KERNEL)?,
            receiver: Scheduler::new()?,
        };
        Ok(Arc::new(way, GFP_KERNEL)?)
    }

    /// Sends a packet on its way, or returns it.
    fn push(&self, skb: SkBuff) -> Result<(), SkBuff> {
        let Some(bh) = BhGuard::new() else {
            return Err(skb);
        };
        let skb = skb.into_unique(GFP_ATOMIC)?;

        self.queue.push(bh.softirq(), skb).map_err(SkBuff::from)
    }
}

/// The driver of a port, and its data.
struct Port {
    out: Arc<Way>,
    back: Arc<Way>,
    received: Counters,
    sent: Counters,
    dropped: Atomic<u64>,
}

/// Counters of a queue. A port has one queue of each kind, so they have one writer at a time.
struct Counters {
    packets: Atomic<u64>,
    bytes: Atomic<u64>,
}

impl Counters {
    fn new() -> Self {
        Self {
            packets: Atomic::new(0),
            bytes: Atomic::new(0),
        }
    }

    fn add(&self, bytes: u32) {
        let add = |counter: &Atomic<u64>, more| {
            counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed)
        };

        add(&self.packets, 1);
        add(&self.bytes, bytes.into());
    }
}

// [driver]
#[vtable]
impl Driver for Port {
    type Bus = NoParent;
    type Setup = Self;
    type Data<'bound> = Self;
    type Poller<'bound> = ();
    type Tx<'bound> = ();
    type Doorbell = Immediate;

    fn probe(_bus: &NoParent, port: Self) -> Result<(Info, impl PinInit<Self, Error>)> {
        let info = Info {
            features: Features::NONE
                .with(Feature::ScatterGather)
                .with(Feature::HighDma)
                .with(Feature::ChecksumAny)
                .with(Feature::Tso)
                .with(Feature::Tso6),
            // No valid address: the port gets a random one.
            ..Info::new(MacAddress::from([0; 6]))
        };
        Ok((info, Ok(port)))
    }

    fn open<'bound>(cx: &mut Opening<'_, 'bound, Self>) -> Result {
        let receiver = &cx.data().get_ref().back.receiver;

        cx.add_virtual_queue_vector(|napi| napi.bind(receiver).map(|()| ((), ())))?;
        Ok(())
    }

    fn start(port: Pin<&Self>, dev: &Device, _locks: &mut Locks<'_>) -> Result {
        dev.carrier_on();
        // Packets may have come before there was a poll function to schedule.
        port.back.receiver.schedule();
        Ok(())
    }

    fn quiesce(_port: Pin<&Self>, _dev: &Device, _locks: &mut Locks<'_>) -> Result {
        Ok(())
    }

    fn poll(port: Pin<&Self>, _poller: &mut (), cx: &Poll<'_>) -> Polled {
        // There is none for netpoll, which only wants transmissions to be completed.
        let Some(softirq) = cx.softirq() else {
            return Polled::Idle { received: 0 };
        };
        let mut list = RxList::new(cx);

        for received in 0..cx.budget() {
            let Some(skb) = port.back.queue.pop(softirq) else {
                return Polled::Idle { received };
            };
            port.received.add(skb.len());
            list.push(skb, Protocol::Other);
        }
        Polled::Busy
    }

    fn rearm(_port: Pin<&Self>, _vector: u16) {}

    fn start_xmit<'call>(
        port: Pin<&Self>,
        (): &mut (),
        _: &TxQueue<'_>,
        skb: TxSkBuff<'call>,
        more: bool,
    ) -> Xmit<'call> {
        let len = skb.len();

        match port.out.push(skb.into()) {
            Ok(()) => port.sent.add(len),
            Err(skb) => {
                port.dropped.fetch_add(1, Relaxed);
                skb.drop_with(DropReason::FullRing);
            }
        }
        if !more {
            port.out.receiver.schedule();
        }
        Xmit::Taken
    }

    fn get_stats64(port: Pin<&Self>, stats: &mut Stats64<'_>, _is_reachable: bool) {
        stats
            .rx_packets(port.received.packets.load(Relaxed))
            .rx_bytes(port.received.bytes.load(Relaxed))
            .tx_packets(port.sent.packets.load(Relaxed))
            .tx_bytes(port.sent.bytes.load(Relaxed))
            .tx_dropped(port.dropped.load(Relaxed));
    }
}
// [/driver]

struct Pair;

impl VirtualModule for Pair {
    fn init(devices: &mut VirtualDevices) -> Result {
        let (there, back) = (Way::new()?, Way::new()?);

        for (out, back) in [(&there, &back), (&back, &there)] {
            devices.add_with_queues::<Port>(Port {
                out: out.clone(),
                back: back.clone(),
                received: Counters::new(),
                sent: Counters::new(),
                dropped: Atomic::new(0),
            })?;
        }
        Ok(())
    }
}

kernel::module_virtual_devices! {
    type: Pair,
    name: "rust_net_pair",
    authors: ["The skbulk authors"],
    description: "Rust virtual network device sample",
    license: "GPL v2",
}
