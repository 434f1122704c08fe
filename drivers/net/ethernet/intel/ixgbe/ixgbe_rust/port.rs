// SPDX-License-Identifier: GPL-2.0

//! A port as a network device.

use kernel::{
    device::Bound,
    net::{
        device::{
            self,
            Device,
            Driver,
            Feature,
            Features,
            Flow,
            FlowHash,
            Info,
            MacAddress,
            MtuChange,
            Opening,
            RxMode,
            Statistics,
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
        skbuff::SkBuff, //
    },
    pci::{
        self,
        IrqType,
        IrqTypes,
        IrqVectorRegistration, //
    },
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        new_mutex,
        Arc,
        Mutex, //
    }, //
};

use crate::{
    eeprom,
    filter,
    hw::{
        self,
        Bar0, //
    },
    irq,
    link::{
        self,
        Link,
        Media, //
    },
    moderation::Moderation,
    regs::queue::{
        Pair,
        MAX_PAIRS, //
    },
    rss::{
        self,
        Hashing, //
    },
    rx::{
        RxRegisters,
        RxRing, //
    },
    stats::{
        PairStats,
        PortStats, //
    },
    tx::{
        self,
        TxCompletion,
        TxRegisters,
        TxRing, //
    }, //
};

/// The largest payload of a frame that the card receives, as the C driver has it.
const MAX_MTU: u32 = 9710;

/// Length of an Ethernet header. The card allows for VLAN tags by itself.
const HEADER_LEN: u16 = 14;

/// What `ethtool --set-priv-flags` calls the flags.
const FLAG_NAMES: &[&str] = &["bulk-free", "combine-tx"];

/// Free what has been sent in bulk. Off is for comparisons.
const FLAG_BULK_FREE: u32 = 1 << 0;

/// Combine on the transmit queue rather than wait for its lock. Only if the module was told to make
/// that possible: it takes another way through the stack for as long as the port exists.
const FLAG_COMBINE_TX: u32 = 1 << 1;

/// The network device driver.
pub(crate) struct PortDriver;

/// What a port is told when it is made.
pub(crate) struct Setup {
    pub(crate) media: Media,
    /// Let [`FLAG_COMBINE_TX`] be set.
    pub(crate) combining: bool,
}

/// Where the rings of a queue pair are.
struct Rings {
    rx: RxRegisters,
    tx: TxRegisters,
}

/// What all callbacks of a port share.
///
/// The fields go in this order: the interrupt vectors before the registers are unmapped. By then
/// the network device is unregistered and closed, so that the card does no DMA.
#[pin_data]
pub(crate) struct Port<'bound> {
    #[pin]
    stats: PortStats,
    /// One for each queue pair while the port is open; under RTNL.
    #[pin]
    rings: Mutex<KVec<Rings>>,
    /// Held while the link is looked at and the stack told, so that what was seen last wins.
    #[pin]
    link_update: Mutex<()>,
    /// Entries of the exact filter that are in use.
    unicast_entries: Atomic<usize>,
    /// The private flags, see [`FLAG_NAMES`].
    flags: Atomic<u32>,
    /// Whether CPUs can combine.
    combining: bool,
    hashing: Hashing,
    media: Media,
    vectors: IrqVectorRegistration<'bound>,
    bar: Bar0<'bound>,
    pdev: &'bound pci::Device<Bound>,
}

/// What belongs to the poll function of a queue pair: the receive ring and the completing side of
/// the transmit ring.
pub(crate) struct Poller<'bound> {
    tx: TxCompletion<'bound>,
    rx: RxRing,
    moderation: Moderation,
    stats: Arc<PairStats>,
}

/// What belongs to who transmits by a queue pair: the filling side of the transmit ring.
pub(crate) struct Sender<'bound> {
    ring: TxRing<'bound>,
    stats: Arc<PairStats>,
}

impl Port<'_> {
    /// The vector of the events, after those of the queue pairs that there can be.
    fn event_vector(&self) -> u16 {
        max_pairs(&self.vectors)
    }

    /// Looks at the link and tells the stack.
    fn update_link(&self, dev: &Device) {
        let _guard = self.link_update.lock();

        match link::state(&self.bar) {
            Link::Up(speed) if !dev.is_carrier_ok() => {
                dev_info!(dev, "link is up at {} Mb/s\n", speed);
                dev.carrier_on();
            }
            Link::Down if dev.is_carrier_ok() => {
                dev_info!(dev, "link is down\n");
                dev.carrier_off();
            }
            Link::Up(_) | Link::Down => (),
        }
    }
}

/// Returns how many queue pairs there can be with these vectors.
fn max_pairs(vectors: &IrqVectorRegistration<'_>) -> u16 {
    u16::try_from(vectors.len())
        .unwrap_or(u16::MAX)
        .saturating_sub(irq::OTHER_VECTORS)
        .min(MAX_PAIRS)
}

/// Returns the size of the largest frame for an MTU.
fn max_frame(mtu: u32) -> u16 {
    u16::try_from(mtu)
        .unwrap_or(u16::MAX)
        .saturating_add(HEADER_LEN)
}

#[vtable]
impl Driver for PortDriver {
    type Bus = pci::Device<Bound>;
    type Setup = Setup;
    type Data<'bound> = Port<'bound>;
    type Poller<'bound> = Poller<'bound>;
    type Tx<'bound> = Sender<'bound>;

    fn probe<'bound>(
        pdev: &'bound pci::Device<Bound>,
        Setup { media, combining }: Setup,
    ) -> Result<(Info, impl PinInit<Port<'bound>, Error>)> {
        let dev = pdev.as_ref();
        let bar = pdev.iomap_region_sized::<{ hw::BAR_SIZE }>(0, c"ixgbe_rust")?;

        if hw::is_gone(&bar) {
            dev_err!(dev, "the card does not answer; is it powered?\n");
            return Err(ENODEV);
        }
        hw::reset(dev, &bar)?;
        eeprom::check(dev, &bar)?;

        let address = filter::permanent_address(&bar);
        if !address.is_valid_unicast() {
            dev_err!(dev, "the EEPROM holds no valid MAC address\n");
            return Err(EADDRNOTAVAIL);
        }

        // A pair for each CPU, as far as they go, and at least one.
        let wanted = device::online_cpus().min(MAX_PAIRS);
        let least = 1 + irq::OTHER_VECTORS;
        let vectors = pdev
            .alloc_irq_vectors(
                least.into(),
                (wanted + irq::OTHER_VECTORS).into(),
                IrqTypes::default().with(IrqType::MsiX),
            )
            .inspect_err(|_| dev_err!(dev, "cannot have {} MSI-X vectors\n", least))?;
        let pairs = max_pairs(&vectors);
        if pairs < wanted {
            dev_info!(
                dev,
                "{} of {} queue pairs, for want of MSI-X vectors\n",
                pairs,
                wanted
            );
        }

        let mut info = Info::new(address);
        info.queues = pairs;
        // Several of them drop what finds no room rather than holding up each other.
        info.queues_at_first = 1;
        info.max_mtu = MAX_MTU;
        info.combining = combining;
        info.features = Features::NONE
            .with(Feature::ScatterGather)
            .with(Feature::HighDma)
            .with(Feature::ChecksumIpv4)
            .with(Feature::ChecksumIpv6)
            .with(Feature::RxChecksum);

        let stats = PortStats::new(pairs)?;
        Ok((
            info,
            try_pin_init!(Port {
                stats <- stats,
                rings <- new_mutex!(KVec::new(), "ixgbe_rust::rings"),
                link_update <- new_mutex!((), "ixgbe_rust::link_update"),
                unicast_entries: Atomic::new(1),
                flags: Atomic::new(
                    FLAG_BULK_FREE | if combining { FLAG_COMBINE_TX } else { 0 }
                ),
                combining,
                hashing: Hashing::new(),
                media,
                vectors,
                bar,
                pdev,
            }),
        ))
    }

    fn open<'bound>(cx: &mut Opening<'_, 'bound, Self>) -> Result {
        let data = cx.data().get_ref();
        let dev = data.pdev.as_ref();
        let mut rings = KVec::with_capacity(cx.queues().into(), GFP_KERNEL)?;

        for number in 0..cx.queues() {
            let pair = Pair::new(number).ok_or(EINVAL)?;
            let stats = data.stats.pair(number)?;

            cx.add_queue_vector(data.vectors.index(number.into())?, c"TxRx", |napi| {
                let rx = RxRing::new(dev, napi, pair, &stats.poll)?;
                let (ring, tx) = tx::ring(dev, pair)?;

                rings.push(
                    Rings {
                        rx: rx.registers(),
                        tx: ring.registers(),
                    },
                    GFP_KERNEL,
                )?;
                let sender = Sender {
                    ring,
                    stats: stats.clone(),
                };
                let poller = Poller {
                    tx,
                    rx,
                    moderation: Moderation::new(pair),
                    stats,
                };
                Ok((poller, sender))
            })?;
        }
        let event = data.event_vector();
        cx.add_event_vector(data.vectors.index(event.into())?, c"event")?;

        *data.rings.lock() = rings;
        Ok(())
    }

    fn start<'bound>(port: Pin<&Port<'bound>>, netdev: &Device) -> Result {
        let dev = port.pdev.as_ref();
        let bar = &port.bar;
        let rings = port.rings.lock();
        // CAST: There are no more than `MAX_PAIRS`.
        let pairs = rings.len() as u16;

        hw::reset(dev, bar)?;
        hw::configure(bar);
        rss::configure(bar, &port.hashing, pairs);
        filter::init(bar, &netdev.mac_address());
        port.unicast_entries.store(1, Relaxed);
        hw::set_max_frame(bar, max_frame(netdev.mtu()));
        irq::configure(bar, pairs, port.event_vector());

        hw::enable_tx(bar);
        for pair in &*rings {
            pair.tx.start(dev, bar)?;
            // A CPU that is busy must not hold up the others.
            pair.rx.start(dev, bar, pairs > 1)?;
        }
        hw::enable_rx(bar);

        hw::set_driver_loaded(bar, true);
        link::start(bar, port.media);
        irq::enable(bar, pairs);
        // The interrupt says what changes from now on.
        port.update_link(netdev);
        Ok(())
    }

    fn quiesce<'bound>(port: Pin<&Port<'bound>>, _netdev: &Device) {
        let bar = &port.bar;

        hw::stop(port.pdev.as_ref(), bar);
        port.stats.save_hw(bar);
        port.rings.lock().clear();
        link::stop(bar, port.media);
        hw::set_driver_loaded(bar, false);
    }

    #[inline]
    fn poll<'bound>(
        port: Pin<&Port<'bound>>,
        poller: &mut Poller<'bound>,
        cx: &Poll<'_>,
    ) -> Polled {
        // SKBs that are freed first can be used for what is received.
        let bulk = port.flags.load(Relaxed) & FLAG_BULK_FREE != 0;
        let sent = poller.tx.poll(cx.tx_queue(), cx, &poller.stats, bulk);

        if cx.is_netpoll() {
            return Polled::Idle { received: 0 };
        }
        let (received, all) = poller.rx.poll(&port.bar, cx, &poller.stats.poll);
        poller.moderation.polled(&port.bar, received + sent, all);

        if all {
            Polled::Idle { received }
        } else {
            Polled::Busy
        }
    }

    fn closed<'bound>(_port: Pin<&Port<'bound>>, poller: Poller<'bound>) {
        poller.tx.finish(&poller.stats.poll);
    }

    #[inline]
    fn rearm<'bound>(port: Pin<&Port<'bound>>, vector: u16) {
        irq::rearm_queue(&port.bar, vector);
    }

    // In the function that the stack calls, also if there is a second one, which combines.
    #[inline(always)]
    fn start_xmit<'bound>(
        port: Pin<&Port<'bound>>,
        tx: &mut Sender<'bound>,
        queue: &TxQueue<'_>,
        skb: SkBuff,
        more: bool,
    ) -> Xmit {
        tx.ring.xmit(&port.bar, queue, &tx.stats.xmit, skb, more)
    }

    #[inline]
    fn combines<'bound>(port: Pin<&Port<'bound>>) -> bool {
        port.flags.load(Relaxed) & FLAG_COMBINE_TX != 0
    }

    #[inline]
    fn kick<'bound>(port: Pin<&Port<'bound>>, tx: &mut Sender<'bound>) {
        tx.ring.doorbell(&port.bar, &tx.stats.xmit);
    }

    fn event<'bound>(port: Pin<&Port<'bound>>, netdev: &Device) {
        let events = irq::take_events(&port.bar);

        if events.memory_error {
            irq::mask_memory_errors(&port.bar);
            dev_err!(
                port.pdev,
                "the card reports an uncorrectable memory error; reload the driver\n"
            );
        }
        if events.link {
            port.update_link(netdev);
        }
        irq::rearm_events(&port.bar);
    }

    fn set_rx_mode<'bound>(
        port: Pin<&Port<'bound>>,
        _netdev: &Device,
        mode: &RxMode<'_>,
    ) -> Result {
        // One caller at a time.
        let used = filter::select(
            &port.bar,
            filter::Selection {
                promiscuous: mode.is_promiscuous(),
                all_multicast: mode.is_all_multicast(),
                unicast: mode.unicast(),
                multicast: mode.multicast(),
            },
            port.unicast_entries.load(Relaxed),
        );
        port.unicast_entries.store(used, Relaxed);
        Ok(())
    }

    fn set_mac_address<'bound>(
        port: Pin<&Port<'bound>>,
        netdev: &Device,
        address: MacAddress,
    ) -> Result {
        // Otherwise it is set when the port is started.
        if netdev.is_running() {
            filter::set_own_address(&port.bar, &address);
        }
        Ok(())
    }

    fn change_mtu<'bound>(
        port: Pin<&Port<'bound>>,
        netdev: &Device,
        mtu: u32,
    ) -> Result<MtuChange> {
        // Frames are spread over as many buffers as they need, so the rings can stay.
        if netdev.is_running() {
            hw::set_max_frame(&port.bar, max_frame(mtu));
        }
        Ok(MtuChange::Live)
    }

    fn get_stats64<'bound>(port: Pin<&Port<'bound>>, stats: &mut Stats64<'_>) {
        port.stats.fill(&port.bar, stats);
    }

    fn tx_timeout<'bound>(port: Pin<&Port<'bound>>, _netdev: &Device, queue: u16) {
        tx::report_hang(port.pdev.as_ref(), &port.bar, queue);
    }

    fn ethtool_statistics<'bound>(
        port: Pin<&Port<'bound>>,
        _netdev: &Device,
        statistics: &mut Statistics<'_>,
    ) {
        port.stats.list(&port.bar, statistics);
    }

    const PRIVATE_FLAGS: &'static [&'static str] = FLAG_NAMES;

    fn private_flags<'bound>(port: Pin<&Port<'bound>>) -> u32 {
        port.flags.load(Relaxed)
    }

    fn set_private_flags<'bound>(port: Pin<&Port<'bound>>, flags: u32) -> Result {
        if flags & FLAG_COMBINE_TX != 0 && !port.combining {
            dev_notice!(
                port.pdev,
                "combine-tx needs the module to be loaded with combine_tx=1\n"
            );
            return Err(EOPNOTSUPP);
        }
        // The next poll, and the next packet, go by it.
        port.flags.store(flags, Relaxed);
        Ok(())
    }

    fn flow_hash<'bound>(port: Pin<&Port<'bound>>, flow: Flow) -> FlowHash {
        port.hashing.get(flow)
    }

    fn set_flow_hash<'bound>(
        port: Pin<&Port<'bound>>,
        netdev: &Device,
        flow: Flow,
        hash: FlowHash,
    ) -> Result {
        port.hashing.set(flow, hash)?;
        // Otherwise the card is told when the port is started.
        if netdev.is_running() {
            // CAST: There are no more than `MAX_PAIRS`.
            let pairs = port.rings.lock().len() as u16;
            port.hashing.apply(&port.bar, pairs);
        }
        Ok(())
    }

    fn link_speed<'bound>(port: Pin<&Port<'bound>>, _netdev: &Device) -> Option<u32> {
        match link::state(&port.bar) {
            Link::Up(speed) => Some(speed),
            Link::Down => None,
        }
    }
}
