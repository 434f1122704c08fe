// SPDX-License-Identifier: GPL-2.0

//! Rust network driver sample: one port of an Intel 82599.
//!
//! One queue pair, no offloads, no options. Documentation/rust/netdev.rst walks through it, and a
//! driver of one's own can begin as a copy of this directory.
//!
//! | file | content |
//! | --- | --- |
//! | `rust_driver_net.rs` | the bus driver and the callbacks of the network device |
//! | `ring.rs` | the descriptor rings |
//! | `hw.rs` | registers, reset, start |

#![forbid(unsafe_code)]

use kernel::{
    device::{
        Bound,
        Core, //
    },
    dma::DmaMask,
    net::{
        self,
        device::{
            Device,
            Driver,
            Feature,
            Features,
            Immediate,
            Info,
            Locks,
            Opening,
            Stats64, //
        },
        napi::{
            Poll,
            Polled, //
        },
        queue::{
            TxQueue,
            Xmit, //
        },
        skb_free::BulkStats,
        skbuff::TxSkBuff, //
    },
    pci::{
        self,
        IrqType,
        IrqTypes,
        IrqVectorRegistration, //
    },
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

mod hw;
mod ring;

use hw::Bar0;
use ring::{
    RxRing,
    TxCompletion,
    TxRing, //
};

// [state]
/// The network device driver. It holds nothing: the abstraction owns the driver's state and lends
/// each part to the callbacks that may use it.
struct Nic;

/// Shared by all callbacks, from `probe()` until the device is unbound.
struct Data<'bound> {
    counters: Counters,
    freed: BulkStats,
    vectors: IrqVectorRegistration<'bound>,
    bar: Bar0<'bound>,
    pdev: &'bound pci::Device<Bound>,
}

/// Used by the poll function alone, from `open()` until the device goes down.
struct Poller<'bound> {
    rx: RxRing,
    tx: TxCompletion<'bound>,
}

/// Used by the holder of the transmit queue's lock alone, likewise.
struct Tx<'bound> {
    ring: TxRing<'bound>,
}
// [/state]

/// Packets and bytes, added once per poll.
struct Counters {
    rx_packets: Atomic<u64>,
    rx_bytes: Atomic<u64>,
    tx_packets: Atomic<u64>,
    tx_bytes: Atomic<u64>,
}

impl Counters {
    fn new() -> Self {
        Self {
            rx_packets: Atomic::new(0),
            rx_bytes: Atomic::new(0),
            tx_packets: Atomic::new(0),
            tx_bytes: Atomic::new(0),
        }
    }
}

fn count(counter: &Atomic<u64>, more: usize) {
    counter.fetch_add(more as u64, Relaxed);
}

// [probe]
#[vtable]
impl Driver for Nic {
    type Bus = pci::Device<Bound>;
    type Setup = ();
    type Data<'bound> = Data<'bound>;
    type Poller<'bound> = Poller<'bound>;
    type Tx<'bound> = Tx<'bound>;
    type Doorbell = Immediate;

    fn probe<'bound>(
        pdev: &'bound pci::Device<Bound>,
        _setup: (),
    ) -> Result<(Info, impl PinInit<Data<'bound>, Error>)> {
        let bar = Bar0::new(pdev.iomap_region_sized(0, c"rust_driver_net")?);
        hw::reset(&bar)?;

        let info = Info {
            features: Features::NONE
                .with(Feature::ScatterGather)
                .with(Feature::HighDma),
            ..Info::new(hw::permanent_address(&bar))
        };
        let vectors = pdev.alloc_irq_vectors(
            hw::VECTORS.into(),
            hw::VECTORS.into(),
            IrqTypes::default().with(IrqType::MsiX),
        )?;

        Ok((
            info,
            Ok(Data {
                counters: Counters::new(),
                freed: BulkStats::new(),
                vectors,
                bar,
                pdev,
            }),
        ))
    }
    // [/probe]

    // [open]
    fn open<'bound>(cx: &mut Opening<'_, 'bound, Self>) -> Result {
        let data = cx.data().get_ref();
        let dev = data.pdev.as_ref();

        let queue_irq = data.vectors.index(hw::QUEUE_VECTOR.into())?;
        cx.add_queue_vector(queue_irq, c"TxRx", |napi| {
            let mut rx = RxRing::new(dev, napi)?;
            let (ring, tx) = ring::transmit(dev, napi)?;

            hw::place_rings(&data.bar, rx.dma_address(napi)?, ring.dma_address());
            Ok((Poller { rx, tx }, Tx { ring }))
        })?;

        let event_irq = data.vectors.index(hw::EVENT_VECTOR.into())?;
        cx.add_event_vector(event_irq, c"link")
    }

    fn start<'bound>(data: Pin<&Data<'bound>>, dev: &Device, _locks: &mut Locks<'bound>) -> Result {
        hw::start(&data.bar)?;
        // The interrupt reports later changes.
        Self::event(data, dev);
        Ok(())
    }

    fn quiesce<'bound>(
        data: Pin<&Data<'bound>>,
        _dev: &Device,
        _locks: &mut Locks<'bound>,
    ) -> Result {
        hw::reset(&data.bar)
    }
    // [/open]

    // [poll]
    fn poll<'bound>(
        data: Pin<&Data<'bound>>,
        poller: &mut Poller<'bound>,
        cx: &Poll<'_>,
    ) -> Polled {
        // Completed SKBs are freed first: received packets can use their memory.
        let sent = poller.tx.complete(cx, &data.freed);
        count(&data.counters.tx_packets, sent.packets);
        count(&data.counters.tx_bytes, sent.bytes);

        // Netpoll only wants transmissions to be completed.
        if cx.is_netpoll() {
            return Polled::Idle { received: 0 };
        }

        let received = poller.rx.receive(cx);
        count(&data.counters.rx_packets, received.packets);
        count(&data.counters.rx_bytes, received.bytes);

        // If no buffers were left, nothing would ever interrupt again.
        let refilled = poller.rx.refill(&data.bar, cx);
        if refilled && received.has_drained {
            Polled::Idle {
                received: received.packets,
            }
        } else {
            Polled::Busy
        }
    }

    fn rearm<'bound>(data: Pin<&Data<'bound>>, _vector: u16) {
        hw::rearm_queue(&data.bar);
    }
    // [/poll]

    // [xmit]
    fn start_xmit<'bound, 'call>(
        data: Pin<&Data<'bound>>,
        tx: &mut Tx<'bound>,
        queue: &TxQueue<'_>,
        skb: TxSkBuff<'call>,
        more: bool,
    ) -> Xmit<'call> {
        tx.ring.xmit(&data.bar, queue, skb, more)
    }
    // [/xmit]

    // [event]
    fn event<'bound>(data: Pin<&Data<'bound>>, dev: &Device) {
        hw::rearm_event(&data.bar);
        if hw::link_is_up(&data.bar) {
            dev.carrier_on();
        } else {
            dev.carrier_off();
        }
    }

    fn get_stats64<'bound>(data: Pin<&Data<'bound>>, stats: &mut Stats64<'_>, _is_reachable: bool) {
        let counters = &data.counters;

        stats
            .rx_packets(counters.rx_packets.load(Relaxed))
            .rx_bytes(counters.rx_bytes.load(Relaxed))
            .tx_packets(counters.tx_packets.load(Relaxed))
            .tx_bytes(counters.tx_bytes.load(Relaxed));
    }
    // [/event]
}

// [bus]
/// The PCI driver. The network device does everything else.
struct NicPci;

kernel::pci_device_table!(
    PCI_TABLE,
    <NicPci as pci::Driver>::IdInfo,
    [(pci::DeviceId::from_id(pci::Vendor::INTEL, 0x10fb), ())]
);

impl pci::Driver for NicPci {
    type IdInfo = ();
    type Data<'bound> = ();

    const ID_TABLE: pci::IdTable<Self::IdInfo> = &PCI_TABLE;
    const DMA_MASK: Option<DmaMask> = Some(DmaMask::new::<64>());

    fn probe<'bound>(
        pdev: &'bound pci::Device<Core<'_>>,
        _info: Option<&'bound Self::IdInfo>,
    ) -> impl PinInit<(), Error> + 'bound {
        pin_init::pin_init_scope(move || {
            pdev.enable_device_mem()?;
            net::device::register::<Nic>(pdev, ())?;

            Ok(Ok::<(), Error>(()))
        })
    }
}

kernel::module_pci_driver! {
    type: NicPci,
    name: "rust_driver_net",
    authors: ["The skbulk authors"],
    description: "Rust network driver sample",
    license: "GPL v2",
}
// [/bus]
