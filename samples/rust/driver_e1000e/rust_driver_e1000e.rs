// SPDX-License-Identifier: GPL-2.0

//! Rust network driver sample: the Intel 82574L, which QEMU models as `e1000e`.
//!
//! The second driver on the abstractions in `rust/kernel/net`, for a NIC that is unlike the first:
//! other descriptors, other interrupts. Documentation/rust/netdev.rst compares.
//!
//! | file | content |
//! | --- | --- |
//! | `rust_driver_e1000e.rs` | the bus driver and the callbacks of the network device |
//! | `ring.rs` | the descriptor rings, offloads |
//! | `hw.rs` | registers, reset, start, interrupts, filters |

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
            deferring::Deferring,
            ethtool::{
                link::{
                    LinkOps,
                    LinkSettings, //
                },
                ringparam::RingparamOps,
                statistics::{
                    Statistics,
                    StatisticsOps, //
                }, //
            },
            features_check::FeaturesCheckOps,
            xdp::XdpOps,
            Device,
            Driver,
            Feature,
            Features,
            Info,
            Locks,
            MacAddress,
            Opening,
            OpsLocked,
            OptionalOps,
            RingRange,
            Rtnl,
            RtnlCell,
            RxMode,
            Stats64, //
        },
        napi::{
            Napi,
            Poll,
            Polled, //
        },
        page_pool::AnyRxRing,
        queue::{
            self,
            Xmit, //
        },
        rx_list::RxList,
        skb_free::BulkStats,
        skbuff::{
            SkBuff,
            TxSkBuff, //
        },
        xdp::Attachment, //
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

use hw::{
    Bar0,
    Interrupts, //
};
use ring::{
    RxRing,
    TxCompletion,
    TxRing, //
};

/// The network device driver.
struct Nic;

/// A transmit queue, with the doorbell of this driver.
type TxQueue<'a> = queue::TxQueue<'a, <Nic as Driver>::Doorbell>;

/// Shared by all callbacks, from `probe()` until the device is unbound.
struct Data<'bound> {
    stats: Counters,
    freed: BulkStats,
    program: Attachment,
    /// Sums of the NIC's counters.
    crc_errors: Atomic<u64>,
    missed: Atomic<u64>,
    /// The rings that the NIC gets when it is started.
    place: RtnlCell<Option<hw::Place>>,
    interrupts: Interrupts,
    vectors: IrqVectorRegistration<'bound>,
    bar: Bar0<'bound>,
    pdev: &'bound pci::Device<Bound>,
}

/// The counters of the poll function, their only writer.
struct Counters {
    rx_packets: Atomic<u64>,
    rx_bytes: Atomic<u64>,
    rx_dropped: Atomic<u64>,
    tx_packets: Atomic<u64>,
    tx_bytes: Atomic<u64>,
}

impl Counters {
    fn new() -> Self {
        Self {
            rx_packets: Atomic::new(0),
            rx_bytes: Atomic::new(0),
            rx_dropped: Atomic::new(0),
            tx_packets: Atomic::new(0),
            tx_bytes: Atomic::new(0),
        }
    }
}

/// Adds to a counter with one writer, which takes no atomic instruction.
#[inline(always)]
fn count(counter: &Atomic<u64>, more: usize) {
    counter.store(counter.load(Relaxed).wrapping_add(more as u64), Relaxed);
}

/// Used by the poll function alone.
struct Poller<'bound> {
    rx: RxRing,
    tx: TxCompletion<'bound>,
}

impl Data<'_> {
    /// Tells the stack about the link.
    fn report_link(&self, dev: &Device) {
        if hw::link(&self.bar).is_some() {
            dev.carrier_on();
        } else {
            dev.carrier_off();
        }
    }

    /// Adds what the NIC has counted, which a read clears: each reader adds what it has read.
    fn count_errors(&self) {
        let (crc_errors, missed) = hw::take_errors(&self.bar);

        self.crc_errors.fetch_add(crc_errors, Relaxed);
        self.missed.fetch_add(missed, Relaxed);
    }
}

/// Interrupt vectors: several with MSI-X, or one with MSI.
fn vectors(pdev: &pci::Device<Bound>) -> Result<(IrqVectorRegistration<'_>, Interrupts)> {
    let types = |kind| IrqTypes::default().with(kind);

    if !module_parameters::msi.value() {
        let several = pdev.alloc_irq_vectors(hw::VECTORS, hw::VECTORS, types(IrqType::MsiX));
        if let Ok(vectors) = several {
            return Ok((vectors, Interrupts::Several));
        }
    }
    let one = pdev.alloc_irq_vectors(1, 1, types(IrqType::Msi))?;
    Ok((one, Interrupts::One))
}

#[vtable]
impl Driver for Nic {
    type Bus = pci::Device<Bound>;
    type Setup = ();
    type Data<'bound> = Data<'bound>;
    type Poller<'bound> = Poller<'bound>;
    type Tx<'bound> = TxRing<'bound>;
    type Doorbell = Deferring;

    fn probe<'bound>(
        pdev: &'bound pci::Device<Bound>,
        _setup: (),
    ) -> Result<(Info, impl PinInit<Data<'bound>, Error>)> {
        let bar = Bar0::new(pdev.iomap_region_sized(0, c"rust_driver_e1000e")?);
        hw::reset(&bar)?;

        let info = Info {
            features: Features::NONE
                .with(Feature::ScatterGather)
                .with(Feature::HighDma)
                .with(Feature::ChecksumIpv4)
                .with(Feature::ChecksumIpv6)
                .with(Feature::RxChecksum),
            max_mtu: hw::MAX_MTU,
            ..Info::new(hw::permanent_address(&bar))
        };
        let (vectors, interrupts) = vectors(pdev)?;

        Ok((
            info,
            Ok(Data {
                stats: Counters::new(),
                freed: BulkStats::new(),
                program: Attachment::new(),
                crc_errors: Atomic::new(0),
                missed: Atomic::new(0),
                place: RtnlCell::new(None),
                interrupts,
                vectors,
                bar,
                pdev,
            }),
        ))
    }

    fn open<'bound>(cx: &mut Opening<'_, 'bound, Self>) -> Result {
        let data = cx.data().get_ref();
        let dev = data.pdev.as_ref();
        let irq = |vector| data.vectors.index(vector as usize);
        let (sizes, is_up) = (cx.ring_sizes(), cx.is_up());
        let mut place = None;

        let make_rings = |napi: &Napi| {
            let mut rx = RxRing::new(dev, napi, sizes.rx)?;
            let (ring, tx) = ring::transmit(dev, napi, sizes.tx)?;
            if is_up && rx.ring.missing() > 0 {
                return Err(ENOMEM);
            }

            place = Some(hw::Place {
                sizes,
                rx: rx.ring.dma_address(napi)?,
                tx: [ring.dma_address(), rx.ring.tx_dma_address(napi)?],
                rx_tail: rx.ring.tail(),
            });
            Ok((Poller { rx, tx }, ring))
        };
        match data.interrupts {
            Interrupts::Several => {
                cx.add_split_queue_vector(irq(hw::RX_VECTOR)?, irq(hw::TX_VECTOR)?, make_rings)?;
                cx.add_event_vector(irq(hw::LINK_VECTOR)?, c"link")?;
            }
            Interrupts::One => {
                cx.add_queue_vector(irq(0)?, c"all", make_rings)?;
            }
        }
        *data.place.get_mut(cx.rtnl()) = place;
        Ok(())
    }

    const OPEN_WHILE_UP: bool = true;
    const OPS: OptionalOps<Self> = OptionalOps::NONE
        .features_check()
        .link()
        .ringparam()
        .statistics()
        .ts_info()
        .xdp();

    fn start<'bound>(data: Pin<&Data<'bound>>, dev: &Device, locks: &mut Locks<'bound>) -> Result {
        hw::place_rings(&data.bar, data.place.get(locks).ok_or(EINVAL)?);
        hw::start(&data.bar, &dev.mac_address(), data.interrupts)?;
        // Interrupts report later changes.
        data.report_link(dev);
        Ok(())
    }

    fn quiesce<'bound>(
        data: Pin<&Data<'bound>>,
        _dev: &Device,
        _locks: &mut Locks<'bound>,
    ) -> Result {
        // The reset clears the NIC's counters.
        data.count_errors();
        hw::reset(&data.bar)
    }

    #[inline(always)]
    fn poll<'bound>(
        data: Pin<&Data<'bound>>,
        poller: &mut Poller<'bound>,
        cx: &Poll<'_>,
    ) -> Polled {
        // After netpoll, `rearm()` is not called.
        let masks = data.interrupts == Interrupts::One && !cx.is_netpoll();
        if masks && hw::take_causes(&data.bar) {
            data.report_link(cx.device());
        }

        // Completed SKBs are freed first: received packets can use their memory.
        let sent = poller.tx.complete(cx, &data.freed);
        count(&data.stats.tx_packets, sent.packets);
        count(&data.stats.tx_bytes, sent.bytes);

        // Netpoll only wants transmissions to be completed.
        if cx.is_netpoll() {
            return Polled::Idle { received: 0 };
        }

        let mut list = RxList::new(cx);
        let received = poller.rx.receive(data.program.program(cx), cx, &mut list);
        if let Some(tail) = poller.rx.ring.take_tx_tail() {
            hw::tx_doorbell(&data.bar, 1, tail);
        }
        count(&data.stats.tx_packets, received.returned.packets);
        count(&data.stats.tx_bytes, received.returned.bytes);
        count(&data.stats.rx_packets, received.packets);
        count(&data.stats.rx_bytes, received.bytes);
        count(&data.stats.rx_dropped, received.dropped);

        // The NIC can fill its new buffers while the stack handles these frames.
        let refilled = poller.rx.refill(&data.bar, cx);
        list.deliver();
        if refilled && received.has_drained {
            Polled::Idle {
                received: received.packets,
            }
        } else {
            Polled::Busy
        }
    }

    fn rearm<'bound>(data: Pin<&Data<'bound>>, _vector: u16) {
        hw::rearm_queue(&data.bar, data.interrupts);
    }

    fn kick<'bound>(data: Pin<&Data<'bound>>, tx: &mut TxRing<'bound>) {
        tx.doorbell(&data.bar);
    }

    #[inline(always)]
    fn start_xmit<'bound, 'call>(
        data: Pin<&Data<'bound>>,
        tx: &mut TxRing<'bound>,
        queue: &TxQueue<'_>,
        skb: TxSkBuff<'call>,
        more: bool,
    ) -> Xmit<'call> {
        tx.xmit(&data.bar, queue, skb, more)
    }

    fn event<'bound>(data: Pin<&Data<'bound>>, dev: &Device) {
        // First, so that a change after the look at the link interrupts again.
        hw::rearm_link(&data.bar);
        data.report_link(dev);
    }

    fn set_rx_mode<'bound>(
        data: Pin<&Data<'bound>>,
        _dev: &Device,
        mode: &RxMode<'_>,
        _rtnl: &mut Rtnl,
    ) -> Result {
        hw::set_filter(&data.bar, mode)
    }

    fn set_mac_address<'bound>(
        data: Pin<&Data<'bound>>,
        dev: &Device,
        address: MacAddress,
        _rtnl: &mut Rtnl,
    ) -> Result {
        // If the device is down, `start()` sets it.
        if dev.is_running() {
            hw::set_address(&data.bar, 0, Some(&address));
        }
        Ok(())
    }

    fn get_stats64<'bound>(data: Pin<&Data<'bound>>, stats: &mut Stats64<'_>, is_reachable: bool) {
        if is_reachable {
            data.count_errors();
        }
        let (own, crc_errors) = (&data.stats, data.crc_errors.load(Relaxed));

        stats
            .rx_packets(own.rx_packets.load(Relaxed))
            .rx_bytes(own.rx_bytes.load(Relaxed))
            .rx_dropped(own.rx_dropped.load(Relaxed))
            .tx_packets(own.tx_packets.load(Relaxed))
            .tx_bytes(own.tx_bytes.load(Relaxed))
            .rx_missed_errors(data.missed.load(Relaxed))
            .rx_crc_errors(crc_errors)
            .rx_errors(crc_errors);
    }
}

impl FeaturesCheckOps for Nic {
    #[inline(always)]
    fn features_check<'bound>(
        _data: Pin<&Data<'bound>>,
        skb: &SkBuff,
        features: Features,
    ) -> Features {
        if ring::can_insert_checksum(skb) {
            return features;
        }
        features
            .without(Feature::ChecksumIpv4)
            .without(Feature::ChecksumIpv6)
    }
}

#[vtable]
impl LinkOps for Nic {
    fn link<'bound>(
        data: Pin<&Data<'bound>>,
        _dev: &Device,
        _lock: &mut OpsLocked<'bound>,
    ) -> LinkSettings {
        LinkSettings::new(hw::link(&data.bar))
    }
}

impl RingparamOps for Nic {
    const RINGS: RingRange = ring::RINGS;
}

impl StatisticsOps for Nic {
    fn statistics<'bound>(
        data: Pin<&Data<'bound>>,
        _dev: &Device,
        statistics: &mut Statistics<'_>,
        _lock: &mut OpsLocked<'bound>,
    ) {
        for (class, calls) in BulkStats::CLASS_NAMES.iter().zip(data.freed.calls()) {
            statistics.add(fmt!("bulk_free_calls_{}", class), calls);
        }
    }
}

impl XdpOps for Nic {
    const MAX_MTU: u32 = ring::MAX_XDP_MTU;

    fn attachment<'a>(data: &'a Data<'_>) -> &'a Attachment {
        &data.program
    }
}

/// The PCI driver. The network device does everything else.
struct NicPci;

kernel::pci_device_table!(
    PCI_TABLE,
    <NicPci as pci::Driver>::IdInfo,
    [(pci::DeviceId::from_id(pci::Vendor::INTEL, 0x10d3), ())]
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
    name: "rust_driver_e1000e",
    authors: ["The skbulk authors"],
    description: "Rust network driver sample for the Intel 82574L",
    license: "GPL v2",
    params: {
        msi: bool {
            default: false,
            description: "Use MSI, as where there is no MSI-X",
        },
    },
}
