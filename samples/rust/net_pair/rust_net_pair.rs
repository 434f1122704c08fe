// SPDX-License-Identifier: GPL-2.0

//! Rust network driver sample: two virtual ports, each of which receives what the other transmits.
//!
//! There is neither a bus nor an interrupt nor DMA. The transmit function of one port puts a packet
//! into a queue, and schedules the poll function of the other port, which hands it to the stack by
//! GRO. So each packet changes its state on the way: it is transmitted as a `SkBuff`, which may be
//! a clone of what its sender keeps, and is received as a `UniqueSkBuff`.

#![forbid(unsafe_code)]

use kernel::{
    net::{
        device::{
            Device,
            Driver,
            Feature,
            Features,
            Info,
            MacAddress,
            NoParent,
            Opening,
            Rtnl,
            Stats64,
            VirtualDevice, //
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

/// Packets that wait to be received, at most.
const ROOM: usize = 1024;

/// The way from one port to the other.
struct Way {
    queue: Mpmc<UniqueSkBuff>,
    /// Schedules the poll function of the port at its end.
    receiver: Arc<Scheduler>,
    packets: Atomic<u64>,
    bytes: Atomic<u64>,
    dropped: Atomic<u64>,
}

impl Way {
    fn new() -> Result<Arc<Self>> {
        let way = Self {
            queue: Mpmc::new(ROOM, GFP_KERNEL)?,
            receiver: Scheduler::new()?,
            packets: Atomic::new(0),
            bytes: Atomic::new(0),
            dropped: Atomic::new(0),
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

/// The driver of a port.
struct Port;

struct Data {
    out: Arc<Way>,
    back: Arc<Way>,
}

#[vtable]
impl Driver for Port {
    type Bus = NoParent;
    type Setup = Data;
    type Data<'bound> = Data;
    type Poller<'bound> = ();
    type Tx<'bound> = ();

    fn probe(_bus: &NoParent, data: Data) -> Result<(Info, impl PinInit<Data, Error>)> {
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
        Ok((info, Ok(data)))
    }

    fn open<'bound>(cx: &mut Opening<'_, 'bound, Self>) -> Result {
        let receiver = &cx.data().get_ref().back.receiver;

        cx.add_virtual_queue_vector(|napi| napi.bind(receiver).map(|()| ((), ())))?;
        Ok(())
    }

    fn start(data: Pin<&Data>, dev: &Device, _rtnl: &mut Rtnl) -> Result {
        dev.carrier_on();
        // Packets may have come before there was a poll function to schedule.
        data.back.receiver.schedule();
        Ok(())
    }

    fn quiesce(_data: Pin<&Data>, _dev: &Device, _rtnl: &mut Rtnl) -> Result {
        Ok(())
    }

    fn poll(data: Pin<&Data>, _poller: &mut (), cx: &Poll<'_>) -> Polled {
        // There is none for netpoll, which only wants transmissions to be completed.
        let Some(softirq) = cx.softirq() else {
            return Polled::Idle { received: 0 };
        };
        let mut list = RxList::new(cx);

        for received in 0..cx.budget().packets() {
            let Some(skb) = data.back.queue.pop(softirq) else {
                return Polled::Idle { received };
            };
            list.push(skb, Protocol::Other);
        }
        Polled::Busy
    }

    fn rearm(_data: Pin<&Data>, _vector: u16) {}

    fn start_xmit(
        data: Pin<&Data>,
        _tx: &mut (),
        _queue: &TxQueue<'_>,
        skb: SkBuff,
        more: bool,
    ) -> Xmit {
        let out = &data.get_ref().out;
        let len = skb.len();

        match out.push(skb) {
            Ok(()) => {
                out.packets.fetch_add(1, Relaxed);
                out.bytes.fetch_add(len.into(), Relaxed);
            }
            Err(skb) => {
                out.dropped.fetch_add(1, Relaxed);
                skb.drop_with(DropReason::FullRing);
            }
        }
        if !more {
            out.receiver.schedule();
        }
        Xmit::Taken
    }

    fn get_stats64(data: Pin<&Data>, stats: &mut Stats64<'_>) {
        stats
            .tx_packets(data.out.packets.load(Relaxed))
            .tx_bytes(data.out.bytes.load(Relaxed))
            .tx_dropped(data.out.dropped.load(Relaxed))
            .rx_packets(data.back.packets.load(Relaxed))
            .rx_bytes(data.back.bytes.load(Relaxed));
    }
}

#[pin_data]
struct Pair {
    #[pin]
    one: VirtualDevice<Port>,
    #[pin]
    other: VirtualDevice<Port>,
}

impl kernel::InPlaceModule for Pair {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        pin_init::pin_init_scope(|| {
            let (there, back) = (Way::new()?, Way::new()?);
            let data = |out: &Arc<Way>, back: &Arc<Way>| Data {
                out: out.clone(),
                back: back.clone(),
            };

            Ok(try_pin_init!(Self {
                one <- VirtualDevice::new(data(&there, &back)),
                other <- VirtualDevice::new(data(&back, &there)),
            }? Error))
        })
    }
}

module! {
    type: Pair,
    name: "rust_net_pair",
    authors: ["The skbulk authors"],
    description: "Rust virtual network device sample",
    license: "GPL v2",
}
